"""What waits for the next flush, and what one flush writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from replication.messages import Entry
from storagenode.log.records import frame_record

EntryPut: TypeAlias = tuple[int, Sequence[Entry]]
RecordPut: TypeAlias = tuple[int, int, int, int, bytes]
Put: TypeAlias = EntryPut | RecordPut
"""How the index learns of a chunk: (partition, entries), or (type, partition, a, b, payload)."""

NOT_WRITTEN: Final = (0, 0)


@dataclass(slots=True)
class Batch:
    """What one flush writes. Opaque to the shell, which hands it from `take` to `write` to `written`."""

    chunks: list[bytes] = field(default_factory=list)
    puts: list[Put] = field(default_factory=list)
    """One for each chunk."""
    size: int = 0
    place: tuple[int, int] = NOT_WRITTEN
    """(segment, offset of the frame), once written."""


class Waiting:
    """Records in order, as they arrive between flushes."""

    def __init__(self) -> None:
        self._batch = Batch()

    def __bool__(self) -> bool:
        return bool(self._batch.chunks)

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return self._batch.size

    def add(self, chunk: bytes, put: Put) -> None:
        """Let a chunk of whole records wait."""
        batch = self._batch
        batch.chunks.append(chunk)
        batch.puts.append(put)
        batch.size += len(chunk)

    def add_record(self, record_type: int, partition: int, a: int, b: int, payload: bytes = b"") -> None:
        """Let one record that is not an entry wait."""
        self.add(frame_record(record_type, partition, a, b, payload), (record_type, partition, a, b, payload))

    def take(self, size_max: int) -> Batch:
        """The longest beginning of what waits that is at most `size_max` bytes, or one larger chunk alone."""
        batch = self._batch
        if batch.size <= size_max:
            self._batch = Batch()
            return batch
        size, count = len(batch.chunks[0]), 1
        while count < len(batch.chunks) and size + len(batch.chunks[count]) <= size_max:
            size += len(batch.chunks[count])
            count += 1
        self._batch = Batch(batch.chunks[count:], batch.puts[count:], batch.size - size)
        return Batch(batch.chunks[:count], batch.puts[:count], size)
