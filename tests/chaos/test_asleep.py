"""A leader that slept past its lease is asked directly, as by a router that knows nothing newer: it says no."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cluster.grpc_transport import GrpcTransport
from cluster.local_disk import LocalDisk
from cluster.requests.lane import METHOD
from cluster.transport import Stream
from cluster.wire import storage_pb2
from dynamo.keys import partition_hash
from dynamo.values import dump
from storagenode.catalog_copy import load_catalog
from tests.chaos.keys import key_in
from tests.chaos.load import create_table
from tests.chaos.real_cluster import PartitionView, RealCluster, running_cluster
from tests.chaos.test_durability import client_of, get_of, put_of
from trizone.data_directory import DataDirectory
from trizone.operator_access import security_in

ASLEEP_S = 5.0
DEADLINE_MS = 30_000


class Asker:
    """Asks one node for one item, whatever anybody knows of who leads."""

    def __init__(self, cluster: RealCluster, partition: PartitionView, key: str) -> None:
        directory = DataDirectory(cluster.data)
        found, run = directory.cluster(), directory.run_file()
        assert found is not None
        assert run is not None
        self._cluster_id, self._key = found.cluster_id, key
        self._address = next(process.address for process in run.processes if process.name == partition.leader)
        topology = load_catalog(LocalDisk(), str(cluster.data / "nodes" / str(partition.leader)))
        record = topology.partition(partition.id)
        assert record is not None
        table = topology.table(record.table)
        assert table is not None
        self._request = storage_pb2.Request(
            partition=partition.id, table=record.table, schema_version=table.schema_version, deadline_ms=DEADLINE_MS
        )
        self._transport = GrpcTransport(security_in(cluster.data, self._cluster_id, tls=False))
        self._stream: Stream | None = None

    async def send_get(self, id_: int) -> None:
        """A strongly consistent read."""
        request = storage_pb2.Request(id=id_)
        request.MergeFrom(self._request)
        request.get.key, request.get.consistent = partition_hash("S", self._key), True
        await self._send(request)

    async def send_put(self, id_: int, value: int) -> None:
        """A write."""
        request = storage_pb2.Request(id=id_, operation_id=1_000 + id_)
        request.MergeFrom(self._request)
        item = dump(put_of(self._key, value)["Item"])
        request.put.key, request.put.item, request.put.size = partition_hash("S", self._key), item, len(item)
        await self._send(request)

    async def _send(self, request: storage_pb2.Request) -> None:
        if self._stream is None:
            self._stream = await self._transport.open_stream(self._address, METHOD)
        batch = storage_pb2.RequestBatch(cluster_id=self._cluster_id, requests=[request])
        await self._stream.send(batch.SerializeToString())

    async def answers(self, count: int) -> dict[int, storage_pb2.Reply]:
        """So many answers, by id."""
        assert self._stream is not None
        found: dict[int, storage_pb2.Reply] = {}
        while len(found) < count:
            message = await self._stream.receive()
            assert message is not None, "the stream ended"
            found |= {reply.id: reply for reply in storage_pb2.ReplyBatch.FromString(message).replies}
        return found

    async def close(self) -> None:
        """End the connection."""
        await self._transport.close()


@pytest.mark.timeout(180)
async def test_who_slept_past_the_lease_neither_reads_nor_acknowledges(tmp_path: Path) -> None:
    async with running_cluster(tmp_path / "data", "--leaders", "spread") as cluster:
        client = client_of(cluster)
        await create_table(client)
        partition = (await cluster.whole())[0]
        key, pid = key_in(partition, "asleep"), cluster.pids()[str(partition.leader)]
        await client.call("PutItem", put_of(key, 1))
        asker = Asker(cluster, partition, key)
        await asker.send_get(1)
        await asker.send_put(2, 2)
        awake = await asker.answers(2)
        assert [awake[number].WhichOneof("result") for number in (1, 2)] == ["item", "write"], awake
        cluster.freeze([pid])
        nap = asyncio.create_task(asyncio.sleep(ASLEEP_S))
        await asker.send_get(3)
        await asker.send_put(4, 4)
        await client.call("PutItem", put_of(key, 3))  # by whoever leads now
        await nap
        cluster.wake([pid])
        woken = await asker.answers(2)
        assert [woken[number].WhichOneof("result") for number in (3, 4)] == ["refusal", "refusal"], woken
        await cluster.whole()
        assert (await client.call("GetItem", get_of(key))).get("Item") == put_of(key, 3)["Item"]
        await asker.close()
        await client.close()
