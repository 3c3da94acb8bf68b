"""A simulated cluster whose logs and snapshots are so small that everything about them happens within seconds."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from unittest.mock import patch

from storagenode.hosted import HostedReplica
from storagenode.snapshots.keeper import CHECK_SECONDS, IDLE_CHECKS
from tests.simulation.checkers.replicas import converged, describe, ids_of, replicas_of
from tests.simulation.client import SimulatedClient
from tests.simulation.cluster import NodeMember, SimulatedCluster
from tests.simulation.noticed import noticed_errors
from tests.simulation.shape import Shape
from tests.simulation.virtual_loop import run_virtual

TABLE = "items"
SMALL = {
    "log_segment_bytes": 64 << 10,
    "log_bytes_max": 2 << 20,
    "log_keep_seconds": 0.5,
    "snapshot_log_bytes": 64 << 10,
    "snapshot_bytes_per_second": 4 << 20,
}
PADDING = 2000
SETTLE_SECONDS = 20.0


class SnapshotCluster:
    """The cluster, a client, and what was acknowledged."""

    def __init__(
        self,
        seed: int,
        folder: Path | None,
        partitions: int = 1,
        zones: tuple[int, ...] = (1, 1, 1),
        **settings: Any,
    ) -> None:
        shape = Shape(zones, partitions, settings={**SMALL, **settings})
        self.cluster = SimulatedCluster(seed, folder, routers=1, shape=shape)
        self.client = SimulatedClient(self.cluster, "client")
        self.acknowledged: dict[str, int] = {}
        self._number = 0

    async def start(self, tables: tuple[str, ...] = (TABLE,)) -> None:
        """Start everything and make the tables."""
        cluster = self.cluster
        cluster.start()
        assert await cluster.until(lambda: all(router.ready for router in cluster.routers), 10.0)
        service = cluster.auto_admin.service
        assert service is not None
        assert await cluster.until(lambda: service.live_nodes == len(cluster.nodes), 10.0)
        for table in tables:
            reply = await self.client.call(
                "CreateTable",
                {
                    "TableName": table,
                    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                    "BillingMode": "PAY_PER_REQUEST",
                },
            )
            assert reply is not None
            assert reply.error in ("", "ResourceInUseException"), reply
        await self.settle()

    async def write(self, count: int, *, keys: int = 40, at_once: int = 8) -> None:
        """Put so many items; each overwrites one of `keys` keys with a rising number."""
        left = iter(range(count))

        async def work() -> None:
            for _ in left:
                await self.put(keys)

        await asyncio.gather(*(work() for _ in range(at_once)))

    async def put(self, keys: int) -> bool:
        """One write; whether it was acknowledged."""
        self._number += 1
        number, key = self._number, f"key-{self._number % keys}"
        item = {"id": {"S": key}, "n": {"N": str(number)}, "padding": {"S": "x" * PADDING}}
        # What was given up may still be on its way: it must not undo what came later.
        rises = {
            "ConditionExpression": "attribute_not_exists(id) OR n < :n",
            "ExpressionAttributeValues": {":n": {"N": str(number)}},
        }
        reply = await self.client.call("PutItem", {"TableName": TABLE, "Item": item, **rises})
        if reply is None or reply.error:
            return False
        self.acknowledged[key] = max(number, self.acknowledged.get(key, 0))
        return True

    async def rest(self) -> None:
        """Let so much time pass that what was written may be trimmed."""
        await asyncio.sleep(CHECK_SECONDS * (IDLE_CHECKS + 2) + SMALL["log_keep_seconds"])

    async def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until every partition is led and its replicas have applied the same."""
        assert await self.cluster.until(lambda: converged(self.cluster), seconds), describe(self.cluster)

    def node(self, name: str) -> NodeMember:
        """The member of this name."""
        return next(member for member in self.cluster.nodes if member.name == name)

    def hosted(self, name: str) -> list[HostedReplica]:
        """The replicas on a node; none while it is down."""
        node = self.node(name).node
        return [] if node is None else list(node.hosted_all())

    def check(self) -> None:
        """Replicas are equal row by row, and nothing acknowledged is missing. Once it is settled."""
        for partition, members in replicas_of(self.cluster).items():
            first, *others = [contents(hosted) for hosted in members]
            for other in others:
                assert other == first, f"replicas of partition {partition} differ"
        assert not self.cluster.failures

    async def check_items(self) -> None:
        """Every key has its last acknowledged value, or a later one that was not answered."""
        for key, number in self.acknowledged.items():
            reply = await self.client.call(
                "GetItem", {"TableName": TABLE, "Key": {"id": {"S": key}}, "ConsistentRead": True}
            )
            assert reply is not None
            found = int(reply.body["Item"]["n"]["N"])
            assert number <= found <= self._number, f"{key} holds {found}, and {number} was acknowledged"


def contents(hosted: HostedReplica) -> tuple[object, ...]:
    """Every row that a replica must have in common with the others."""
    store = hosted.store
    rows = list(store.scan(b"", b""))
    return rows, store.schema(), store.applied(), ids_of(hosted)


def run(
    seed: int,
    story: Callable[[SnapshotCluster], Coroutine[Any, Any, None]],
    *,
    partitions: int = 1,
    in_memory: bool = False,
    expected_errors: tuple[str, ...] = (),
    **settings: Any,
) -> None:
    """Run a story in virtual time, and check the replicas at its end."""
    with folder_for(in_memory) as folder, patch("os.getpid", return_value=1), noticed_errors() as errors:
        made = SnapshotCluster(seed, folder, partitions, **settings)

        async def main() -> None:
            await story(made)
            await made.cluster.close()

        run_virtual(main())
    unexpected = [error for error in errors if not any(text in error for text in expected_errors)]
    assert not unexpected, unexpected


class folder_for:  # noqa: N801  (reads as a function)
    """A folder for LMDB on a tmpfs, or None."""

    def __init__(self, in_memory: bool) -> None:
        fast = Path("/dev/shm")
        self._folder = None if in_memory else tempfile.TemporaryDirectory(dir=fast if fast.is_dir() else None)

    def __enter__(self) -> Path | None:
        return None if self._folder is None else Path(self._folder.name)

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()
