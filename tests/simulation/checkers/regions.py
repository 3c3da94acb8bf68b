"""Regions end with the same items: of each the greatest `(stamp, region)` that was ever written anywhere.

What was written, and what was taken from elsewhere, is what the replicas of each partition agreed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from dynamo import codec
from dynamo.regions import RETURNED, Version, region_of
from dynamo.table import Table
from dynamo.values import load
from storagenode.hosted import HostedReplica
from tests.simulation.checkers.replicas import agreed_entries, is_gone, partitions_of_table, writes
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.workloads.history import Value
from tests.simulation.workloads.items import value_of

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Seen:
    """An item's new state in one region. `body` is empty for a delete; `came_back`: it was made here, and sent here by
    another region."""

    key: bytes
    version: Version
    body: bytes
    came_back: bool = False


def changes_of(cluster: SimulatedCluster, table: str) -> list[list[Seen]]:
    """By partition everything that a region wrote and took, in order."""
    found = []
    for hosted in partitions_of_table(cluster, table):
        schema = _schema(hosted)
        found.append([_seen(schema, key, stored) for key, stored, _ in writes(agreed_entries(cluster, hosted))])
    return found


def rows_of(cluster: SimulatedCluster, table: str) -> dict[bytes, Seen]:
    """A region's items, by the replicas that are furthest."""
    found = {}
    for hosted in partitions_of_table(cluster, table):
        schema = _schema(hosted)
        with closing(hosted.store.scan(b"", b"")) as rows:
            for key, stored in rows:
                found[key] = _seen(schema, key, stored)
    return found


def _schema(hosted: HostedReplica) -> Table:
    schema = hosted.partition.applied_schema
    assert schema is not None
    return schema


def _seen(schema: Table, key: bytes, stored: bytes) -> Seen:
    header = codec.header_of(stored)
    version = Version(header.stamp, region_of(schema, header.origin))
    return Seen(key, version, b"" if is_gone(stored) else codec.body_of(stored), header.origin == RETURNED)


def winners(changes: Mapping[str, Sequence[Sequence[Seen]]]) -> dict[bytes, Seen]:
    """By item the greatest write of all regions, deletes too. `changes`: by region, as `changes_of` gives them."""
    found: dict[bytes, Seen] = {}
    for region, partitions in changes.items():
        for seen in (seen for partition in partitions for seen in partition if seen.version.region == region):
            if seen.key not in found or found[seen.key].version < seen.version:
                found[seen.key] = seen
    return found


def left_by(won: Mapping[bytes, Seen]) -> dict[bytes, tuple[Version, bytes]]:
    """The items that all regions are to hold."""
    return {key: (seen.version, seen.body) for key, seen in won.items() if seen.body}


def differences_of(wanted: Mapping[bytes, tuple[Version, bytes]], region: str, rows: Iterable[Seen]) -> Iterator[str]:
    """How a region's items differ from those of the last writers."""
    found = {seen.key: (seen.version, seen.body) for seen in rows}
    wrong = [key for key in sorted(wanted.keys() | found.keys()) if wanted.get(key) != found.get(key)]
    for key in wrong[:SHOWN]:
        yield f"{region} holds {found.get(key)} at {key.hex()}, and the last writer left {wanted.get(key)}"


def broken_rules(changes: Mapping[str, Sequence[Sequence[Seen]]]) -> Iterator[str]:
    """What no region may ever do, whatever it holds in the end: be beaten by what came before, take what does not win,
    take what nobody wrote, or take its own writes back."""
    written = {
        (seen.key, seen.version): seen.body
        for region, partitions in changes.items()
        for partition in partitions
        for seen in partition
        if seen.version.region == region and not seen.came_back
    }
    for region, partitions in changes.items():
        for partition in partitions:
            yield from _out_of_order(region, partition)
            for seen in partition:
                if seen.came_back:
                    yield f"{region} took its own write back: {seen}"
                elif written.get((seen.key, seen.version)) != seen.body:
                    yield f"{region} took what {seen.version.region} never wrote: {seen}"


def _out_of_order(region: str, partition: Sequence[Seen]) -> Iterator[str]:
    """Each change of an item is greater than all that this region knew of it before, what it has forgotten included."""
    known: dict[bytes, Version] = {}
    for seen in partition:
        before = known.get(seen.key)
        if before is not None and seen.version <= before:
            did = "wrote" if seen.version.region == region else "took"
            yield f"{region} {did} {seen.version} at {seen.key.hex()} although it knew of {before}"
        known[seen.key] = max(seen.version, before or seen.version)


def lost_writes(acknowledged: Iterable[str], partitions: Sequence[Sequence[Seen]]) -> Iterator[str]:
    """Acknowledged values that their region never wrote."""
    values: set[Value] = {value_of(load(seen.body)) for partition in partitions for seen in partition if seen.body}
    for token in acknowledged:
        if token not in values:
            yield f"{token} was acknowledged and is nowhere"
