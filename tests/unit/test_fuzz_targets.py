"""The fuzzing targets take their own seeds, and notice what they are there to notice."""

from __future__ import annotations

import pytest

from dynamo import keys
from router.operations import REGISTRY
from tests.fuzz import targets


@pytest.mark.parametrize("target", targets.TARGETS)
def test_a_target_takes_its_seeds(target: str) -> None:
    for data in (b"", *targets.seeds(target)):
        targets.TARGETS[target](data)


def test_a_wrong_order_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = keys.encode_sort
    monkeypatch.setattr(keys, "encode_sort", lambda kind, content: right(kind, content)[::-1])
    with pytest.raises(AssertionError):
        targets.key_encodings(b"\x01abba")


def test_an_unexpected_exception_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError

    monkeypatch.setitem(REGISTRY, "ListTables", broken)
    number = targets.OPERATIONS.index("ListTables")
    with pytest.raises(AssertionError):
        targets.json_request(bytes([number]) + b"{}")
