"""Patches that break one rule each. The simulation must find every one of them within a bounded number of seeds:
a check that no mutant can fail proves nothing.

A mutant is a context manager that holds for one run. `PLANS` gives those the faults that bring them out, so that few
seeds suffice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from cluster.topology import CatalogUpdate
from cluster.wire import storage_pb2
from dynamo import codec
from replication.effects import HardState
from replication.heartbeats import BeatReply, LeaderBeats
from replication.leadership import Leadership
from replication.messages import Append, AppendReply, Entry, VoteRequest
from replication.replica import Replica
from router.context import RequestContext
from storagenode.flusher import Flusher
from storagenode.hosted import HostedReplica
from storagenode.links import PeerLink
from storagenode.log.node_log import NodeLog
from storagenode.node import StorageNode
from storagenode.partition import Answer, Decision, Partition
from storagenode.peers import Peers
from storagenode.requests import Responder
from storagenode.storage.store import WriteBatch
from storagenode.unwritten_answers import UnwrittenAnswers
from tests.simulation.faults.storm import DEFAULT_WEIGHTS
from tests.simulation.scenarios.storm import Features, Plan, run_storm
from tests.simulation.shape import Shape

Mutant: TypeAlias = Callable[[], AbstractContextManager[object]]
MUTANTS: Final[dict[str, Mutant]] = {}
PLANS: Final[dict[str, Plan]] = {}


def mutant(
    weights: Mapping[str, float] | None = None,
    *,
    clients: int = 6,
    think: tuple[float, float] = (0.005, 0.1),
    pause: tuple[float, float] = (0.1, 1.2),
    silence: float = 0.5,
    shape: Shape | None = None,
    features: Features | None = None,
) -> Callable[[Callable[[], Iterator[None]]], Mutant]:
    """Register a mutant with the faults, the cluster and the table that it is to be looked for with."""

    def register(function: Callable[[], Iterator[None]]) -> Mutant:
        name = function.__name__.replace("_", " ")
        MUTANTS[name] = contextmanager(function)
        PLANS[name] = Plan(
            seconds=30,
            weights=weights or DEFAULT_WEIGHTS,
            clients=clients,
            think=think,
            pause=pause,
            silence=silence,
            shape=shape or Shape(),
            features=features or Features(),
        )
        return MUTANTS[name]

    return register


def patched(target: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> AbstractContextManager[object]:
    """Replace a method by what `make` makes of it."""
    original = getattr(target, name)
    return patch.object(target, name, wraps(original)(make(original)))


CRASHES: Final = {"kill node": 2.0, "power loss": 3.0, "power loss while writing": 4.0, "kill while writing": 2.0}
_LOST_FLUSHES: Final = {
    "slow disk": 4.0,
    "power loss everywhere": 4.0,
    "power loss": 2.0,
    "power loss while writing": 2.0,
    "isolate": 2.0,
}
_DEPOSED: Final = {"leader cut off with a router": 6.0, "stopped process": 1.0, "slow machine": 2.0, "kill router": 1.0}
SPLITS: Final = {"two sides": 4.0, "stopped process": 2.0, "split a node from the others": 2.0, **_DEPOSED}
ELECTIONS: Final = {**CRASHES, **SPLITS, "isolate": 2.0, "hand over": 2.0}
LOSSES: Final = {"lost clients": 4.0, "kill node": 2.0, "broken connections": 2.0, "kill router": 2.0}


# --- the quorum ---


@mutant(ELECTIONS)
def acknowledge_before_the_quorum() -> Iterator[None]:
    """A leader counts an entry as committed once it is on its own disk."""
    with patched(Leadership, "replicated", lambda _: lambda _self, durable: durable):
        yield


@mutant(ELECTIONS)
def acknowledge_when_proposed() -> Iterator[None]:
    """The client hears that its write is done while it is under way."""

    def make(original: Any) -> Any:
        def propose(self: HostedReplica) -> None:
            for responders in self._waiting.values():
                for responder, reply in responders:
                    responder.write(reply)
            original(self)

        return propose

    with patched(HostedReplica, "propose_gathered", make):
        yield


@mutant(_LOST_FLUSHES)
def acknowledge_before_the_flush() -> Iterator[None]:
    """A follower's acknowledgements and votes do not wait for its disk."""
    with patched(Flusher, "after_flush", lambda _: lambda _self, callback: callback()):
        yield


@mutant({"leader forgets, its witness is away": 1.0}, pause=(2.0, 5.0))
def count_the_own_log_before_the_flush() -> Iterator[None]:
    """A leader counts its own entries as soon as they are in memory."""

    def make(original: Any) -> Any:
        return lambda self, _durable: original(self, self._log.last_position)

    with patched(Leadership, "replicated", make):
        yield


@mutant({"split a node from the others": 4.0, "slow network": 4.0, "slow machine": 3.0, "kill node": 1.0})
def believe_a_commit_beyond_what_matches() -> Iterator[None]:
    """A follower takes its leader's commit for entries that it has not compared."""

    def hear(self: Replica, position: int) -> None:
        self._commit_to(min(position, self._log.last_position))

    with patched(Replica, "_hear_commit", lambda _: hear):
        yield


# --- elections ---


@mutant({"voter restarted between two leaders": 1.0}, clients=20, think=(0.02, 0.2), silence=0.1, pause=(1.5, 3.5))
def ignore_the_epoch_on_append() -> Iterator[None]:
    """A follower takes entries of a leader that was deposed."""

    def make(original: Any) -> Any:
        def step(self: Replica, message: Append, now: float, duties: Any) -> None:
            if message.epoch >= self.epoch or self._leading is not None:
                original(self, message, now, duties)
                return
            accepted, match, hint = self._take(message, duties)
            reply = AppendReply(self.replica, message.sender, message.epoch, accepted, match, hint)
            duties.send_after_flush.append(reply)

        return step

    with patched(Replica, "_step_append", make):
        yield


@mutant(ELECTIONS)
def vote_for_any_log() -> Iterator[None]:
    """A voter does not compare logs."""

    def up_to_date(_self: Replica, _request: VoteRequest) -> bool:
        return True

    with patched(Replica, "_up_to_date", lambda _: up_to_date):
        yield


@mutant({**CRASHES, "kill all nodes": 2.0, "power loss everywhere": 3.0})
def forget_to_sync_the_vote() -> Iterator[None]:
    """Epoch and vote do not get to the log."""

    def append(_self: NodeLog, _partition: int, _state: HardState) -> None:
        return None

    with patched(NodeLog, "append_hard_state", lambda _: append):
        yield


# --- leases ---


@mutant({"leader cut off, its voter restarted": 1.0}, clients=20, think=(0.02, 0.2), silence=0.1, pause=(1.0, 3.0))
def skip_the_lease_wait() -> Iterator[None]:
    """A new leader serves at once."""
    with patch("replication.elections.serve_from", lambda _timing, _left, now: now):
        yield


@mutant({"voter restarted beside its leader": 1.0}, clients=6, think=(0.02, 0.2), pause=(3.5, 5.0))
def one_beat_renews_every_lease() -> Iterator[None]:
    """An answer from a node counts for all partitions that are led beside it, whatever it says of them, and a node that
    is back is not asked whom its replicas follow."""

    def make(original: Any) -> Any:
        def answered(self: LeaderBeats, reply: BeatReply, now: float) -> tuple[int, ...]:
            original(self, reply, now)
            self._refused = {}
            return ()

        return answered

    def lane_changed(self: Peers, link: PeerLink) -> None:
        for hosted in self._host.hosted_all():
            if (peer := hosted.replica_on(link.node)) is not None:
                hosted.replica.lane_broken(peer)

    with (
        patched(LeaderBeats, "answered", make),
        patched(Peers, "lane_changed", lambda _: lane_changed),
    ):
        yield


@mutant({"leader suspended with a router": 1.0}, clients=20, think=(0.02, 0.2), silence=0.1, pause=(1.0, 3.0))
def read_without_a_lease() -> Iterator[None]:
    """A leader reads for as long as it believes that it leads."""

    def may_read(self: Replica, _now: float) -> bool:
        return self.may_write()

    with patched(Replica, "may_read", lambda _: may_read):
        yield


@mutant({"leader suspended with a router": 1.0}, clients=20, think=(0.02, 0.2), silence=0.1, pause=(1.0, 3.0))
def refuse_without_a_lease() -> Iterator[None]:
    """A leader's refusals, which rest on its state as reads do, need no lease."""

    def make(original: Any) -> Any:
        def write(self: HostedReplica, request: storage_pb2.Request, responder: Responder) -> bool:
            with patch.object(self, "_may_read", lambda: True):
                done: bool = original(self, request, responder)
                return done

        return write

    with patched(HostedReplica, "_write", make):
        yield


@mutant({"leader hears late, then is not heard": 1.0}, clients=20, think=(0.02, 0.2), silence=0.1, pause=(1.0, 2.5))
def count_the_lease_from_the_answer() -> Iterator[None]:
    """A leader counts its lease from when an answer came, not from when its beat left."""

    def make(original: Any) -> Any:
        def answered(self: LeaderBeats, reply: BeatReply, now: float) -> tuple[int, ...]:
            refused: tuple[int, ...] = original(self, reply, now)
            if self._answered == reply.sequence:
                self._answered_sent_at = now
            return refused

        return answered

    with patched(LeaderBeats, "answered", make):
        yield


@mutant({"leader cut off after handing over": 1.0}, clients=20, think=(0.02, 0.2), silence=0.1, pause=(0.5, 2.0))
def resume_reads_after_a_hand_over() -> Iterator[None]:
    """A leader that ordered another to stand goes on serving."""

    def serves(self: Leadership, applied: int) -> bool:
        return self.waited and applied >= self.first_of_epoch

    with patched(Leadership, "serves", lambda _: serves):
        yield


# --- what is applied, and what is read ---


@mutant({"leader cut off with a router": 1.0}, clients=20, think=(0.02, 0.2), silence=0.1, pause=(1.0, 2.5))
def read_unapplied_state() -> Iterator[None]:
    """Reads see writes that are still under way."""

    def get(self: Partition, request: storage_pb2.Get) -> storage_pb2.ItemReply:
        old, _ = self.current(request.key)
        if old.stored is None:
            return storage_pb2.ItemReply()
        return storage_pb2.ItemReply(item=old.body, size=codec.size_of(old.stored))

    with patched(Partition, "get", lambda _: get):
        yield


@mutant({"leader cut off with a router": 1.0}, clients=20, think=(0.02, 0.2), silence=0.1, pause=(1.0, 2.5))
def refuse_by_a_write_under_way() -> Iterator[None]:
    """A refusal that rests on a write under way does not wait for it."""

    def make(original: Any) -> Any:
        def decide(self: Partition, request: storage_pb2.Request, wall_ms: int, position: int) -> Decision:
            decision: Decision = original(self, request, wall_ms, position)
            if isinstance(decision, Answer) and isinstance(decision.reply, storage_pb2.Failure):
                return Answer(decision.reply, 0)
            return decision

        return decide

    with patched(Partition, "decide", make):
        yield


@mutant(ELECTIONS)
def apply_the_clock() -> Iterator[None]:
    """Apply takes something from outside of the log."""

    def make(original: Any) -> Any:
        def apply(self: Partition, entries: Sequence[Entry]) -> None:
            late = int(asyncio.get_running_loop().time()) % 2
            original(self, entries)
            applied = self._store.applied()
            if late:
                self._store.write(WriteBatch(replace(applied, size=applied.size + 1)))

        return apply

    with patched(Partition, "apply", make):
        yield


@mutant()
def drop_by_absence() -> Iterator[None]:
    """A node drops replicas that an update of the catalog does not name."""

    def make(original: Any) -> Any:
        def follow(self: StorageNode, change: CatalogUpdate) -> None:
            original(self, change)
            named = {partition.id for partition in change.partitions}
            for hosted in self.replicas:
                if hosted.partition_id not in named:
                    self.start_work(self.replicas._drop(hosted))

        return follow

    with patched(StorageNode, "_follow", make):
        yield


# --- once, however often it is sent ---


@mutant(LOSSES)
def forget_operation_ids_at_failover() -> Iterator[None]:
    """Only the leader of the time remembers what was done."""

    def make(original: Any) -> Any:
        def after_apply(self: Partition, taken: Any) -> None:
            if not self._in_flight:
                taken.batch.operation_ids = None
            original(self, taken)

        return after_apply

    with patched(Partition, "_after_apply", make):
        yield


@mutant({"kill all nodes": 3.0, "lost clients": 4.0, "kill node": 3.0})
def forget_operation_ids_at_restart() -> Iterator[None]:
    """Operation ids are not read back from the store."""

    def make(original: Any) -> Any:
        def start(self: Partition, store: Any, *others: Any, **named: Any) -> None:
            with patch.object(type(store), "operation_ids", lambda _: iter(())):
                original(self, store, *others, **named)

        return start

    with patched(Partition, "__init__", make):
        yield


@mutant({"mixed up messages": 1.0}, clients=8, think=(0.001, 0.01))
def do_again_what_was_refused() -> Iterator[None]:
    """A leader does not remember what it answered without an entry of the log."""
    with patched(UnwrittenAnswers, "find", lambda _: lambda _self, _operation_id, _applied: None):
        yield


@mutant(LOSSES)
def give_every_try_an_id_of_its_own() -> Iterator[None]:
    """A router does not derive operation ids from the SDK's invocation id."""

    def source(self: RequestContext) -> bytes:
        return self.random.bytes(16)

    with patched(RequestContext, "_source", lambda _: source):
        yield


def seeds_until_found(name: str, seeds: Sequence[int]) -> tuple[int, str] | None:
    """How many of these seeds it took to find the mutant, and by what; None when none did."""
    for number, seed in enumerate(seeds, 1):
        outcome = run_storm(seed, PLANS[name], MUTANTS[name])
        if outcome.violations:
            return number, outcome.violations[0]
    return None
