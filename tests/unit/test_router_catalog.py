"""The router's catalog: watch, seeds, refresh on a miss, waiting for a version, changes of tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cluster.convert import table_to_wire, update_to_wire
from cluster.memory_transport import MemoryNetwork, MemoryTransport
from cluster.topology import CatalogTable, CatalogUpdate, NodePlace
from cluster.transport import Handlers, Server, Stream
from cluster.wire import admin_pb2, common_pb2, node_pb2
from dynamo.errors import ApiError
from dynamo.table import Table, decode_table
from router import catalog as module
from router.catalog import Catalog, table_name
from tests.unit.router_fakes import CLUSTER, table


def update(version: int, *names: str, from_version: int = 0, epoch: int = 1, cluster: str = CLUSTER) -> bytes:
    """A catalog update that holds tables of these names."""
    tables = tuple(CatalogTable(table(name, id_=100 + i), version) for i, name in enumerate(names))
    return update_to_wire(CatalogUpdate(cluster, epoch, from_version, version, tables=tables)).SerializeToString()


class FakeAutoAdmin:
    """Auto-admin with one update to tell; `send` tells watchers of more."""

    def __init__(self, whole: bytes) -> None:
        self.whole = whole
        self.watches: list[admin_pb2.WatchRequest] = []
        self.refreshes = 0
        self.answer = admin_pb2.TableReply()
        self.asked: list[tuple[str, admin_pb2.TableRequest]] = []
        self.streams: list[Stream] = []

    def handlers(self) -> Handlers:
        changes = {name: self._changer(name) for name in ("CreateTable", "UpdateTable", "DeleteTable")}
        unary = {"Admin/Refresh": self._refresh, **{f"Admin/{name}": change for name, change in changes.items()}}
        return Handlers(unary, {"Admin/Watch": self._watch})

    async def _watch(self, stream: Stream) -> None:
        self.streams.append(stream)
        while (message := await stream.receive()) is not None:
            self.watches.append(admin_pb2.WatchRequest.FromString(message))
            await stream.send(self.whole)

    async def _refresh(self, _: bytes) -> bytes:
        self.refreshes += 1
        return self.whole

    def _changer(self, name: str) -> Any:
        async def change(message: bytes) -> bytes:
            self.asked.append((name, admin_pb2.TableRequest.FromString(message)))
            return self.answer.SerializeToString()

        return change


class World:
    """A network with, at will, an auto-admin and storage nodes, and a catalog on it."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.transport = MemoryTransport(self.network)
        self.catalog = Catalog(
            self.transport, CLUSTER, ["a:1", "b:1"], ["s1:1", "s2:1"], common_pb2.RouterRecord(name="r")
        )
        self.servers: list[Server] = []

    async def admin(self, whole: bytes, address: str = "a:1") -> FakeAutoAdmin:
        admin = FakeAutoAdmin(whole)
        self.servers.append(await self.transport.serve(address, admin.handlers()))
        return admin

    async def node(self, address: str, copy: bytes) -> None:
        async def catalog(message: bytes) -> bytes:
            assert node_pb2.CatalogRequest.FromString(message).cluster_id == CLUSTER
            return copy

        self.servers.append(await self.transport.serve(address, Handlers({"Node/Catalog": catalog})))

    async def seen(self, version: int, epoch: int = 1) -> bool:
        return await self.catalog.wait_for(epoch, version, 2.0)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(module, "BACKOFF_MIN", 0.001)
    monkeypatch.setattr(module, "BACKOFF_MAX", 0.004)
    world = World()
    yield world
    await world.catalog.close()


async def test_the_watch_brings_the_whole_and_then_changes(world: World) -> None:
    admin = await world.admin(update(3, "one"))
    world.catalog.start()
    assert await world.seen(3)
    assert world.catalog.table("one").name == "one"
    assert admin.watches[0].router.name == "r"
    await admin.streams[0].send(update(4, "one", "two", from_version=3))
    assert await world.seen(4)
    assert world.catalog.table("two").id == 101


async def test_the_watch_goes_on_with_another_auto_admin_from_the_version_held(world: World) -> None:
    await world.admin(update(3, "one"))
    world.catalog.start()
    assert await world.seen(3)
    second = await world.admin(update(5, "one", "two", from_version=3), "b:1")
    await world.servers[0].stop()
    assert await world.seen(5)
    assert second.watches[0].version == 3
    assert world.catalog.watching


async def test_a_change_with_a_gap_makes_the_router_ask_for_the_whole(world: World) -> None:
    admin = await world.admin(update(3, "one"))
    world.catalog.start()
    assert await world.seen(3)
    admin.whole = update(9, "one", "nine")
    await admin.streams[0].send(update(9, "nine", from_version=8))
    assert await world.seen(9)
    assert [watch.version for watch in admin.watches] == [0, 0]


async def test_what_cannot_be_read_is_passed_over(world: World) -> None:
    admin = await world.admin(update(3, "one"))
    world.catalog.start()
    assert await world.seen(3)
    await admin.streams[0].send(b"\xff not a message")
    bad_table = common_pb2.TableRecord(table=1, definition=b"{not JSON")
    bad = common_pb2.CatalogUpdate(cluster_id=CLUSTER, epoch=1, version=4, tables=[bad_table])
    await admin.streams[0].send(bad.SerializeToString())
    await admin.streams[0].send(update(5, "one", "five"))
    assert await world.seen(5)
    assert len(admin.streams) == 1


async def test_without_auto_admin_the_newest_copy_of_the_nodes_counts(world: World) -> None:
    await world.node("s1:1", update(4, "old"))
    await world.node("s2:1", update(2, "new", epoch=2))
    world.catalog.start()
    assert await world.seen(2, epoch=2)
    assert world.catalog.find("old") is None
    assert world.catalog.table("new").name == "new"
    assert not world.catalog.watching


async def test_another_clusters_copy_is_not_taken(world: World) -> None:
    await world.node("s1:1", update(9, "foreign", cluster="other"))
    await world.node("s2:1", update(1, "ours"))
    world.catalog.start()
    assert await world.seen(1)
    assert world.catalog.find("foreign") is None


async def test_the_copy_stays_in_use_when_auto_admin_dies(world: World) -> None:
    await world.admin(update(3, "one"))
    world.catalog.start()
    assert await world.seen(3)
    await world.servers[0].stop()
    await world.catalog.refresh()
    assert world.catalog.table("one").name == "one"


async def test_nodes_that_the_catalog_names_are_asked_as_well_as_seeds(world: World) -> None:
    node = NodePlace(1, "n1", "r", "z", "n1:1")
    first = update_to_wire(CatalogUpdate(CLUSTER, 1, 0, 1, nodes=(node,))).SerializeToString()
    await world.node("s1:1", first)
    await world.node("n1:1", update(6, "newer"))
    world.catalog.start()
    assert await world.seen(6)


async def test_refresh_shows_what_was_committed_before_it(world: World) -> None:
    admin = await world.admin(update(1))
    first = asyncio.create_task(world.catalog.refresh())
    await asyncio.sleep(0)
    assert world.catalog.find("late") is None
    admin.whole = update(2, "late")
    await asyncio.gather(*(world.catalog.refresh() for _ in range(20)))
    assert world.catalog.table("late").name == "late"
    await first
    assert admin.refreshes == 2  # the one under way, and one for all that came after it began


async def test_refresh_gives_up_in_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REFRESH_TIMEOUT", 0.01)
    asked = []

    async def never(message: bytes) -> bytes:
        asked.append(message)
        await asyncio.get_running_loop().create_future()
        return b""

    await world.transport.serve("a:1", Handlers({"Admin/Refresh": never}))
    await world.catalog.refresh()
    assert len(asked) == 1


async def test_a_missing_table_and_one_that_is_not_ready(world: World) -> None:
    whole = CatalogUpdate(
        CLUSTER,
        1,
        0,
        1,
        tables=(
            CatalogTable(table("made", id_=1, status="CREATING"), 1),
            CatalogTable(table("dropped", id_=2, status="DELETING"), 1),
            CatalogTable(table("changing", id_=3, status="UPDATING"), 1),
        ),
    )
    await world.admin(update_to_wire(whole).SerializeToString())
    await world.catalog.refresh()
    for name in ("missing", "made", "dropped", "Changing"):
        with pytest.raises(ApiError) as raised:
            world.catalog.table(name)
        assert (raised.value.type, raised.value.message) == (
            "ResourceNotFoundException",
            "Requested resource not found",
        )
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/changing"
    assert world.catalog.table("changing") is world.catalog.table(arn)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("plain", "plain"),
        ("arn:aws:dynamodb:eu-west-1:123456789012:table/a.b-c_d", "a.b-c_d"),
        ("arn:aws:dynamodb:eu-west-1:123456789012:table/a/index/i", "a"),
        ("arn:aws:s3:::bucket", ""),
    ],
)
def test_table_names_and_arns(given: str, name: str) -> None:
    assert table_name(given) == name


async def test_wait_for_gives_up(world: World) -> None:
    assert await world.catalog.wait_for(0, 0, 0.001)
    assert not await world.catalog.wait_for(1, 1, 0.001)


async def test_changes_of_tables(world: World) -> None:
    admin = await world.admin(update(7, "t"))
    made: Table = table("t", id_=100)
    admin.answer = admin_pb2.TableReply(table=table_to_wire(made, 7), epoch=1, version=7)
    assert await world.catalog.create_table(table("t", id_=0)) == made
    assert world.catalog.table("t").id == 100  # visible here by the time of the answer
    await world.catalog.update_table("t", b"{}", 3)
    await world.catalog.delete_table("arn:aws:dynamodb:r:0:table/t")
    assert [(name, request.name, request.schema_version) for name, request in admin.asked] == [
        ("CreateTable", "t", 0),
        ("UpdateTable", "t", 3),
        ("DeleteTable", "t", 0),
    ]
    assert {request.cluster_id for _, request in admin.asked} == {CLUSTER}
    assert decode_table(admin.asked[0][1].definition).name == "t"


async def test_auto_admins_error_is_the_clients(world: World) -> None:
    admin = await world.admin(update(1), "b:1")  # "a:1" is dead: the next one is asked
    admin.answer = admin_pb2.TableReply(error_type="ResourceInUseException", error_message="Table already exists: t")
    with pytest.raises(ApiError) as raised:
        await world.catalog.create_table(table("t"))
    assert (raised.value.type, raised.value.status) == ("ResourceInUseException", 400)
    admin.answer = admin_pb2.TableReply(error_type="InternalServerError", error_message="x")
    with pytest.raises(ApiError) as raised:
        await world.catalog.delete_table("t")
    assert raised.value.status == 500


async def test_without_auto_admin_tables_cannot_be_changed(world: World) -> None:
    with pytest.raises(ApiError) as raised:
        await world.catalog.delete_table("t")
    assert (raised.value.type, raised.value.status) == ("ServiceUnavailable", 503)


def elsewhere(leader: str = "") -> bytes:
    """What a member that does not lead says in place of the catalog."""
    return common_pb2.CatalogUpdate(cluster_id=CLUSTER, not_leader=True, leader=leader).SerializeToString()


async def test_the_watch_is_on_the_member_that_leads(world: World) -> None:
    follower = await world.admin(elsewhere("b:1"))
    leader = await world.admin(update(3, "one"), "b:1")
    world.catalog.start()
    assert await world.seen(3)
    assert len(leader.watches) == 1
    assert len(follower.watches) == 1
    await world.servers[1].stop()
    follower.whole = update(4, "one", "two", from_version=3)  # the other one leads now
    assert await world.seen(4)
    assert world.catalog.watching


async def test_refresh_asks_the_member_that_leads(world: World) -> None:
    await world.admin(elsewhere())
    await world.admin(update(3, "one"), "b:1")
    await world.catalog.refresh()
    assert world.catalog.topology.version == 3


async def test_a_change_goes_to_the_member_that_leads_and_waits_for_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ELECTION_PAUSE", 0.001)
    follower = await world.admin(elsewhere())
    candidate = await world.admin(update(5, "one"), "b:1")
    follower.answer = admin_pb2.TableReply(not_leader=True, leader="b:1")
    candidate.answer = admin_pb2.TableReply(not_leader=True)
    changing = asyncio.create_task(world.catalog.create_table(table("one", id_=100)))
    while len(candidate.asked) < 3:  # noqa: ASYNC110 (the fake counts, it tells of nothing)
        await asyncio.sleep(0)
    assert not changing.done()
    candidate.answer = admin_pb2.TableReply(table=table_to_wire(table("one", id_=100), 5), epoch=1, version=5)
    assert (await changing).id == 100
    asked = len(follower.asked)
    await world.catalog.create_table(table("one", id_=100))
    assert len(follower.asked) == asked, "who led last is asked first"
