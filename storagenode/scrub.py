"""The scrub: looks, all the time and slowly, for rows that are not what was written.

Each replica's rows are walked in turn: every row is checked by its own checksum, and the sum over all of them against
the one that apply has kept, which tells of rows that a flipped bit has hidden. The full segments of the log are read
as well. And leaders compare the sums of their replicas where all have stood (`row_agreement`): of three, the odd one is
wrong. What is found is repaired (`repair`).
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Iterator
from functools import partial
from typing import Any, Final, Protocol

from cluster.clock import Clock
from cluster.executor import Executor
from cluster.settings import StorageNodeSettings
from cluster.transport import Transport, TransportError
from cluster.wire import replication_pb2
from storagenode.hosted import HostedReplica
from storagenode.log.errors import LogCorrupt, LogTrimmed
from storagenode.log.node_log import NodeLog
from storagenode.repair import Repairs
from storagenode.row_agreement import judge
from storagenode.snapshots.keeper import SnapshotKeeper
from storagenode.snapshots.pace import Pace
from storagenode.snapshots.walking import ROW_BYTES, steps
from storagenode.storage.row_sums import RowWalk
from storagenode.storage.store import StoreBroken

METHOD: Final = "Peer/Sums"
COMPARE_SECONDS: Final = 10.0
LOG_BYTES: Final = 1 << 20
"""Of the log, looked at in one go."""
UNDECIDED_ROUNDS: Final = 3
"""So often in a row nobody can tell before it is said: a replica that is behind for a moment may tell soon."""
CALL_SECONDS: Final = 5.0
SHARE_OF_INTERVAL: Final = 0.5
"""A round begins after so much of the interval: what is damaged just after it was looked at is found in the next."""
PAUSE_SECONDS_MIN: Final = 0.1

_log = logging.getLogger(__name__)
_Sums = dict[int, dict[int, int]]


class ScrubHost(Protocol):
    """What the scrub needs of its node."""

    log: NodeLog

    @property
    def clock(self) -> Clock:
        """The node's clock."""
        ...

    @property
    def transport(self) -> Transport:
        """The node's network."""
        ...

    def hosted(self, partition: int) -> HostedReplica | None:
        """This node's replica of the partition."""
        ...

    def hosted_all(self) -> Iterator[HostedReplica]:
        """Every replica on this node."""
        ...

    def address_of(self, node: int) -> str | None:
        """Where that node listens."""
        ...

    def start_work(self, work: Coroutine[Any, Any, None]) -> object:
        """Run `work` beside everything else; its failure stops the node."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class Scrub:
    """Walks and compares; the numbers are for metrics."""

    def __init__(
        self,
        host: ScrubHost,
        node: int,
        repairs: Repairs,
        keeper: SnapshotKeeper,
        executor: Executor,
        settings: StorageNodeSettings,
    ) -> None:
        self._host = host
        self._node = node
        self._repairs = repairs
        self._keeper = keeper
        self._executor = executor
        self._cluster_id = settings.cluster_id
        self._interval = settings.scrub_interval
        self._pace = Pace(settings.scrub_bytes_per_second, host.clock, host.sleep, lambda: False)
        self._undecided: dict[int, int] = {}  # partition → rounds since when nobody can tell
        self.rows_checked = 0
        self.log_bytes_checked = 0
        self.replicas_checked = 0
        self.replicas_compared = 0
        self.damaged_rows = 0
        self.wrong_sums = 0
        self.differences = 0

    # --- the replica's own rows ---

    async def run(self) -> None:
        """Walk over all replicas, again and again, until cancelled."""
        while True:
            begun = self._host.clock.boottime()
            for hosted in list(self._host.hosted_all()):
                await self.check(hosted)
            await self.check_log()
            left = self._interval * SHARE_OF_INTERVAL - (self._host.clock.boottime() - begun)
            await self._host.sleep(max(left, PAUSE_SECONDS_MIN))

    async def check(self, hosted: HostedReplica) -> None:
        """Walk over one replica's rows."""
        if not _may_be_checked(hosted):
            return
        seen, work = 0, 0
        try:
            async for walk in steps(hosted.store, self._executor):
                if walk.void or not _may_be_checked(hosted):
                    return
                self.rows_checked += walk.rows - seen
                seen = walk.rows
                if walk.whole:
                    self._found(hosted, walk)
                before, work = work, walk.size + walk.rows * ROW_BYTES
                await self._pace.take(work - before)
        except StoreBroken as error:
            if _may_be_checked(hosted):
                self._repairs.damaged(hosted, f"its store cannot be read ({error})", hidden=True)

    def _found(self, hosted: HostedReplica, walk: RowWalk) -> None:
        self.replicas_checked += 1
        self.damaged_rows += walk.damaged_rows
        if walk.sum != hosted.store.row_sum():
            self.wrong_sums += 1
            reason = f"{walk.rows} rows are not those that were written"
            if walk.damaged:
                reason += f", {walk.damaged_rows} are damaged ({walk.damaged[0]})"
            self._repairs.damaged(hosted, reason, hidden=True)
        elif walk.damaged:
            reason = f"{walk.damaged_rows} rows are damaged ({walk.damaged[0]})"
            self._repairs.damaged(hosted, reason, hidden=False)

    # --- the node's log ---

    async def check_log(self) -> None:
        """Look at the full segments of the log."""
        log = self._host.log
        for segment in range(log.oldest_segment, log.current_segment):
            number = 0
            try:
                while True:
                    check = partial(log.check, segment, number, LOG_BYTES)
                    number, size = await self._executor.run(check)
                    self.log_bytes_checked += size
                    await self._pace.take(size)
                    if not number:
                        break
            except LogTrimmed:
                continue
            except LogCorrupt as error:
                self._keeper.let_go(error)

    # --- between replicas ---

    async def run_comparing(self) -> None:
        """Compare the partitions that are led here, again and again, until cancelled."""
        while True:
            await self._host.sleep(min(COMPARE_SECONDS, self._interval))
            await self.compare()

    async def compare(self) -> None:
        """Ask the other replicas of what is led here, one call per node."""
        questions: dict[int, replication_pb2.SumsRequest] = {}
        own: dict[int, dict[int, int]] = {}
        for hosted in self._host.hosted_all():
            if not hosted.serving or hosted.damage.reason:
                continue
            own[hosted.partition_id] = known = hosted.partition.row_sums.known()
            for replica, node in hosted.nodes.items():
                if replica != hosted.replica.replica and node:
                    asked = questions.setdefault(node, self._question(node)).replicas.add()
                    asked.partition, asked.replica = hosted.partition_id, replica
                    asked.positions.extend(known)
        found: dict[int, _Sums] = {}
        for node in sorted(questions):
            for answer in await self._ask(node, questions[node]):
                if not answer.positions:
                    continue  # it has stood at none of them yet
                sums = found.setdefault(answer.partition, {})
                sums[answer.replica] = dict(zip(answer.positions, _split(answer.sums), strict=False))
        for partition, sums in found.items():
            hosted_now = self._host.hosted(partition)
            if hosted_now is not None and hosted_now.serving:
                await self._judge(hosted_now, {hosted_now.replica.replica: own[partition], **sums})

    def _question(self, node: int) -> replication_pb2.SumsRequest:
        return replication_pb2.SumsRequest(cluster_id=self._cluster_id, from_node=self._node, to_node=node)

    async def _ask(self, node: int, question: replication_pb2.SumsRequest) -> list[replication_pb2.ReplicaSums]:
        address = self._host.address_of(node)
        if address is None:
            return []
        try:
            answer = await self._host.transport.call(address, METHOD, question.SerializeToString(), CALL_SECONDS)
        except TransportError:
            return []  # asked again soon
        return list(replication_pb2.SumsReply.FromString(answer).replicas)

    async def _judge(self, hosted: HostedReplica, sums: _Sums) -> None:
        verdict = judge(sums)
        self.replicas_compared += verdict.compared
        if verdict.undecided:
            rounds = self._undecided[hosted.partition_id] = self._undecided.get(hosted.partition_id, 0) + 1
            if rounds == UNDECIDED_ROUNDS:
                self.differences += 1
                _log.error(
                    "partition %d: its replicas differ, and nobody can tell which one is right: read the table's items "
                    "and compare them with a backup",
                    hosted.partition_id,
                )
            return
        self._undecided.pop(hosted.partition_id, None)
        if not verdict.odd:
            return
        self.differences += 1
        if verdict.odd == hosted.replica.replica:
            self._differs(hosted)
            return
        question = self._question(hosted.nodes[verdict.odd])
        question.replicas.add(partition=hosted.partition_id, replica=verdict.odd, differs=True)
        await self._ask(question.to_node, question)

    def _differs(self, hosted: HostedReplica) -> None:
        reason = "its rows differ from those of the two other replicas"
        self._repairs.damaged(hosted, reason, hidden=True, disowned=True)

    async def serve(self, message: bytes) -> bytes:
        """One call of a leader's."""
        request = replication_pb2.SumsRequest.FromString(message)
        reply = replication_pb2.SumsReply()
        if request.cluster_id != self._cluster_id or request.to_node != self._node:
            return reply.SerializeToString()
        for asked in request.replicas:
            hosted = self._host.hosted(asked.partition)
            if hosted is None or hosted.replica.replica != asked.replica or not _may_be_checked(hosted):
                continue
            if asked.differs:
                self._differs(hosted)
                continue
            known = hosted.partition.row_sums.known()
            positions = [position for position in asked.positions if position in known]
            sums = b"".join(known[position].to_bytes(16, "little") for position in positions)
            reply.replicas.add(partition=asked.partition, replica=asked.replica, positions=positions, sums=sums)
        return reply.SerializeToString()


def _may_be_checked(hosted: HostedReplica) -> bool:
    """Whether the replica has its state and nothing is known to be wrong with it."""
    return not (hosted.dropped or hosted.replica.lacks_state or hosted.damage.reason)


def _split(sums: bytes) -> list[int]:
    return [int.from_bytes(sums[at : at + 16], "little") for at in range(0, len(sums), 16)]
