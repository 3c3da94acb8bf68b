"""Two or three regions over partitions in memory, with links that delay, repeat and reorder what they carry.

A region is one partition's leader here: what crosses regions does so partition by partition. Links obey the rules of
`replicator.link` and nothing more: they read behind the cursor, send again whatever was not answered, and move the
cursor only when the answer is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.codec import make_stamp
from dynamo.regions import Version, readers_of, region_of, replica_of
from dynamo.table import Table
from dynamo.values import dump
from storagenode import regional_reads as reads
from storagenode.change_readers import region_reader
from storagenode.index_commands import encode_read
from storagenode.partition import Answer, Partition, Propose
from storagenode.regional_commands import encode_clock, encode_tombstones
from storagenode.storage import layout
from tests.unit.partition_samples import NOW_MS, Leader, item, key
from tests.unit.regional_samples import append, global_table

NAMES = "abcdefgh"
KEYS = [key(name, 1) for name in NAMES]
SKEW_MS = 10_000


@dataclass
class Sent:
    """A request on its way from one region to another: the network may deliver it late, and more than once."""

    source: str
    to: str
    write: storage_pb2.RegionalWrite


@dataclass
class Written:
    """A write of a client, as its region acknowledged it: `after` is what the item was known by there before, `gone`
    that it was a delete."""

    region: str
    key: bytes
    version: Version
    after: Version | None
    gone: bool


@dataclass
class RegionWorld:
    """One seed's world. `clock_ms` is the true time; each region's own is off by up to `SKEW_MS`."""

    random: Random
    names: tuple[str, ...]
    regions: dict[str, Leader] = field(default_factory=dict)
    network: list[Sent] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    clock_ms: int = NOW_MS
    skew: dict[str, int] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    taken: dict[tuple[str, str], int] = field(default_factory=dict)
    cut: list[tuple[str, str]] = field(default_factory=list)
    dropped: int = 0

    def __post_init__(self) -> None:
        self.tables = global_table(*self.names)
        for name in self.names:
            self.regions[name] = Leader(table=self.tables[name])
            self.skew[name] = self.random.randint(-SKEW_MS, SKEW_MS)

    # --- what happens ---

    def step(self) -> None:
        """Something happens somewhere."""
        self.clock_ms += self.random.choice((0, 1, 1, 7, 500))
        action = self.random.choices(
            (self.write, self.send, self.deliver, self.restart, self.let_go, self.move_clock, self.cut_or_heal),
            (5, 6, 9, 0.5, 3, 0.5, 0.7),
        )[0]
        action()

    def write(self) -> None:
        """A client puts or deletes an item somewhere."""
        name = self.random.choice(self.names)
        leader, which = self.regions[name], self.random.randrange(len(KEYS))
        pk, row_key = NAMES[which], KEYS[which]
        before = self.version(name, row_key)
        now = self.now(name)
        if self.random.random() < 0.4:
            operation = storage_pb2.Delete(key=row_key)
            request = storage_pb2.Request(operation_id=self.random.getrandbits(60) | 1, delete=operation)
        else:
            body = item(pk, 1, n={"N": str(len(self.written))})
            put = storage_pb2.Put(key=row_key, item=dump(body), size=10)
            request = storage_pb2.Request(operation_id=self.random.getrandbits(60) | 1, put=put)
        decision = leader.decide(request, now)
        leader.apply()
        if isinstance(decision, Propose):
            after = self.version(name, row_key)
            assert after is not None
            assert after.region == name
            gone = leader.store.get(row_key) is None
            self.written.append(Written(name, row_key, after, before, gone))

    def send(self) -> None:
        """A replicator reads behind what it knows to be taken, or behind the cursor if it is new, and sends."""
        name = self.random.choice(self.names)
        leader, table = self.regions[name], self.tables[name]
        replica = self.random.choice(readers_of(table))
        cursor = leader.partition.readers.positions[region_reader(replica.number)]
        after = max(cursor, self.taken.get((name, replica.region), 0))
        if self.random.random() < 0.2:
            after = cursor
        found = self.read(name, replica.number, after)
        own = replica_of(table, name)
        assert own is not None
        if found.rows:
            write = storage_pb2.RegionalWrite(
                life=own.since, source=1, position=found.rows[-1].position, rows=found.rows
            )
            self.network.append(Sent(name, replica.region, write))
        elif found.next > cursor and reads.has_change(leader.store, cursor, found.next) and after == found.next:
            append(leader, encode_read({region_reader(replica.number): found.next}))

    def read(self, name: str, number: int, after: int) -> reads.Slice:
        """What a region has for another one. Nothing that came from elsewhere is among it."""
        found = reads.changes_after(self.regions[name].store, self.tables[name], number, after)
        assert all(row.region == name for row in found.rows), "a change was sent on"
        return found

    def deliver(self, *, everything: bool = False) -> None:
        """The network delivers one of the requests on their way; it may deliver the same one again later."""
        ready = [sent for sent in self.network if everything or (sent.source, sent.to) not in self.cut]
        if not ready:
            return
        sent = self.random.choice(ready)
        if everything or self.random.random() < 0.7:
            self.network.remove(sent)
        leader = self.regions[sent.to]
        decision = leader.decide(storage_pb2.Request(regional_write=sent.write), self.now(sent.to))
        leader.apply()
        assert isinstance(decision, Propose | Answer)
        if isinstance(decision.reply, storage_pb2.WriteReply) and (everything or self.random.random() < 0.8):
            way = (sent.source, sent.to)
            self.taken[way] = max(self.taken.get(way, 0), decision.reply.taken)
            self._note(*way)

    def _note(self, source: str, to: str) -> None:
        """The leader learns how far the region has come; change rows that all have passed go."""
        leader = self.regions[source]
        number = next(each.number for each in readers_of(self.tables[source]) if each.region == to)
        if self.random.random() < 0.5:
            append(leader, encode_read({region_reader(number): self.taken[source, to]}))

    def restart(self) -> None:
        """A leader is replaced by one that knows the applied state alone, and its clock differs."""
        name = self.random.choice(self.names)
        self.regions[name].partition = Partition(self.regions[name].store)
        self.skew[name] = self.random.randint(-SKEW_MS, SKEW_MS)
        if self.random.random() < 0.5:  # so was the replicator
            for way in [way for way in self.taken if way[0] == name]:
                del self.taken[way]

    def cut_or_heal(self) -> None:
        """One way between two regions is cut, or all are whole again."""
        if self.cut:
            self.cut.clear()
        else:
            self.cut.append((self.random.choice(self.names), self.random.choice(self.names)))

    def move_clock(self) -> None:
        """A leader stamps above its clock from now on."""
        name = self.random.choice(self.names)
        stamp = make_stamp(self.now(name), 0)
        if stamp > self.regions[name].partition.applied.stamp:
            append(self.regions[name], encode_clock(stamp))

    def let_go(self) -> None:
        """Tombstones go by the rule of `replicator.horizon`, without any delay: no rows are compared here."""
        stamp = self.horizon()
        for name in self.names:
            leader = self.regions[name]
            found, _ = reads.old_tombstones(leader.store, b"", stamp, None)
            if found:
                self.dropped += len(found)
                append(leader, encode_tombstones(found))

    def horizon(self) -> int:
        """The least stamp up to which every region has what was or will be written in every other one."""
        return min(
            reads.state_of(self.regions[name].store, self.regions[name].partition.readers, replica.number).settled
            for name in self.names
            for replica in readers_of(self.tables[name])
        )

    def settle(self) -> None:
        """The network is whole: everything comes to everybody."""
        for _ in range(400):
            before = [self.rows(name) for name in self.names]
            for name in self.names:
                for replica in readers_of(self.tables[name]):
                    way = (name, replica.region)
                    after = self.taken.get(way, 0)
                    after = max(after, self.regions[name].partition.readers.positions[region_reader(replica.number)])
                    found = self.read(name, replica.number, after)
                    own = replica_of(self.tables[name], name)
                    assert own is not None
                    if found.rows:
                        write = storage_pb2.RegionalWrite(
                            life=own.since, source=1, position=found.rows[-1].position, rows=found.rows
                        )
                        self.network.append(Sent(name, replica.region, write))
            while self.network:
                self.deliver(everything=True)
            if before == [self.rows(name) for name in self.names]:
                return
        raise AssertionError("the regions never came to rest")

    # --- what is seen ---

    def now(self, name: str) -> int:
        """A region's own clock."""
        return self.clock_ms + self.skew[name]

    def version(self, name: str, row_key: bytes) -> Version | None:
        """What an item's last write is known by in a region, also if it was a delete."""
        store = self.regions[name].store
        stored = store.get(row_key) or store.row(layout.tombstone_key(row_key))
        if stored is None:
            return None
        header = codec.header_of(stored)
        return Version(header.stamp, region_of(self.tables[name], header.origin))

    def rows(self, name: str) -> dict[bytes, tuple[Version, bytes]]:
        """All items of a region."""
        found = {}
        for row_key, stored in self.regions[name].store.scan(b"", b""):
            header = codec.header_of(stored)
            version = Version(header.stamp, region_of(self.tables[name], header.origin))
            found[row_key] = (version, codec.body_of(stored))
        return found

    def winners(self) -> dict[bytes, Written]:
        """By item the greatest write that any region ever acknowledged."""
        found: dict[bytes, Written] = {}
        for written in sorted(self.written, key=lambda written: written.version):
            found[written.key] = written
        return found

    def check(self) -> None:
        """The regions are at rest: they hold the same, which is what the greatest write of each item left."""
        self.settle()
        first = self.rows(self.names[0])
        for name in self.names[1:]:
            assert self.rows(name) == first, f"{name} holds something else"
        left = {written.key: written.version for written in self.winners().values() if not written.gone}
        assert {row_key: version for row_key, (version, _) in first.items()} == left, "not the last writer's items"
        for written in self.written:
            assert written.after is None or written.version > written.after, "a write was beaten by what it followed"
