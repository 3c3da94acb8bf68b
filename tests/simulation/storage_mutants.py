"""More broken rules for the simulation to find: those of logs, snapshots, stops and schemas, and of global indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from dynamo.table import encode_table
from replication.messages import Entry
from storagenode import commands
from storagenode.hosted import HostedReplica
from storagenode.index_commands import encode_touch
from storagenode.index_rows import IndexRows
from storagenode.log import records
from storagenode.log.node_log import NodeLog
from storagenode.propagation import Propagation
from storagenode.replicas import Replicas
from storagenode.snapshots.keeper import SnapshotKeeper
from storagenode.snapshots.manifest import Manifest
from storagenode.storage import layout
from storagenode.storage.lmdb_copy import LmdbRestoration
from storagenode.storage.lmdb_store import LmdbStore
from tests.simulation.mutants import CRASHES, ELECTIONS, LOSSES, SPLITS, mutant, patched
from tests.simulation.scenarios.storm import Features
from tests.simulation.shape import TRIMMING, Shape

TRIMS: Final = Shape(partitions=1, settings={**TRIMMING, "log_keep_seconds": 0.5})
_RESTARTS: Final = {"kill all nodes": 3.0, "power loss everywhere": 3.0, **ELECTIONS}


# --- the log ---


@mutant(_RESTARTS, shape=TRIMS)
def trim_drops_the_vote() -> Iterator[None]:
    """A new segment begins without the epochs and votes of the partitions."""

    def without(record_type: int, *arguments: Any) -> bytes:
        return b"" if record_type == records.HARD_STATE else records.frame_record(record_type, *arguments)

    with patch("storagenode.log.index.frame_record", without):
        yield


@mutant({"witness forgets what it could not sync": 1.0}, clients=20, think=(0.02, 0.2), pause=(2.0, 5.0))
def count_the_tail_before_it_is_synced() -> Iterator[None]:
    """What a start finds at the end of the log counts, whether it is on the disk or was only about to get there."""
    with patched(NodeLog, "_rewrite_tail", lambda _: lambda _self, _found: None):
        yield


# --- snapshots ---


def _after_placing(change: Callable[[LmdbStore], None]) -> Any:
    """Change a store that was made from a snapshot, as if the snapshot had been like that."""

    def make(place: Any) -> Any:
        def placed(self: LmdbRestoration, into: LmdbStore) -> None:
            place(self, into)
            change(into)

        return placed

    return patched(LmdbRestoration, "place", make)


@mutant(
    {**LOSSES, "power loss": 4.0, "isolate": 2.0, "stopped process": 2.0, "slow network": 4.0, "hand over": 3.0},
    shape=TRIMS,
    clients=10,
)
def operation_ids_left_out_of_a_snapshot() -> Iterator[None]:
    """Whoever starts from a snapshot does what was done before once more."""

    def forget(store: LmdbStore) -> None:
        end = layout.prefix_end(layout.OPERATION_IDS)
        with closing(store.rows(layout.OPERATION_IDS, end)) as rows:
            keys = [key for key, _ in rows]
        with store._environment.begin(write=True) as writing:
            for key in keys:
                writing.delete(key)

    with _after_placing(forget):
        yield


@mutant({**CRASHES, "power loss everywhere": 4.0, "isolate": 2.0}, shape=TRIMS, clients=10)
def snapshot_without_its_position() -> Iterator[None]:
    """A snapshot is said to reach to where the log is when it is done, not to where its copy was taken."""

    def make(write: Any) -> Any:
        async def written(self: SnapshotKeeper, hosted: HostedReplica, copy: Any) -> Manifest:
            manifest: Manifest = await write(self, hosted, copy)
            return replace(manifest, position=hosted.replica.last_position, epoch=hosted.replica.epoch)

        return written

    with patched(SnapshotKeeper, "_write", make):
        yield


# --- stops ---


@mutant({"stop, then power loss": 4.0, "isolate": 2.0, "two sides": 1.0}, clients=10)
def clean_mark_before_the_sync() -> Iterator[None]:
    """A node that stops says that its stores are whole before they are on the disk."""
    with patched(Replicas, "sync", lambda _: lambda _self: None):
        yield


# --- schemas and indexes ---


@mutant({**SPLITS, **CRASHES}, features=Features(indexed=True, reshaped=True))
def apply_reads_the_catalog() -> Iterator[None]:
    """A new schema takes effect as the catalog has it by then, not as the log says."""

    def make(apply: Any) -> Any:
        def applied(self: HostedReplica, entries: tuple[Entry, ...]) -> None:
            wanted = self.wanted_schema
            if wanted is not None:
                newest = commands.encode_schema(encode_table(wanted))
                entries = tuple(
                    Entry(entry.epoch, entry.position, newest, entry.kind) if _is_schema(entry) else entry
                    for entry in entries
                )
            apply(self, entries)

        return applied

    with patched(HostedReplica, "_apply", make):
        yield


def _is_schema(entry: Entry) -> bool:
    return bool(entry.payload) and isinstance(commands.decode(entry.payload), commands.SchemaCommand)


@mutant({**SPLITS, "slow network": 3.0, "slow machine": 3.0}, features=Features(indexed=True))
def put_after_delete_by_a_stopped_propagator() -> Iterator[None]:
    """A partition of an index takes whatever comes, though it has taken something later of the same source."""

    class Everything(dict[int, Any]):
        def get(self, *_: Any) -> Any:
            return (0, 0)

    def make(decide: Any) -> Any:
        def decided(self: IndexRows, *arguments: Any) -> Any:
            self._in_flight = Everything()
            return decide(self, *arguments)

        return decided

    with patched(IndexRows, "decide", make):
        yield


@mutant({**SPLITS, **CRASHES}, features=Features(reshaped=True))
def backfill_outside_of_the_log() -> Iterator[None]:
    """A new index is filled by sending what the table holds, without entries of the table's own log."""

    def fill(self: Propagation, hosted: HostedReplica, source: Any) -> None:
        readers, applied = hosted.partition.readers, hosted.partition.applied.position
        for index, feed in source.feeds.items():
            if not readers.fills[index].done and source.touched_at.get(index, 0) <= applied:
                for key, stored in hosted.store.scan(b"", b""):
                    feed.touch(key, stored, applied, self._route(feed))
                source.touched_at[index] = hosted.propose(encode_touch(index, [], b"", done=True))
        self._notice_filled(source, readers)

    with patched(Propagation, "_fill", lambda _: fill):
        yield
