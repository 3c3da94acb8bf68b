"""What global indexes write to logs is read back as it was meant."""

from __future__ import annotations

import pytest

from storagenode import commands
from storagenode.index_commands import (
    IndexWriteCommand,
    ReadCommand,
    TakenRow,
    TouchCommand,
    encode_index_write,
    encode_read,
    encode_touch,
)

ROWS = (TakenRow(b"k" * 1_161, b"stored" * 1_000, 0), TakenRow(b"gone", b"", 400_000), TakenRow(b"", b"", 0))

PAYLOADS: list[tuple[bytes, commands.Command]] = [
    (encode_index_write(1 << 63, 1 << 62, ROWS), IndexWriteCommand(1 << 63, 1 << 62, ROWS)),
    (encode_index_write(1, 2, []), IndexWriteCommand(1, 2, ())),
    (encode_read({b"index 1": 5, b"x": 1 << 50}), ReadCommand({b"index 1": 5, b"x": 1 << 50})),
    (encode_read({}), ReadCommand({})),
    (
        encode_touch(9, [b"a", b"b" * 1_040], b"b" * 1_040, done=False),
        TouchCommand(9, False, b"b" * 1_040, (b"a", b"b" * 1_040)),
    ),
    (encode_touch(9, [], b"", done=True), TouchCommand(9, True, b"", ())),
]


@pytest.mark.parametrize(("payload", "meant"), PAYLOADS)
def test_a_command_comes_back(payload: bytes, meant: commands.Command) -> None:
    assert commands.decode(payload) == meant
