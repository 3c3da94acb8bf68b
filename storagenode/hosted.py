"""One replica on this node: the replication core, the partition's brain, and whoever waits for an answer.

This is shell: it asks the two pure parts what should be done and does it, in the order that `Effects` prescribes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from cluster.wire import common_pb2, storage_pb2
from dynamo.codec import CorruptItem
from dynamo.errors import internal
from dynamo.table import Table
from replication.effects import Effects
from replication.heartbeats import LeaderBeats
from replication.lease import NEVER
from replication.messages import Append, AppendReply, Entry, Message
from replication.replica import Replica
from storagenode import commands, streams
from storagenode.damage import BEYOND_REPAIR, NO_DAMAGE
from storagenode.decisions import Result, failure
from storagenode.host import Host as Host
from storagenode.log.errors import LogCorrupt, LogTrimmed
from storagenode.partition import Partition, Propose, Repeat
from storagenode.query import Page, reply_of
from storagenode.requests import Responder
from storagenode.storage.store import Store, StoreBroken, StoreFull
from storagenode.transaction_commands import PrepareCommand, TransactCommand

_log = logging.getLogger(__name__)

Refusal = common_pb2.Refusal
LOAD_BYTES = 1 << 20
"""How much of the log is read, and applied in one go, after a restart."""
WAITING_MAX = 20_000
"""Writes of one partition under way at once; beyond that routers are asked to pause."""

REGION_KINDS = frozenset({"read_changes", "read_region", "drop_tombstones", "digest", "read_range"})
"""What replicators of global tables ask for."""
SHRINKING = ("delete", "finish")
"""What is done when the disk is nearly full: deletes, and the end of what was begun."""

APPLY_AGAIN_SECONDS = 0.5
"""After the store found no room."""

_TRIMMED = "The operation was done before, and its answer is not kept any longer: look at the item"

WriteResult: TypeAlias = Result | storage_pb2.Failure


class HostedReplica:
    """One replica of a partition on this node.

    `nodes` maps replica ids to nodes, as far as is known: of members, and of others that may still say something. It is
    shared with the replica's contact. A log replica has an empty store, and refuses all requests: it knows no schema.
    """

    def __init__(
        self,
        host: Host,
        partition_id: int,
        table_id: int,
        replica: Replica,
        store: Store,
        nodes: dict[int, int],
    ) -> None:
        self.partition_id = partition_id
        self.table_id = table_id
        self.usage = host.usages.of(table_id)
        self.replica = replica
        self.store = store
        self.nodes = nodes
        self._host = host
        self.partition = self._make_partition()
        self.wanted_schema: Table | None = None
        self.dropped = False
        self.led_epoch = 0  # the last epoch in which it led
        self._payloads: list[bytes] = []
        self._waiting: dict[int, list[tuple[Responder, WriteResult]]] = {}
        self._was_leader = False
        self._commit_told = 0
        self.damage = NO_DAMAGE
        self._unapplied: list[Entry] = []
        self._apply_waits = False

    # --- requests from routers ---

    def handle(self, request: storage_pb2.Request, responder: Responder) -> bool:
        """Answer a request or gather what it proposes; True when `propose_gathered` has to be called."""
        kind = request.WhichOneof("operation")
        if refusal := self._mismatch(request):
            responder.refuse(refusal)
            return False
        if self.damage.refuses:
            self._refuse_damaged(responder)
            return False
        try:
            if kind == "get":
                self._get(request.get, responder)
                return False
            if kind == "transact_get":
                self._transact_get(request.transact_get, responder)
                return False
            if kind == "query":
                self._query(request.query, request.deadline_ms, responder)
                return False
            if kind == "read_stream":
                self._read_stream(request, responder)
                return False
            if kind in REGION_KINDS:
                self._host.regions.handle(self, request, responder)
                return False
            if kind == "statistics":
                responder.statistics(self.partition.statistics())
                return False
            return self._write(request, responder)
        except (CorruptItem, StoreBroken) as error:
            self._found_damaged(error, responder)
            return False

    def _mismatch(self, request: storage_pb2.Request) -> common_pb2.Refusal | None:
        if request.table != self.table_id:
            return Refusal(reason=Refusal.NO_SUCH_PARTITION, detail="the partition is another table's")
        if request.epoch and request.epoch != self.replica.epoch:
            return self._refusal(Refusal.STALE_EPOCH)
        schema = self.partition.schema
        if schema is None:
            return self._not_serving()
        # What is marked is finished by whatever schema: it was checked when it was marked.
        if request.schema_version != schema.schema_version and not request.HasField("finish"):
            return self._refusal(Refusal.SCHEMA_CHANGED, schema.schema_version)
        return None

    def _refusal(self, reason: common_pb2.Refusal.Reason, schema_version: int = 0) -> common_pb2.Refusal:
        leader = self.nodes.get(self.replica.leader, 0)
        return Refusal(reason=reason, leader_node=leader, epoch=self.replica.epoch, schema_version=schema_version)

    def _not_serving(self) -> common_pb2.Refusal:
        return self._refusal(Refusal.NOT_READY if self.replica.role == "leader" else Refusal.NOT_LEADER)

    def not_serving(self) -> common_pb2.Refusal:
        """What a leader that may not answer, or a replica that is none, tells."""
        return self._not_serving()

    def _may_read(self) -> bool:
        return self.replica.may_read(self._host.clock.boottime())

    def _get(self, get: storage_pb2.Get, responder: Responder) -> None:
        if get.consistent and not self._may_read():
            responder.refuse(self._not_serving())
            return
        reply = self.partition.get(get)
        self.usage.read(reply, get.consistent)
        responder.item(reply)

    def _transact_get(self, transact_get: storage_pb2.TransactGet, responder: Responder) -> None:
        if not self._may_read():
            responder.refuse(self._not_serving())
            return
        reply = self.partition.transact_get(transact_get)
        self.usage.read_in_transaction(reply)
        responder.transact_get(reply)

    def _query(self, query: storage_pb2.Query, deadline_ms: int, responder: Responder) -> None:
        page = Page()

        def query_slice() -> bool:
            if query.consistent and not self._may_read():
                responder.refuse(self._not_serving())
                return True
            if not self.partition.query_slice(query, page):
                return False
            assert self.partition.schema is not None
            reply = reply_of(page, self.partition.schema)
            self.usage.queried(reply, query.consistent)
            responder.query(reply)
            return True

        self._in_slices(query_slice, deadline_ms, responder)

    def _read_stream(self, request: storage_pb2.Request, responder: Responder) -> None:
        wanted = request.read_stream
        reply: storage_pb2.StreamReply | None = None

        def read_slice() -> bool:
            nonlocal reply
            schema = self.partition.applied_schema
            # A stream that has just come or gone is there, or gone, once that is applied.
            if not self._may_read() or schema is None or schema.schema_version != request.schema_version:
                responder.refuse(self._not_serving())
                return True
            ranges = self.partition.readers.streams
            if reply is None:
                reply = streams.begin(self.store, wanted, schema, ranges)
            if not streams.read_slice(self.store, wanted, schema, ranges, reply):
                return False
            responder.stream(reply)
            return True

        self._in_slices(read_slice, request.deadline_ms, responder)

    def _in_slices(self, work: Callable[[], bool], deadline_ms: int, responder: Responder) -> None:
        """Do `work` until it says that the request is answered, at once or in slices. Strong reads need the lease at
        each of them."""
        if not work():
            until = self._host.clock.boottime() + deadline_ms / 1000
            self._host.start_work(self._go_on(work, until, responder))

    async def _go_on(self, work: Callable[[], bool], until: float, responder: Responder) -> None:
        try:
            finished = False
            while not finished:
                await self._host.breathe()
                if self._host.clock.boottime() > until:
                    responder.refuse(Refusal(reason=Refusal.DEADLINE))
                    return
                finished = work()
        except (CorruptItem, StoreBroken) as error:
            self._found_damaged(error, responder)

    def _found_damaged(self, error: Exception, responder: Responder) -> None:
        """A row, or the store, is damaged: it is never given out."""
        self._host.damaged(self, str(error), hidden=isinstance(error, StoreBroken))
        self._refuse_damaged(responder)

    def _refuse_damaged(self, responder: Responder) -> None:
        """Another try may meet another replica, or this one repaired, unless nobody can repair it."""
        if self.damage.beyond_repair:
            responder.write(failure(internal(BEYOND_REPAIR), 0))
        else:
            responder.refuse(self._refusal(Refusal.NOT_READY))

    def _write(self, request: storage_pb2.Request, responder: Responder) -> bool:
        if not self.replica.may_write():
            responder.refuse(self._not_serving())
            return False
        if len(self._waiting) >= WAITING_MAX:
            responder.refuse(self._refusal(Refusal.OVERLOADED))
            return False
        if self._host.short_of_space and not self._shrinks(request):
            responder.refuse(self._refusal(Refusal.DISK_FULL))
            return False
        wall_ms = int(self._host.clock.wall() * 1000)
        position = self.replica.last_position + 1 + len(self._payloads)
        decision = self.partition.decide(request, wall_ms, position)
        if isinstance(decision, Propose):
            self._payloads.append(decision.payload)
            self._waiting[position] = [(responder, decision.reply)]
            self.usage.wrote(request, decision.reply)
            return True
        if isinstance(decision, Repeat):
            self._host.start_work(self._repeat(decision.position, responder))
            return False
        self.usage.answered(decision.reply)
        if decision.after:
            self._waiting[decision.after].append((responder, decision.reply))
        elif self._may_read():
            responder.write(decision.reply)
        else:
            # An answer without an entry says what the item is now, so it is as good as a strong read only under the
            # lease.
            responder.refuse(self._not_serving())
        return False

    def _shrinks(self, request: storage_pb2.Request) -> bool:
        """Whether the request may be done when the disk is nearly full. The ledger of transactions may be written:
        without it items stay marked, and nothing new is marked then."""
        if request.HasField("batch"):
            return all(action.HasField("delete") for action in request.batch.actions)
        schema = self.partition.schema
        return request.WhichOneof("operation") in SHRINKING or (schema is not None and bool(schema.internal))

    async def _repeat(self, position: int, responder: Responder) -> None:
        """Answer a retried write from its entry."""
        try:
            (entry, *_) = await self._host.read_log(self.partition_id, position, 1)
        except (LogTrimmed, LogCorrupt):
            responder.write(failure(internal(_TRIMMED), 0))
            return
        command = commands.decode(entry.payload)
        if isinstance(command, commands.WriteCommand):
            responder.write(storage_pb2.WriteReply.FromString(command.reply))
        else:
            assert isinstance(command, PrepareCommand | TransactCommand), "an operation id stands for a write"
            responder.write(storage_pb2.TransactReply.FromString(command.reply))

    def lose_state(self) -> None:
        """The store is about to be replaced by one that was made anew on this node."""
        self._stop_applying()
        self.perform(self.replica.lose_state(self._host.clock.boottime()))

    def state_restored(self) -> None:
        """It was: go on with the log from there."""
        self.state_replaced()
        self.perform(self.replica.restored(self.partition.applied.position))

    def state_replaced(self) -> None:
        """The store now holds another state, from a snapshot."""
        self._stop_applying()
        self.damage = NO_DAMAGE
        self.partition = self._make_partition()
        self._host.changed(self)

    def _make_partition(self) -> Partition:
        return Partition(self.store, item_collection_bytes_max=self._host.item_collection_bytes_max)

    def propose_gathered(self) -> None:
        """Propose what `handle` gathered, as one group of entries."""
        payloads, self._payloads = self._payloads, []
        self.perform(self.replica.propose(payloads, self._host.clock.boottime()))

    def learn(self, table_id: int, nodes: dict[int, int]) -> None:
        """Where the catalog says that replicas are. It says nothing of who the members are: that is the log's."""
        if table_id != self.table_id:
            self.table_id, self.usage = table_id, self._host.usages.of(table_id)
        self.nodes.update(nodes)

    def heard_from(self, replica: int, node: int) -> None:
        """Something came from another replica of the partition, which may be of a membership not known here."""
        if self.nodes.get(replica) != node:
            self.nodes[replica] = node

    def node_of(self, replica: int) -> int:
        """The node that holds it, 0 if that is not known."""
        return self.nodes.get(replica, 0)

    def drop(self) -> None:
        """The replica goes: nothing more is answered or sent."""
        self.dropped = True
        now = self._host.clock.boottime()
        self.perform(self.replica.step_down(now))
        self.perform(self.replica.leader_gone(self.replica.epoch, now))
        self._refuse_waiting()

    def want_schema(self, table: Table) -> None:
        """The catalog's description of the table; a leader that serves an older one writes it to the log."""
        self.wanted_schema = table
        self._propose_schema()

    def propose(self, payload: bytes) -> int:
        """Write an entry that no request led to, on a leader that may write; its position."""
        position = self.replica.last_position + 1 + len(self._payloads)
        self._payloads.append(payload)
        self.propose_gathered()
        return position

    def expire(self, keys: Sequence[bytes]) -> None:
        """Delete those of the items with these row keys whose time to live is over. Raises CorruptItem."""
        wall_ms = int(self._host.clock.wall() * 1000)
        for key in keys:
            position = self.replica.last_position + 1 + len(self._payloads)
            decision = self.partition.expire(key, wall_ms, position)
            if decision is not None:
                self._payloads.append(decision.payload)
                self._waiting[position] = []  # answers may come to rest on it
                self.usage.items_expired += 1
        self.propose_gathered()

    def _propose_schema(self) -> None:
        wanted, current = self.wanted_schema, self.partition.schema
        if wanted is None or not self.replica.may_write():
            return
        if current is None or current.schema_version < wanted.schema_version:
            self._payloads.append(self.partition.propose_schema(wanted))
            self.propose_gathered()

    # --- replication ---

    def step(self, message: Message) -> None:
        """A message from another replica."""
        self.perform(self.replica.step(message, self._host.clock.boottime()))

    def step_append(self, append: Append, framed: bytes, reply: Callable[[AppendReply | None], None]) -> None:
        """Entries from the leader, with their bytes as they came; `reply` is called once, when the answer may leave."""
        effects = self.replica.step(append, self._host.clock.boottime())
        answers = [message for message in effects.send_after_flush if isinstance(message, AppendReply)]
        whole = len(effects.append) == len(append.entries)
        self.perform(effects, framed if whole else None)
        if answers:
            self._host.flusher.after_flush(partial(reply, answers[0]))
        else:
            reply(None)

    def perform(self, effects: Effects, framed: bytes | None = None) -> None:
        """Do what the core says, in its order. `framed`: the bytes of `effects.append`, where they are known."""
        host = self._host
        if effects.save is not None:
            host.log.append_hard_state(self.partition_id, effects.save)
        if (covered := effects.covered) is not None:
            log = host.log.restart_partition if covered.restarts else host.log.append_snapshot
            log(self.partition_id, covered.epoch, covered.position)
            if covered.restarts and covered.membership.voters:
                host.log.append_membership(self.partition_id, covered.position, covered.membership.encode())
        if effects.append:
            host.log.append_entries(self.partition_id, effects.append, framed)
            last = effects.append[-1]
            host.flusher.appended(self, last.position, last.epoch)
        if effects.membership_changed:
            self._members_changed()
        for message in effects.send_at_once:
            host.send(self, message)
        for peer in effects.wake_peers:
            host.wake(self, peer)
        if effects.send_after_flush:
            self._after_flush(effects.send_after_flush)
        if effects.apply:
            self._apply(effects.apply)
        if effects.role_changed:
            self._role_changed()
        if effects.load is not None:
            host.start_work(self._load(*effects.load))
        if effects.install is not None:
            host.install(self)
        if self.replica.role == "leader" and self.replica.commit != self._commit_told:
            self._commit_told = self.replica.commit
            host.committed(self)
        host.watch(self)

    def _members_changed(self) -> None:
        for member in self.replica.membership.members:
            if member.node:
                self.nodes.setdefault(member.replica, member.node)
        self._host.members_changed(self)

    def _after_flush(self, messages: tuple[Message, ...]) -> None:
        def leave() -> None:
            for message in messages:
                if not isinstance(message, AppendReply):  # those leave with their batch: `step_append`
                    self._host.send(self, message)

        if any(not isinstance(message, AppendReply) for message in messages):
            self._host.flusher.after_flush(leave)

    def log_flushed(self, position: int, epoch: int) -> None:
        """FlushListener: this replica's log is durable up to `position`."""
        self.perform(self.replica.flushed(position, epoch))

    async def _load(self, first_position: int, last_position: int) -> None:
        """After a restart: committed entries that are not in memory come from the node's own log."""
        try:
            entries = await self._host.read_log(self.partition_id, first_position, LOAD_BYTES)
        except LogCorrupt as error:
            self._host.log_damaged(self, error)
            entries = ()
        self.perform(self.replica.loaded(tuple(entry for entry in entries if entry.position <= last_position)))

    def _apply(self, entries: tuple[Entry, ...]) -> None:
        self._unapplied += entries
        if not self._apply_waits:
            self._apply_what_waits()

    def _apply_what_waits(self) -> None:
        entries, self._unapplied = self._unapplied, []
        try:
            self.partition.apply(entries)
        except (StoreFull, StoreBroken) as error:
            applied = self.partition.applied.position
            self._unapplied = [entry for entry in entries if entry.position > applied]
            self._apply_waits = True
            self._cannot_apply(error)
        if entries[0].position <= (position := self.partition.applied.position):
            self._applied_to(position)

    def _cannot_apply(self, error: StoreFull | StoreBroken) -> None:
        if isinstance(error, StoreBroken):
            self._host.damaged(self, f"its store cannot be written ({error})", hidden=True)
        else:
            _log.error("partition %d waits for room on the disk (%s)", self.partition_id, error)
            self._host.start_work(self._apply_again(self.partition))

    async def _apply_again(self, partition: Partition) -> None:
        """Once there is room: until then nothing of what waits is answered."""
        await self._host.sleep(APPLY_AGAIN_SECONDS)
        if self.partition is partition and self._apply_waits and not self.dropped:
            self._apply_waits = False
            self._apply_what_waits()

    def _stop_applying(self) -> None:
        """What waits comes again from the log."""
        self._unapplied, self._apply_waits = [], False

    def _applied_to(self, position: int) -> None:
        self._answer_up_to(position)
        self.perform(self.replica.applied_to(position))
        self._propose_schema()
        if self.partition.readers.fills and self.replica.role == "leader":
            self._host.changed(self)

    def _answer_up_to(self, position: int) -> None:
        waiting = self._waiting
        for at in list(_up_to(waiting, position)):
            for responder, reply in waiting.pop(at):
                responder.write(reply)

    def _role_changed(self) -> None:
        leads = self.replica.role == "leader"
        if self._was_leader and not leads:
            self._refuse_waiting()
        self._was_leader = leads
        self._host.role_changed(self)
        self._propose_schema()
        if self.partition.readers.fills:
            self._host.changed(self)

    def _refuse_waiting(self) -> None:
        """Leadership is gone: what is not applied may or may not survive; the router's retry will tell by its id."""
        waiting, self._waiting = self._waiting, {}
        self._payloads.clear()
        self.partition.abandon()
        for responders in waiting.values():
            for responder, _ in responders:
                responder.refuse(self._refusal(Refusal.NOT_LEADER))

    def others_heard(self, leads: Mapping[int, LeaderBeats]) -> list[int]:
        """The other replicas that can lead, whose nodes have ever answered a beat, the last one first."""
        others = [replica for replica in self.replica.heirs if replica != self.replica.replica]
        at = {replica: leads.get(self.node_of(replica)) for replica in others}
        heard = {replica: beats.last_answer_at for replica, beats in at.items() if beats is not None}
        return sorted((replica for replica in heard if heard[replica] > NEVER), key=lambda replica: -heard[replica])

    def replica_on(self, node: int) -> int | None:
        """The id of the member that `node` holds."""
        members = self.replica.membership.members
        return next((member.replica for member in members if self.node_of(member.replica) == node), None)

    @property
    def waiting(self) -> int:
        """Writes that are proposed and not applied."""
        return len(self._waiting)

    @property
    def serving(self) -> bool:
        """Whether this replica leads, may write and knows its schema."""
        return self.replica.may_write() and self.partition.schema is not None


def _up_to(waiting: dict[int, list[tuple[Responder, WriteResult]]], position: int) -> list[int]:
    found = []
    for at in waiting:  # in order of position, since writes are proposed in that order
        if at > position:
            break
        found.append(at)
    return found
