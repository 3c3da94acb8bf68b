"""Makes the rows of a damaged replica anew: from this node's own snapshot and log, or from another's.

Meanwhile the replica gives out nothing and another one leads. Its old store stays until the new one is there, with all
its rows looked at: if all replicas turn out to be damaged, each still has what it had.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, Protocol

from cluster.executor import Executor
from storagenode.hosted import HostedReplica
from storagenode.log.errors import LogCorrupt
from storagenode.log.node_log import NodeLog
from storagenode.snapshots.folder import SnapshotCorrupt, SnapshotFolder
from storagenode.snapshots.installer import Installer
from storagenode.snapshots.keeper import SnapshotKeeper
from storagenode.snapshots.walking import RowsDamaged
from storagenode.storage.store import Restoration, StoreError, Stores

HAND_OVER_SECONDS: Final = 2.0
"""How long another replica may take to lead."""
STEP_SECONDS: Final = 0.05
AGAIN_SECONDS_FIRST: Final = 1.0
AGAIN_SECONDS_MAX: Final = 600.0
"""Between tries that found nothing to repair it with."""

REMEDY: Final = (
    "neither its own snapshot and log nor another replica is whole; its intact rows are served, requests that "
    "meet a damaged one fail: write the items that are missing again, or load the table from a backup"
)

_log = logging.getLogger(__name__)


class RepairHost(Protocol):
    """What repairs need of their node."""

    log: NodeLog

    def hand_over(self, hosted: HostedReplica, avoiding: frozenset[int] = frozenset()) -> int:
        """Let another replica lead, if one can; its id, else 0."""
        ...

    def start_work(self, work: Coroutine[Any, Any, None]) -> object:
        """Run `work` beside everything else; its failure stops the node."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class Repairs:
    """One repair per partition at a time."""

    def __init__(
        self,
        host: RepairHost,
        folder: SnapshotFolder,
        stores: Stores,
        keeper: SnapshotKeeper,
        installer: Installer,
        executor: Executor,
    ) -> None:
        self._host = host
        self._folder = folder
        self._stores = stores
        self._keeper = keeper
        self._installer = installer
        self._executor = executor
        self._busy: set[int] = set()
        self.repaired = 0

    def damaged(self, hosted: HostedReplica, reason: str, *, hidden: bool, disowned: bool = False) -> None:
        """Rows of this replica are not what was written. Nothing more to do if that is known."""
        before = hosted.damage
        hosted.damage = before._replace(
            reason=before.reason or reason, hidden=before.hidden or hidden, disowned=before.disowned or disowned
        )
        if not hosted.dropped and hosted.partition_id not in self._busy:
            self._busy.add(hosted.partition_id)
            _log.error("partition %d: %s; the replica's rows are made anew", hosted.partition_id, reason)
            self._host.start_work(self._repair(hosted))

    def log_damaged(self, hosted: HostedReplica, error: LogCorrupt) -> None:
        """What the replica is to apply cannot be read: it has its state from another one that has applied it."""
        self._keeper.let_go(error)
        hosted.damage = hosted.damage._replace(covers=hosted.replica.commit)
        hosted.lose_state()
        self.damaged(hosted, "the log that it goes on with is damaged", hidden=True, disowned=True)

    async def _repair(self, hosted: HostedReplica) -> None:
        offered: set[int] = set()
        pause = AGAIN_SECONDS_FIRST
        try:
            while hosted.damage.reason and not hosted.dropped:
                await self._let_another_lead(hosted, offered)
                if await self._from_own(hosted) or await self._from_another(hosted):
                    break
                await self._host.sleep(pause)
                pause = min(2 * pause, AGAIN_SECONDS_MAX)
        finally:
            self._busy.discard(hosted.partition_id)
        if not hosted.dropped:
            self.repaired += 1
            _log.warning("partition %d is whole again", hosted.partition_id)

    async def _let_another_lead(self, hosted: HostedReplica, offered: set[int]) -> None:
        """Each of the others once: were all replicas damaged, leaders would go round in circles."""
        if hosted.replica.role == "leader" and (heir := self._host.hand_over(hosted, frozenset(offered))):
            offered.add(heir)
            waited = 0.0
            while hosted.replica.role == "leader" and waited < HAND_OVER_SECONDS:
                await self._host.sleep(STEP_SECONDS)
                waited += STEP_SECONDS

    # --- from what this node has ---

    async def _from_own(self, hosted: HostedReplica) -> bool:
        """Snapshot and log, or the log alone if it is whole. The log brings the rest once the store is in place."""
        if hosted.damage.disowned or hosted.replica.lacks_state:
            return False
        async with self._keeper.bulk:
            restoration = await self._made_of_own(hosted)
            if restoration is None:
                return False
            if hosted.dropped:
                await self._executor.run(restoration.discard)
                return True
            hosted.lose_state()
            restoration.place(hosted.store)
            hosted.state_restored()
        return True

    async def _made_of_own(self, hosted: HostedReplica) -> Restoration | None:
        first = hosted.replica.first_position
        snapshot = self._folder.newest(hosted.partition_id, hosted.replica.replica)
        try:
            if snapshot is not None and snapshot.position >= first - 1:
                restoration, _ = await self._keeper.restore(hosted, snapshot)
                return restoration
        except (SnapshotCorrupt, RowsDamaged) as error:
            _log.error("partition %d cannot be made anew from its snapshot: %s", hosted.partition_id, error)
        except (OSError, StoreError) as error:
            _log.error("partition %d cannot be made anew now: %s", hosted.partition_id, error)
            return None
        if first > 1:
            return None
        restoration = await self._executor.run(
            partial(self._stores.restore, hosted.partition_id, hosted.replica.replica)
        )
        await self._executor.run(restoration.open_empty)
        return restoration

    # --- from another replica ---

    async def _from_another(self, hosted: HostedReplica) -> bool:
        """The leader first, then the others. A leader has let the others lead, and they came back to it."""
        replica = hosted.replica
        others = [each for each in hosted.nodes if each != replica.replica]
        if replica.role == "leader":
            self._beyond_repair(hosted)
            return False
        async with self._keeper.bulk:  # what is damaged must not stand beside what comes
            await self._executor.run(partial(self._folder.remove_all, hosted.partition_id, replica.replica))
        hopeful = False
        for source in sorted(others, key=lambda each: each != replica.leader):
            if hosted.dropped:  # and with it what the log knew of it
                return False
            replica.want_state(max(hosted.damage.covers, self._host.log.snapshot_position(hosted.partition_id)))
            hopeful |= await self._installer.mend(hosted, source)
            replica.want_no_state()  # a replica that waits for another's state takes no snapshots of its own
            if not hosted.damage.reason:
                return True
        if not hopeful:
            self._beyond_repair(hosted)
        return False

    def _beyond_repair(self, hosted: HostedReplica) -> None:
        if not hosted.damage.beyond_repair:
            hosted.damage = hosted.damage._replace(beyond_repair=True)
            _log.error("partition %d is damaged beyond repair: %s", hosted.partition_id, REMEDY)
