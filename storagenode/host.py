"""What a replica needs of the node that it is on."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from cluster.clock import Clock
from cluster.wire import storage_pb2
from replication.messages import Entry, Message
from storagenode.flusher import Flusher
from storagenode.log.errors import LogCorrupt
from storagenode.log.node_log import NodeLog
from storagenode.requests import Responder
from storagenode.usage import Usages

if TYPE_CHECKING:
    from storagenode.hosted import HostedReplica


class RegionReads(Protocol):
    """Answers what replicators of global tables ask."""

    def handle(self, hosted: HostedReplica, request: storage_pb2.Request, responder: Responder) -> None:
        """Answer a request of `REGION_KINDS`. Raises CorruptItem."""


class Host(Protocol):
    """What a replica needs of its node."""

    clock: Clock
    log: NodeLog
    flusher: Flusher
    usages: Usages

    @property
    def regions(self) -> RegionReads:
        """Who answers the replicators of global tables."""
        ...

    @property
    def item_collection_bytes_max(self) -> int:
        """What the items of one partition key may come to, in tables with local indexes."""
        ...

    @property
    def short_of_space(self) -> bool:
        """Whether writes that may grow the data are to be refused."""
        ...

    def send(self, hosted: HostedReplica, message: Message) -> None:
        """Bring `message` to the replica that it names."""
        ...

    def wake(self, hosted: HostedReplica, peer: int) -> None:
        """There are entries for replica `peer`; fetch them when the lane to its node is free."""
        ...

    def role_changed(self, hosted: HostedReplica) -> None:
        """Leadership was gained or lost, or another leader is known."""
        ...

    def members_changed(self, hosted: HostedReplica) -> None:
        """The partition has other members, or voters, than before."""
        ...

    def committed(self, hosted: HostedReplica) -> None:
        """The leader's commit position moved."""
        ...

    def changed(self, hosted: HostedReplica) -> None:
        """There may be news for the readers of the partition's change rows."""
        ...

    def install(self, hosted: HostedReplica) -> None:
        """The replica needs a snapshot from its leader."""
        ...

    def watch(self, hosted: HostedReplica) -> None:
        """The replica's deadline may have changed."""
        ...

    def start_work(self, work: Coroutine[Any, Any, None]) -> object:
        """Run `work` beside everything else; its failure stops the node."""
        ...

    def hand_over(self, hosted: HostedReplica) -> int:
        """Let another replica lead, if one can."""
        ...

    def damaged(self, hosted: HostedReplica, reason: str, *, hidden: bool) -> None:
        """Rows of the replica are not what was written: have it repaired. `hidden`: any row may be wrong or missing,
        not only those that fail their checksums."""
        ...

    def log_damaged(self, hosted: HostedReplica, error: LogCorrupt) -> None:
        """What the replica is to apply cannot be read: have it brought back by another one."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...

    async def read_log(self, partition: int, first_position: int, max_bytes: int) -> tuple[Entry, ...]:
        """Entries from the node's log, read in a thread."""
        ...

    async def breathe(self) -> None:
        """Let others run between two slices of a scan."""
        ...
