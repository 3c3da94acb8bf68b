"""Damaged rows, in virtual time: the scrub finds them, replicas are made anew, and nobody reads a wrong value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from unittest.mock import patch

import orjson
import pytest

from dynamo.keys import partition_hash
from router.gateway import Answer, Received
from storagenode.hosted import HostedReplica
from storagenode.storage import layout
from storagenode.storage.lmdb_store import LmdbStore
from storagenode.storage.memory_store import MemoryStore
from storagenode.storage.row_sums import row_hash
from storagenode.storage.store import StoreBroken, StoreFull, WriteBatch
from tests.simulation.snapshot_cluster import TABLE, SnapshotCluster, run
from tests.simulation.test_snapshots import follower, leader, replica

INTERVAL = 2.0
FOUND_SECONDS = 3 * INTERVAL
KEY = "key-7"
ROW = layout.ITEM + partition_hash("S", KEY)


def rows_of(hosted: HostedReplica) -> dict[bytes, bytes]:
    assert isinstance(hosted.store, MemoryStore)
    return hosted.store._rows


def key_of(hosted: HostedReplica) -> bytes:
    """The whole key of the item's row."""
    with closing(hosted.store.rows(ROW, ROW + b"\xff")) as found:
        return next(found)[0]


def hide(hosted: HostedReplica) -> None:
    """A row is there no more, and nothing says so."""
    store, key = hosted.store, key_of(hosted)
    if isinstance(store, MemoryStore):
        store._put(key, None)
    else:
        assert isinstance(store, LmdbStore)
        with store._environment.begin(write=True) as writing:
            assert writing.delete(key)


def flip(hosted: HostedReplica) -> None:
    """A bit of the item's body has flipped."""
    rows, key = rows_of(hosted), key_of(hosted)
    value = bytearray(rows[key])
    value[-5] ^= 1
    rows[key] = bytes(value)


def numbers(made: SnapshotCluster, name: str) -> tuple[int, int, int, int]:
    """Damaged rows, wrong sums and differences found by a node, and replicas that it repaired."""
    node = made.node(name).node
    assert node is not None
    return node.scrub.damaged_rows, node.scrub.wrong_sums, node.scrub.differences, node.repairs.repaired


async def repaired(made: SnapshotCluster, name: str, seconds: float = FOUND_SECONDS) -> None:
    """Wait until the node has repaired a replica."""
    assert await made.cluster.until(lambda: numbers(made, name)[3] == 1, seconds), f"{name} was not repaired"


async def get(made: SnapshotCluster, key: str, *, consistent: bool = True) -> Answer:
    """One try of a read, without a client's patience."""
    body = {"TableName": TABLE, "Key": {"id": {"S": key}}, "ConsistentRead": consistent}
    headers = {b"x-amz-target": b"DynamoDB_20120810.GetItem", b"host": b"simulated"}
    return await made.cluster.routers[0].request(Received(b"POST", b"/", headers, orjson.dumps(body)))


def is_right(made: SnapshotCluster, key: str, answer: Answer) -> bool:
    body = orjson.loads(answer.body)
    return answer.status == 200 and int(body["Item"]["n"]["N"]) == made.acknowledged[key]


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("whose", [leader, follower])
def test_a_hidden_row_is_found_and_comes_back_from_the_log(
    whose: Callable[[SnapshotCluster], str], in_memory: bool
) -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(40)
        await made.settle()
        victim = whose(made)
        hide(replica(made, victim))
        await repaired(made, victim)
        assert numbers(made, victim) == (0, 1, 0, 1)
        await made.settle()
        assert is_right(made, KEY, await get(made, KEY))
        made.check()

    run(1, story, in_memory=in_memory, scrub_interval=INTERVAL)


def test_a_damaged_row_is_never_read_and_comes_back_from_the_snapshot() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(300)
        await made.rest()
        await made.settle()
        victim = leader(made)
        assert replica(made, victim).replica.first_position > 1
        flip(replica(made, victim))
        # Not the scrub: the read itself finds it, and another replica answers.
        assert is_right(made, KEY, await get(made, KEY))
        assert leader(made) != victim
        await repaired(made, victim)
        await made.settle()
        made.check()
        node = made.node(victim).node
        assert node is not None
        assert node.installer.installed == 0

    run(2, story, in_memory=True, scrub_interval=600.0)


def damage_snapshots(made: SnapshotCluster, name: str) -> None:
    node = made.node(name)
    for file in node.disk.list("data/snapshots"):
        if file.endswith(".data"):
            node.disk.flip_bit(f"data/snapshots/{file}", 1000)


def test_a_replica_whose_snapshot_is_damaged_too_gets_the_leaders() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(300)
        await made.rest()
        await made.settle()
        victim = follower(made)
        damage_snapshots(made, victim)
        hide(replica(made, victim))
        await repaired(made, victim, 3 * FOUND_SECONDS)
        node = made.node(victim).node
        assert node is not None
        assert node.installer.installed == 1
        await made.settle()
        await made.write(20)
        await made.settle()
        made.check()

    run(3, story, in_memory=True, scrub_interval=INTERVAL)


def test_the_one_whole_replica_mends_the_two_others() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(300)
        await made.rest()
        await made.settle()
        first, *others = sorted((member.name for member in made.cluster.nodes), key=lambda name: name != leader(made))
        for victim in (first, others[0]):
            damage_snapshots(made, victim)
            flip(replica(made, victim))
        assert await made.cluster.until(lambda: numbers(made, first)[3] + numbers(made, others[0])[3] == 2, 120.0)
        await made.settle()
        assert is_right(made, KEY, await get(made, KEY))
        made.check()

    run(8, story, in_memory=True, scrub_interval=INTERVAL)


def test_what_is_damaged_everywhere_fails_at_once_and_the_rest_is_served() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(300)
        await made.rest()
        await made.settle()
        for member in made.cluster.nodes:
            damage_snapshots(made, member.name)
            flip(replica(made, member.name))
        loop = asyncio.get_running_loop()

        def hopeless() -> bool:
            return all(replica(made, member.name).damage.beyond_repair for member in made.cluster.nodes)

        async def asked() -> None:
            while not hopeless():
                await get(made, KEY)
                await get(made, KEY, consistent=False)

        async with asyncio.timeout(120):
            await asked()
        for _ in range(3):
            began = loop.time()
            answer = await get(made, KEY)
            assert (answer.status, orjson.loads(answer.body)["__type"].rpartition("#")[2]) == (
                500,
                "InternalServerError",
            )
            assert loop.time() - began < 0.5
            assert is_right(made, "key-8", await get(made, "key-8"))
        assert await made.put(1)  # writes go on as well

    run(4, story, in_memory=True, scrub_interval=600.0)


def test_the_replica_that_differs_from_two_others_is_made_anew() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(60)
        await made.settle()
        for victim in (follower(made), leader(made)):
            store = replica(made, victim).store
            assert isinstance(store, MemoryStore)
            # As if apply had gone wrong: rows and sum agree with each other, and with nobody else.
            key, value = key_of(replica(made, victim)), rows_of(replica(made, victim))[key_of(replica(made, victim))]
            hide(replica(made, victim))
            store._sum.value = (store._sum.value - row_hash(key, value)) % (1 << 128)
            await made.write(1, keys=1)
            await made.settle()
            await repaired(made, victim, 15 * FOUND_SECONDS)
            await made.settle()
            made.check()
        assert is_right(made, KEY, await get(made, KEY))

    run(5, story, in_memory=True, scrub_interval=INTERVAL)


@pytest.mark.parametrize("whose", [leader, follower])
def test_a_store_that_cannot_be_written_is_made_anew(whose: Callable[[SnapshotCluster], str]) -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(30)
        await made.settle()
        victim = whose(made)
        broken, write = replica(made, victim).store, MemoryStore.write

        def refuse(store: MemoryStore, batch: WriteBatch) -> None:
            if store is broken and batch.applied.position > 20 and not numbers(made, victim)[3]:
                raise StoreBroken("MDB_CORRUPTED: Located page was wrong type")
            write(store, batch)

        with patch.object(MemoryStore, "write", refuse):
            await made.write(30)
            # The very same store is filled anew; from then on it may be written.
            node = made.node(victim).node
            assert node is not None
            node.repairs.repaired += 1
            await made.cluster.until(lambda: not replica(made, victim).damage.reason, FOUND_SECONDS)
            await made.settle()
        made.check()
        await made.check_items()

    run(6, story, in_memory=True, scrub_interval=600.0)


def test_a_store_without_room_goes_on_once_there_is_some() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(30)
        await made.settle()
        victim = follower(made)
        full, write, tries = replica(made, victim).store, MemoryStore.write, 0

        def refuse(store: MemoryStore, batch: WriteBatch) -> None:
            nonlocal tries
            if store is full and tries < 5:
                tries += 1
                raise StoreFull("MDB_SHORT_WRITE")
            write(store, batch)

        with patch.object(MemoryStore, "write", refuse):
            await made.write(30)
            await made.settle()
        assert tries == 5
        made.check()
        await made.check_items()

    run(7, story, in_memory=True, scrub_interval=600.0)
