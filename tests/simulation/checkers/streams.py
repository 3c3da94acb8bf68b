"""A stream is its table's history: every change once, and those of one partition in their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dynamo import codec
from dynamo.values import load
from tests.simulation.checkers.replicas import agreed_entries, is_gone, partitions_of_table, writes
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.workloads.items import name_of, value_of
from tests.simulation.workloads.streams import StreamedChange


def expected_changes(cluster: SimulatedCluster, table: str) -> dict[int, list[StreamedChange]]:
    """What the stream of each partition has to consist of, by what its replicas agreed on."""
    return {
        hosted.partition_id: list(_changes(writes(agreed_entries(cluster, hosted))))
        for hosted in partitions_of_table(cluster, table)
    }


def wrong_streams(
    expected: Mapping[int, Sequence[StreamedChange]], read: Mapping[int, Sequence[StreamedChange]]
) -> Iterator[str]:
    """How what was read differs from what it has to be, by partitions."""
    for partition, changes in expected.items():
        found = read.get(partition, ())
        if list(found) == list(changes):
            continue
        at = next((at for at, both in enumerate(zip(changes, found, strict=False)) if both[0] != both[1]), None)
        if at is None:
            at = min(len(changes), len(found))
        wanted, got = list(changes[at : at + 3]), list(found[at : at + 3])
        yield f"the stream of partition {partition} goes on with {got} after {at} records, and should with {wanted}"


def _changes(written: Iterator[tuple[bytes, bytes, int]]) -> Iterator[StreamedChange]:
    """Writes that changed something. Items are told apart by their bytes, values by their tokens."""
    before: dict[bytes, bytes] = {}
    for key, stored, position in written:
        old, new = before.pop(key, b""), b"" if is_gone(stored) else codec.body_of(stored)
        if new:
            before[key] = new
        if old != new:
            old_item, new_item = load(old) if old else None, load(new) if new else None
            event = "REMOVE" if new_item is None else "MODIFY" if old_item is not None else "INSERT"
            item = new_item or old_item
            assert item is not None
            yield StreamedChange(position, event, name_of(item), value_of(old_item), value_of(new_item))
