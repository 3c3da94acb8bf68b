"""This process's part in auto-admin's replicated log: it does what the replication core says, and lets the leader's
changes through. Start here to read how auto-admin survives; founding.py says who may vote, gathering.py how members
come together.

This is shell, as storagenode's is for partitions, for one log and a handful of changes a second: a call for each
message, one transaction for each flush. A write that fails leaves the disk as it was, so that the member starts over
from there, as after a crash.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from random import Random
from typing import Any, Protocol

from autoadmin.catalog import Catalog, Change
from autoadmin.peers import MemberContact, Peer
from autoadmin.records import MemberRecord
from autoadmin.replicated_log import ReplicatedLog
from autoadmin.state import StateError, StateStore
from autoadmin.wire import PARTITION, change_from_wire, decode_change, encode_change
from cluster.clock import Clock
from cluster.executor import Executor
from cluster.random_source import RandomSource
from cluster.settings import AutoAdminSettings
from cluster.topology import Topology
from cluster.transport import Transport
from cluster.wire import members_pb2
from replication.effects import Effects, Fetch, Install
from replication.heartbeats import FollowerBeats, LeaderBeats
from replication.lease import NEVER
from replication.membership import UNKNOWN, Membership
from replication.messages import NORMAL, AppendReply, Entry, Message, VoteReply
from replication.replica import Replica
from replication.timing import Timing

FULL_PAUSE_SECONDS = 0.5
"""Between two tries to write when the disk is full or broken."""
SNAPSHOT_SECONDS = 10.0
CHECKS_PER_BEAT = 3
STOP_SECONDS = 1.0
"""How long a clean stop waits for another member to lead."""
_STOP_STEP_SECONDS = 0.02

_log = logging.getLogger(__name__)


class NotLeader(Exception):  # noqa: N818
    """Another member leads, or none: nothing was done."""


class LeadershipLost(Exception):  # noqa: N818
    """The change was proposed, and this member can no longer tell whether it comes about."""


class Machine(Protocol):
    """What is replicated: the catalog, and who wants to know of the role."""

    @property
    def catalog(self) -> Catalog:
        """The catalog as it was applied last."""
        ...

    def apply(self, change: Change) -> bool:
        """Carry out a committed change; False if it does not fit, on any member, and is void."""
        ...

    def restore(self, catalog: Catalog) -> None:
        """Take this catalog, whatever there was."""
        ...

    def role_changed(self) -> None:
        """This member serves from now on, or no longer, or another one leads."""
        ...


class Member:
    """`core` is the replica; None while this member is of no group, or starts over."""

    def __init__(
        self,
        settings: AutoAdminSettings,
        store: StateStore,
        transport: Transport,
        executor: Executor,
        clock: Clock,
        random: RandomSource,
        machine: Machine,
    ) -> None:
        self.cluster_id = settings.cluster_id
        self.clock = clock
        self.transport = transport
        self.random = random
        self.log = ReplicatedLog(store, executor)
        self.contact = MemberContact()
        self.peers = [Peer(self, address) for address in settings.others]
        self.timing = Timing() if settings.others else Timing(drift=0.0)  # nobody else's clock matters then
        self.core: Replica | None = None
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._machine = machine
        self._dice = Random(random.below(1 << 62))
        self._applied = 0
        self._snapshot: Change | None = None
        self._installing = False
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self._commit_told = 0
        self._deadline_moved = asyncio.Event()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._told_of_failure = False

    # --- what is asked of it ---

    @property
    def record(self) -> MemberRecord:
        """Who this member is."""
        return self.log.record

    @property
    def serving(self) -> bool:
        """Whether this member leads and may change the catalog."""
        return self.core is not None and self.core.may_write()

    @property
    def may_read(self) -> bool:
        """Whether the catalog here is the newest there is. Ask before an answer leaves."""
        return self.core is not None and self.core.may_read(self.clock.boottime())

    @property
    def leader_address(self) -> str:
        """Where the leader listens, if it is another member that is known; else empty."""
        leader = 0 if self.core is None else self.core.leader
        return next((peer.address for peer in self.peers if leader and peer.replica == leader), "")

    def propose(self, change: Change) -> asyncio.Future[bool]:
        """Have a change of the newest catalog replicated; done once it is applied here, False if it was void.

        Raises NotLeader; the future raises LeadershipLost.
        """
        core = self.core
        if core is None or not core.may_write():
            raise NotLeader
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[core.last_position + 1] = done
        self.perform(core.propose([encode_change(change)], self.clock.boottime()))
        return done

    # --- life ---

    def start(self) -> None:
        """Take part, until `stop`."""
        self.start_work(self.log.run(self._flushed, self._start_over))
        self.start_work(self._run_deadlines())
        for peer in self.peers:
            self.start_work(peer.run())

    async def stop(self) -> None:
        """Let another member lead, then take part no longer."""
        waited = 0.0
        self.hand_over()
        while waited < STOP_SECONDS and self.core is not None and self.core.role == "leader" and self._heirs(self.core):
            await asyncio.sleep(_STOP_STEP_SECONDS)
            waited += _STOP_STEP_SECONDS
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def hand_over(self) -> None:
        """Let another member lead, if this one does and another can."""
        core = self.core
        if core is not None and core.role == "leader" and (heirs := self._heirs(core)):
            self.perform(core.hand_over(heirs[0], self.clock.boottime()))

    def _heirs(self, core: Replica) -> list[int]:
        """The other voters that are there, the one with most of the log first."""
        now = self.clock.boottime()
        there = {peer.replica for peer in self.peers if now - peer.heard_at < self.timing.lease}
        heirs = [replica for replica in core.heirs if replica in there]
        return sorted(heirs, key=lambda replica: -(core.match_of(replica) or 0))

    def start_work(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside everything else; its failure is that of the member (`failure`)."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None and not self.failure.done():
            _log.error("this member of auto-admin cannot go on", exc_info=error)
            self.failure.set_exception(error)

    def open(self, *, restarted: bool) -> None:
        """Become a replica on what the log holds, and stand at once where nobody else votes."""
        record, now = self.record, self.clock.boottime()
        base = Membership.decode(record.membership) if record.membership else UNKNOWN
        alone = (self.log.membership() or UNKNOWN).replicas() == (record.replica,)
        self.core = Replica(
            replica=record.replica,
            membership=base,
            timing=self.timing,
            random=self._dice,
            hard_state=self.log.hard_state,
            log=self.log.summary(),
            applied=self._applied,
            now=now,
            restarted_at=now if restarted and not alone else NEVER,
            contact=self.contact,
        )
        if alone:
            self.perform(self.core.stand(now))
        self._deadline_moved.set()

    def restored(self, catalog: Catalog | None) -> None:
        """The catalog that is durable is the one that counts, as of `record.applied`."""
        self._applied = self.record.applied
        if catalog is not None:
            self._machine.restore(catalog)

    async def _start_over(self, error: Exception) -> None:
        """What was to be written is not: forget it, and begin with what the disk holds."""
        if not self._told_of_failure:
            _log.error("the state cannot be written (%s): no change is taken until it can be", error)
        self._told_of_failure = True
        self.core = None
        self._lose_waiting(LeadershipLost() if self.peers else OSError(str(error)))  # alone nobody else can have it
        self._machine.role_changed()
        while True:
            await asyncio.sleep(FULL_PAUSE_SECONDS)
            try:
                stored = await self.log.load()
                break
            except (OSError, StateError):
                _log.exception("the state cannot be read")
        if self.record.applied > self._applied:
            self.restored(stored.catalog)
        if self.record.group:
            self.open(restarted=True)

    # --- the core ---

    def perform(self, effects: Effects) -> None:
        """Do what the core says, in its order."""
        if effects.save is not None:
            self.log.save(effects.save)
        if effects.covered is not None:
            assert self._snapshot is not None, "a log is covered by the snapshot that is being installed"
            self.log.cover(effects.covered, self._snapshot)
        if effects.append:
            self.log.append(effects.append)
        self._send(effects.send_at_once)
        for peer in self.peers:
            if peer.replica in effects.wake_peers:
                peer.wake()
        if effects.send_after_flush:
            self.log.after_flush(lambda durable: self._send(effects.send_after_flush) if durable else None)
        if effects.apply:
            self._apply(effects.apply)
        if effects.role_changed:
            self._role_changed()
        if effects.load is not None:
            self._load(*effects.load)
        if effects.install is not None:
            self.start_work(self._install(effects.install))
        self._tell_commit()
        self._deadline_moved.set()

    def take(self, message: Message) -> None:
        """A message for the core that needs no answer."""
        if self.core is not None:
            self.perform(self.core.step(message, self.clock.boottime()))

    def _send(self, messages: tuple[Message, ...]) -> None:
        """Questions and orders; an answer travels with the call that it belongs to."""
        for message in messages:
            if not isinstance(message, VoteReply | AppendReply):
                for peer in self.peers:
                    if peer.replica == message.to:
                        peer.send(message)

    def _apply(self, entries: tuple[Entry, ...]) -> None:
        for entry in entries:
            change = decode_change(entry.payload) if entry.kind == NORMAL else None
            taken = change is not None and self._machine.apply(change)
            self._applied = entry.position
            self.log.applied(entry.position, change if taken else None)
            if (done := self._waiting.pop(entry.position, None)) is not None and not done.done():
                done.set_result(taken)
        if self.core is not None:
            self.perform(self.core.applied_to(self._applied))

    def _load(self, first: int, last: int) -> None:
        if self.core is not None:
            entries = self.log.read(first, 1 << 30)
            self.perform(self.core.loaded([entry for entry in entries if entry.position <= last]))

    def _role_changed(self) -> None:
        core = self.core
        if core is None or core.role != "leader":
            self._lose_waiting(LeadershipLost())
        elif not core.may_write():
            self.beat()  # the lease hangs on it
        self._machine.role_changed()

    def _lose_waiting(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, {}
        for done in waiting.values():
            if not done.done():
                done.set_exception(error)

    def _tell_commit(self) -> None:
        core = self.core
        if core is not None and core.role == "leader" and core.commit != self._commit_told:
            self._commit_told = core.commit
            for beats in self.contact.leads.values():
                beats.commit_moved(PARTITION, core.commit)

    def _flushed(self, position: int, epoch: int) -> None:
        core = self.core
        if core is None:
            return
        self._told_of_failure = False
        self.perform(core.flushed(position, epoch))
        if core.first_position < self.log.first_position and not core.lacks_state:
            core.trimmed(self.log.first_position)

    async def _run_deadlines(self) -> None:
        while True:
            self._deadline_moved.clear()
            now = self.clock.boottime()
            wait = None if self.core is None else self.core.deadline()
            if self.core is not None and wait is not None and wait <= now:
                self.perform(self.core.tick(now))
                wait = self.core.deadline()
            try:
                async with asyncio.timeout(None if wait is None else max(wait - now, 0.001)):
                    await self._deadline_moved.wait()
            except TimeoutError:
                continue

    # --- for peers.py and gathering.py ---

    def frame(self, to_replica: int) -> members_pb2.Frame:
        """An empty frame for that replica; 0: for whoever is there."""
        record = self.record
        return members_pb2.Frame(
            cluster_id=self.cluster_id, group=record.group, from_replica=record.replica, to_replica=to_replica
        )

    def entries(self, fetch: Fetch) -> tuple[Entry, ...]:
        """Entries that the core no longer has in memory."""
        return self.log.read(fetch.first_position, fetch.max_bytes)

    def heard(self, peer: Peer) -> None:
        """The peer said who it is."""
        if peer.replica == self.record.replica:
            if peer.address:
                _log.error("%s is this auto-admin itself, and not one of its peers", peer.address)
            peer.replica = 0
        else:
            self.know(peer.replica)

    def know(self, replica: int) -> FollowerBeats:
        """The beats from this replica, which are there from its first word on."""
        if replica not in self.contact.follows:
            leads = LeaderBeats(self.record.incarnation << 32)
            self.contact.know(replica, leads, FollowerBeats(self.timing, self._dice))
        return self.contact.follows[replica]

    def not_followed(self, replica: int) -> None:
        """A peer answered a beat without following."""
        if self.core is not None:
            self.perform(self.core.not_followed(replica))

    def beat(self) -> None:
        """Tell the others that this member leads, or ask who they are."""
        leads = self.core is not None and self.core.role == "leader"
        for peer in self.peers:
            peer.beat(self.contact.leads.get(peer.replica) if leads else None)

    # --- snapshots ---

    async def _install(self, install: Install) -> None:
        """Bring the whole catalog from the leader, and go on from there."""
        peer = next((peer for peer in self.peers if peer.replica == install.source), None)
        if self._installing or peer is None:
            return
        self._installing = True
        try:
            frame = self.frame(install.source)
            frame.snapshot.position = install.position
            reply = await peer.call(frame, SNAPSHOT_SECONDS)
            if reply is not None and reply.HasField("snapshot"):
                await self._put_in_place(reply.snapshot)
        finally:
            self._installing = False

    async def _put_in_place(self, snapshot: members_pb2.Snapshot) -> None:
        core = self.core
        if core is None or core.wanted_snapshot is None or core.wanted_snapshot > snapshot.position:
            return  # asked for again with the next Append
        self._snapshot = change_from_wire(snapshot.catalog)
        catalog = Catalog(Topology().with_update(self._snapshot.update), self._snapshot.counters)
        membership = Membership.decode(snapshot.membership)
        self.perform(core.install(snapshot.position, snapshot.epoch, membership))
        if await self.log.flushed() and self.core is core:
            self.restored(catalog)
            self._applied = snapshot.position
            self.perform(core.installed())
            _log.info("the catalog was brought from the leader, as of position %d", snapshot.position)
