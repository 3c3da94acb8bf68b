"""A table of two partitions, an index of two, and a network that delays, doubles and loses what goes between them.

Every partition has a log; whoever leads it applies a beginning of that log to a store of its own, so a leader that was
deposed goes on with what it knew. Real parts: partitions, stores, feeds and propagation. Replication is a list.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from cluster.requests.call import Call
from cluster.topology import CatalogTable, CatalogUpdate, NodePlace, Partition, ReplicaPlace, Topology
from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.errors import ApiError, unavailable
from dynamo.indexes import IndexProjection
from dynamo.item import item_size
from dynamo.keys import row_key, split_hashes
from dynamo.table import Index, KeySchema, Table, encode_table
from dynamo.values import Item, dump, load
from replication.messages import NORMAL, Entry
from storagenode import commands
from storagenode.decisions import Propose
from storagenode.hosted import HostedReplica
from storagenode.partition import Partition as Brain
from storagenode.propagation import Propagation
from storagenode.storage import layout
from storagenode.storage.memory_store import MemoryStore
from tests.unit.router_fakes import ManualClock

BASE, ROWS = 1, 2
PLAIN = Table(
    id=BASE,
    name="t",
    schema_version=1,
    attribute_types={"pk": "S", "sk": "S", "g": "S", "r": "N"},
    keys=KeySchema(("pk",), ("sk",)),
    created=0.0,
)
BY_G = Index("by_g", KeySchema(("g",), ("r",)), "INCLUDE", ("x",), table=ROWS)
INDEXED = msgspec.structs.replace(PLAIN, schema_version=2, global_indexes=(BY_G,))
INDEX_TABLE = Table(
    id=ROWS,
    name="",
    schema_version=1,
    attribute_types=PLAIN.attribute_types,
    keys=BY_G.keys,
    created=0.0,
    index_of=BASE,
    base_keys=PLAIN.keys,
)
HALVES = split_hashes(2)
PARTITIONS = [
    Partition(10 * table + half, table, low, high, (ReplicaPlace(1, 1, "a"),))
    for table in (BASE, ROWS)
    for half, (low, high) in enumerate(HALVES)
]
TOPOLOGY = Topology().with_update(
    CatalogUpdate(
        "c",
        1,
        0,
        1,
        tables=(CatalogTable(INDEXED), CatalogTable(INDEX_TABLE)),
        partitions=tuple(PARTITIONS),
        nodes=(NodePlace(1, "n", "r", "a", "x:1"),),
    )
)


class Log:
    """A partition's log: entries that are agreed on."""

    def __init__(self, table: Table) -> None:
        self.entries: list[Entry] = []
        self.append(commands.encode_schema(encode_table(table)))

    def append(self, payload: bytes) -> int:
        self.entries.append(Entry(1, len(self.entries) + 1, payload, NORMAL))
        return len(self.entries)


class Leader:
    """Whoever leads a partition, or thinks so. Stands for a HostedReplica, as propagation sees it."""

    def __init__(self, id_: int, log: Log, epoch: int) -> None:
        self.partition_id = id_
        self.log = log
        self.store = MemoryStore()
        self.partition = Brain(self.store)
        self.replica = SimpleNamespace(epoch=epoch)
        self.deposed = False
        self.dropped = False
        self.waiting: list[tuple[int, Callable[[], None]]] = []
        self.apply(len(log.entries))

    @property
    def serving(self) -> bool:
        return True  # a deposed leader thinks so too

    def propose(self, payload: bytes) -> int:
        """A deposed leader's entries come to nothing."""
        return len(self.log.entries) + 1 if self.deposed else self.log.append(payload)

    def apply(self, position: int) -> None:
        """Apply entries up to a position, and answer what waited for it."""
        entries = self.log.entries[self.partition.applied.position : position]
        if entries:
            self.partition.apply(entries)
        ready = [answer for at, answer in self.waiting if at <= position]
        self.waiting = [(at, answer) for at, answer in self.waiting if at > position]
        for answer in ready:
            answer()

    def decide(self, request: storage_pb2.Request, answer: Callable[[], None]) -> None:
        """A request; the answer is given once what it rests on is applied."""
        decision = self.partition.decide(request, 1_000, len(self.log.entries) + 1)
        if isinstance(decision, Propose):
            self.waiting.append((self.log.append(decision.payload), answer))
        elif getattr(decision, "after", 0):
            self.waiting.append((cast(Any, decision).after, answer))
        else:
            answer()


@dataclass
class Message:
    """A request under way. It may arrive more than once; it is answered once."""

    call: Call
    done: Callable[[storage_pb2.Reply | ApiError], None]
    answered: bool = False

    def answer(self, result: storage_pb2.Reply | ApiError) -> None:
        if not self.answered:
            self.answered = True
            self.done(result)


class Node:
    """A node that leads one partition of the table: its propagation, and what propagation needs."""

    def __init__(self, world: World, leader: Leader) -> None:
        self.clock = ManualClock()
        self.topology = TOPOLOGY
        self.leader = leader
        self._world = world
        self.propagation = Propagation(cast(Any, self), cast(Any, self))

    def submit(self, call: Call, done: Callable[[storage_pb2.Reply | ApiError], None]) -> None:
        message = Message(call, done)
        self._world.network.append(message)
        self._world.messages.append(message)

    def hosted_all(self) -> Iterator[HostedReplica]:
        return iter((cast(Any, self.leader),))

    def start_work(self, work: Coroutine[Any, Any, None]) -> None:
        work.close()  # it would wake the partition later: `advance` is called anyway

    def report_soon(self) -> None:
        pass

    def advance(self) -> bool:
        return self.propagation.advance(cast(Any, self.leader))

    @property
    def filled(self) -> bool:
        return ROWS in self.propagation.filled(cast(Any, self.leader))


class World:
    """All of it. `indexed`: the table has its index from the start."""

    def __init__(self, dice: Random, *, indexed: bool) -> None:
        self.dice = dice
        self.network: list[Message] = []  # what may still arrive
        self.messages: list[Message] = []  # all that was ever sent
        self.epoch = 1
        first = INDEXED if indexed else PLAIN
        self.sources = {id_: Leader(id_, Log(first), 1) for id_ in (10, 11)}
        self.indexes = {id_: Leader(id_, Log(INDEX_TABLE), 1) for id_ in (20, 21)}
        self.nodes = [Node(self, leader) for leader in self.sources.values()]
        self.indexed = indexed
        self.operation_id = 0

    # --- what happens ---

    def write(self) -> None:
        """A put, with keys and values from few, or a delete."""
        key: Item = {"pk": {"S": f"p{self.dice.randrange(4)}"}, "sk": {"S": f"s{self.dice.randrange(2)}"}}
        row = row_key(PLAIN.keys, PLAIN.attribute_types, key)
        self.operation_id += 1
        request = storage_pb2.Request(operation_id=self.operation_id)
        if self.dice.random() < 0.3:
            request.delete.key = row
        else:
            item = dict(key)
            if self.dice.random() < 0.8:
                item["g"] = {"S": self.dice.choice("abc")}
            if self.dice.random() < 0.8:
                item["r"] = {"N": str(self.dice.randrange(2))}
            item["x"] = {"S": str(self.operation_id)}
            request.put.MergeFrom(storage_pb2.Put(key=row, item=dump(item), size=item_size(item)))
        leader = self.sources[TOPOLOGY.partition_for(BASE, row[:16]).id]
        leader.decide(request, lambda: None)

    def add_index(self) -> None:
        """The index is made, in each partition of the table at its own time."""
        for leader in self.sources.values():
            schema = leader.partition.schema
            assert schema is not None
            if not schema.global_indexes:
                leader.log.append(leader.partition.propose_schema(INDEXED))
        self.indexed = True

    def apply_some(self) -> None:
        """Some leader applies some more of its log."""
        leader = self.dice.choice([*self.sources.values(), *self.indexes.values()])
        applied = leader.partition.applied.position
        leader.apply(self.dice.randint(applied, len(leader.log.entries)))

    def propagate(self) -> None:
        """Some node, perhaps a deposed one, reads and sends."""
        self.dice.choice(self.nodes).advance()

    def note(self) -> None:
        """Some leader tells its log how far it has come."""
        node = self.dice.choice(self.nodes)
        node.propagation.note(cast(Any, node.leader))

    def deliver(self) -> None:
        """Some request arrives, out of turn or once more; or it is given up, and may arrive all the same."""
        if not self.network:
            return
        message = self.dice.choice(self.network)
        fate = self.dice.random()
        if fate < 0.1 or fate >= 0.9:
            message.answer(unavailable("no answer in time"))
        if 0.1 <= fate < 0.9:
            self._arrive(message)
        if fate >= 0.4:
            self.network.remove(message)

    def _arrive(self, message: Message) -> None:
        operation = message.call.operation
        assert isinstance(operation, storage_pb2.IndexWrite)
        leader = self.indexes[TOPOLOGY.partition_for(ROWS, message.call.hash).id]
        request = storage_pb2.Request(index_write=operation)
        done = storage_pb2.Reply(write=storage_pb2.WriteReply())
        leader.decide(request, lambda: message.answer(done))

    def depose_source(self) -> None:
        """Another node leads a partition of the table, with all that was agreed on. The old one does not know yet."""
        id_, old = self.dice.choice(list(self.sources.items()))
        old.deposed = True
        self.epoch += 1
        self.sources[id_] = Leader(id_, old.log, self.epoch)
        self.nodes.append(Node(self, self.sources[id_]))
        if len(self.nodes) > 5:
            self.nodes.remove(next(node for node in self.nodes if node.leader.deposed))

    def depose_index(self) -> None:
        """Another node leads a partition of the index: what was not agreed on may be lost, and nobody is answered."""
        id_, old = self.dice.choice(list(self.indexes.items()))
        kept = self.dice.randint(old.partition.applied.position, len(old.log.entries))
        del old.log.entries[kept:]
        self.indexes[id_] = Leader(id_, old.log, 1)

    def step(self) -> None:
        """One of the above."""
        actions: list[tuple[Callable[[], None], int]] = [
            (self.write, 8),
            (self.apply_some, 8),
            (self.propagate, 8),
            (self.deliver, 8),
            (self.note, 2),
            (self.depose_source, 1),
            (self.depose_index, 1),
        ]
        if not self.indexed:
            actions.append((self.add_index, 1))
        ((action, _),) = self.dice.choices(actions, [weight for _, weight in actions])
        action()

    # --- and in the end ---

    def settle(self) -> None:
        """No more faults: everything arrives, in whatever order, until nothing is left to be done."""
        if not self.indexed:
            self.add_index()
        self.nodes = [node for node in self.nodes if not node.leader.deposed]
        for message in self.messages:
            message.answer(unavailable("no answer in time"))
        for _ in range(1_000):
            for leader in (*self.sources.values(), *self.indexes.values()):
                leader.apply(len(leader.log.entries))
            more = [node.advance() for node in self.nodes]
            waiting, self.network = self.network, []
            self.dice.shuffle(waiting)
            for message in waiting:
                self._arrive(message)
                if message.answered:
                    continue
                self.network.append(message)
            if not any(more) and not waiting and all(node.filled for node in self.nodes):
                break
        else:
            raise AssertionError("the index is never filled")
        self.dice.shuffle(self.messages)
        for message in self.messages:  # whatever comes late, or again, changes nothing
            self._arrive(message)
        for leader in self.indexes.values():
            leader.apply(len(leader.log.entries))

    def shown(self) -> dict[bytes, Item]:
        """What the index holds."""
        rows: dict[bytes, Item] = {}
        for leader in self.indexes.values():
            for key, stored in leader.store.scan(b"", b""):
                codec.verify(key, stored)
                rows[key] = load(codec.body_of(stored))
        return rows

    def wanted(self) -> dict[bytes, Item]:
        """What the table says that it should hold."""
        projection, rows = IndexProjection(INDEXED, BY_G), {}
        for leader in self.sources.values():
            for key, stored in leader.store.scan(b"", b""):
                body = codec.body_of(stored)
                entry = projection.entry(key, load(body), body, codec.size_of(stored))
                if entry is not None:
                    rows[entry.key] = load(entry.body)
        return rows

    def counted(self) -> tuple[int, int]:
        """Rows and bytes of the index, as its partitions count them."""
        applied = [leader.partition.applied for leader in self.indexes.values()]
        return sum(each.items for each in applied), sum(each.size for each in applied)

    def is_right(self) -> bool:
        """Whether the index holds what it should, and counts it rightly."""
        wanted = self.wanted()
        return self.shown() == wanted and self.counted() == (len(wanted), sum(map(item_size, wanted.values())))

    def change_rows(self) -> int:
        """Change rows that are left."""
        bounds = layout.CHANGE, layout.prefix_end(layout.CHANGE)
        return sum(1 for leader in self.sources.values() for _ in leader.store.rows(*bounds))
