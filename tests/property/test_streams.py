"""A partition's stream tells its history: every change once, in order, whoever leads and wherever a reader goes on."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.table import Stream
from dynamo.values import Item, load
from replication.messages import NORMAL, Entry
from storagenode import streams
from storagenode.decisions import Propose
from storagenode.index_commands import encode_read
from storagenode.partition import Partition
from storagenode.storage.memory_store import MemoryStore
from storagenode.stream_ranges import stream_reader
from storagenode.streams import begin, read_slice, stream_of, trimmed_before
from tests.unit.partition_samples import NOW_MS, Leader, item, key, put

STEPS = 200
RECORD = storage_pb2.StreamRecord
Change = tuple[str, int, int, Item | None, Item | None]
"""Label of the stream, position and number, item before and after."""


class Replica:
    """One that applies the agreed log at a pace of its own, and may be asked as a leader is."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.partition = Partition(self.store)

    def apply(self, log: list[Entry], position: int) -> None:
        entries = log[self.partition.applied.position : position]
        if entries:
            self.partition.apply(entries)

    def restart(self) -> None:
        self.partition = Partition(self.store)


class Reader:
    """Reads one stream, page by page, from whoever has applied most."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.place = (0, 0)
        self.finished = False
        self.found: list[Change] = []

    def read(self, replica: Replica, limit: int) -> None:
        table = replica.partition.applied_schema
        assert table is not None
        if stream_of(table, self.label) is None:
            return  # not enabled there yet
        position, number = self.place
        request = storage_pb2.ReadStream(
            label=self.label, position=position, number=number, limit=limit, max_bytes=10_000
        )
        ranges = replica.partition.readers.streams
        reply = begin(replica.store, request, table, ranges)
        assert position == 0 or position > reply.trimmed
        while not read_slice(replica.store, request, table, ranges, reply):
            pass
        for record in reply.records:
            old, new = (load(image) if image else None for image in (record.old_image, record.new_image))
            assert record.event == (RECORD.REMOVE if new is None else RECORD.INSERT if old is None else RECORD.MODIFY)
            self.found.append((self.label, record.position, record.number, old, new))
        self.place = reply.next_position, reply.next_number
        self.finished = 0 < reply.end <= reply.next_position


class World:
    """A leader that decides, the log, and replicas that follow; what the stream must tell is noted from the log."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.leader = Leader()
        self.replicas = [Replica() for _ in range(3)]
        self.readers: list[Reader] = []
        self.now_ms = NOW_MS
        self.trimmed = 0

    def write(self) -> None:
        self.now_ms += self.dice.randrange(3)
        number, value = self.dice.randrange(4), {"N": str(self.dice.randrange(2))}
        match self.dice.randrange(3):
            case 0:
                self.leader.put(item("a", number, x=value))
            case 1:
                self.leader.delete("a", number)
            case _:
                actions = [
                    storage_pb2.Action(put=put(item("b", n, x=value), operation_id=0).put) for n in range(number + 1)
                ]
                actions.append(storage_pb2.Action(delete=storage_pb2.Delete(key=key("b", 9 - number))))
                request = storage_pb2.Transact(
                    actions=actions, transaction=self.dice.randbytes(16), payload=self.dice.randbytes(16)
                )
                decision = self.leader.decide(
                    storage_pb2.Request(operation_id=self.dice.randrange(1, 1 << 60), transact=request), self.now_ms
                )
                assert isinstance(decision, Propose)

    def change_stream(self) -> None:
        """Enable a stream, or disable the one that there is."""
        table = self.leader.partition.schema
        assert table is not None
        if table.stream is None:
            label = f"stream {len(table.streams)}"
            changed = (*table.streams, Stream(label, "NEW_AND_OLD_IMAGES", 1.0))
            self.readers.append(Reader(label))
        else:
            changed = (*table.streams[:-1], msgspec.structs.replace(table.stream, disabled=2.0))
        table = msgspec.structs.replace(table, streams=changed, schema_version=table.schema_version + 1)
        self._append(self.leader.partition.propose_schema(table))

    def trim(self) -> None:
        """What every reader has taken may go."""
        for label, known in self.leader.partition.readers.streams.items():
            reader = next(reader for reader in self.readers if reader.label == label)
            position = trimmed_before(self.leader.store, known, self.now_ms - 10)
            if 0 < position < reader.place[0] or reader.finished:
                self.trimmed += 1
                self._append(encode_read({stream_reader(label): position}))

    def depose(self) -> None:
        """Another replica leads, with all that was agreed on. What was in flight is agreed on, too."""
        old, self.leader = self.leader, Leader(self.leader.store)
        self.leader.log, self.leader.position = old.log, old.position
        self.leader.apply()
        self.dice.choice(self.replicas).restart()

    def read(self) -> None:
        """Strong reads: of a replica that has applied all that was answered."""
        if self.readers:
            replica = self.dice.choice(self.replicas)
            replica.apply(self.leader.log, len(self.leader.log))
            self.dice.choice(self.readers).read(replica, self.dice.randint(1, 5))

    def step(self) -> None:
        actions = {self.write: 10, self.read: 6, self.leader.apply: 3, self.trim: 2, self.change_stream: 1}
        actions[self.depose] = 1
        ((action),) = self.dice.choices(list(actions), list(actions.values()))
        action()
        follower = self.dice.choice(self.replicas)
        applied = follower.partition.applied.position
        follower.apply(self.leader.log, self.dice.randint(applied, len(self.leader.log)))

    def settle(self) -> None:
        self.leader.apply()
        replica = self.replicas[0]
        replica.apply(self.leader.log, len(self.leader.log))
        for reader in self.readers:
            before = None
            while before != (before := (reader.place, len(reader.found))):
                reader.read(replica, 7)

    def _append(self, payload: bytes) -> None:
        self.leader.position += 1
        self.leader.log.append(Entry(1, self.leader.position, payload, NORMAL))
        self.leader.apply()


def history(log: list[Entry]) -> list[Change]:
    """What the streams must tell: items before and after each entry, worked out without change rows."""
    told: list[Change] = []
    replica = Replica()
    for entry in log:
        label = _open_stream(replica)
        before = _items(replica)
        replica.partition.apply([entry])
        after = _items(replica)
        if label and label == _open_stream(replica):
            changed = [row for row in before | after if before.get(row) != after.get(row)]
            told += [(label, entry.position, 0, before.get(row), after.get(row)) for row in sorted(changed)]
    return told


def _open_stream(replica: Replica) -> str:
    table = replica.partition.applied_schema
    return table.stream.label if table is not None and table.stream is not None else ""


def _items(replica: Replica) -> dict[bytes, Item]:
    return {row: load(codec.body_of(stored)) for row, stored in replica.store.scan(b"", b"")}


def _comparable(changes: list[Change]) -> list[tuple[str, int, list[tuple[Item | None, Item | None]]]]:
    """By stream and entry; within an entry every item is changed at most once, so their order says nothing."""
    grouped: dict[tuple[str, int], list[tuple[Item | None, Item | None]]] = {}
    for label, position, _, old, new in changes:
        grouped.setdefault((label, position), []).append((old, new))
    return [(*place, sorted(images, key=repr)) for place, images in grouped.items()]


@settings(deadline=None, max_examples=40, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 1 << 64))
def test_streams_tell_history(seed: int) -> None:
    dice = Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "SLICE_ROWS", dice.randint(1, 6))
        world = World(dice)
        for _ in range(STEPS):
            world.step()
        world.settle()
    for reader in world.readers:
        places = [(position, number) for _, position, number, _, _ in reader.found]
        assert places == sorted(set(places)), "every record once, in order"
    found = sorted((change for reader in world.readers for change in reader.found), key=lambda change: change[1:3])
    assert _comparable(found) == _comparable(history(world.leader.log))


def test_the_world_does_what_it_is_for() -> None:
    """Enough streams come and go, records are read and trimmed, for the property above to say something."""
    world = World(Random(3))
    for _ in range(20 * STEPS):
        world.step()
    world.settle()
    assert len(world.readers) > 10
    assert sum(len(reader.found) for reader in world.readers) > 500
    assert world.trimmed > 50
