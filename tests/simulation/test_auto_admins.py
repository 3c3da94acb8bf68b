"""Three members of auto-admin in virtual time: none of what they acknowledged is lost, whoever dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from autoadmin import replicated_log
from autoadmin.catalog import first_change
from autoadmin.member import Member
from autoadmin.records import MemberRecord, Write
from autoadmin.state import MemoryState
from cluster.topology import Topology
from cluster.wire import members_pb2
from dynamo.table import Table
from tests.simulation.client import SimulatedClient
from tests.simulation.cluster import CLUSTER_ID, AutoAdminMember, NodeMember, SimulatedCluster
from tests.simulation.noticed import noticed_errors
from tests.simulation.shape import Shape
from tests.simulation.virtual_loop import run_virtual

PATIENCE = 60.0
PAUSE = 0.2


class AutoAdmins:
    """A cluster with three members of auto-admin, and a client that makes tables."""

    def __init__(self, seed: int) -> None:
        self.cluster = SimulatedCluster(seed, None, routers=1, shape=Shape(partitions=1), auto_admins=3)
        self.client = SimulatedClient(self.cluster, "client")
        self.random = self.cluster.random("auto-admins")
        self.made: list[str] = []
        self.stop = False
        self._number = 0

    async def until(self, condition: Callable[[], bool]) -> None:
        assert await self.cluster.until(condition, PATIENCE)

    async def start(self) -> None:
        self.cluster.start()
        await self.until(lambda: all(router.ready for router in self.cluster.routers))
        await self.settled()

    def leader(self) -> AutoAdminMember | None:
        member = self.cluster.auto_admin
        return member if member.up and member.service is not None and member.service.serving else None

    async def settled(self) -> None:
        """One leads, all nodes report to it, and all members that are up have applied the same."""

        def done() -> bool:
            leader = self.leader()
            if leader is None or leader.service is None or leader.service.live_nodes < 3:
                return False
            ups = [member.service for member in self.cluster.auto_admins if member.up and member.service is not None]
            return all(
                service.topology.at == leader.service.topology.at and service.member.role in ("leader", "follower")
                for service in ups
            )

        await self.until(done)

    async def create(self) -> str | None:
        """Ask for a new table; its name if that was acknowledged."""
        self._number += 1
        name = f"table-{self._number:04}"
        reply = await self.client.call(
            "CreateTable",
            {
                "TableName": name,
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        if reply is None or reply.error in ("ServiceUnavailable", "InternalServerError"):
            return None
        # The client asks again when an answer was lost, and may then hear that its own table is there.
        assert not reply.error or (reply.error == "ResourceInUseException" and reply.doubtful), reply
        self.made.append(name)
        return name

    async def create_on(self) -> None:
        """Make tables until told to stop."""
        while not self.stop:
            await self.create()
            await asyncio.sleep(PAUSE)

    def tables(self) -> list[Table]:
        return list(_tables(self.topology))

    @property
    def topology(self) -> Topology:
        leader = self.leader()
        assert leader is not None
        assert leader.service is not None
        return leader.service.topology

    def check(self) -> None:
        """Every acknowledged table is there once, and every node has a catalog that the leader's goes on from."""
        names = [table.name for table in self.tables()]
        assert len(set(names)) == len(names)
        assert set(self.made) <= set(names), sorted(set(self.made) - set(names))
        for partition in self.topology.partitions.values():
            assert partition.table in self.topology.tables

    async def same_everywhere(self) -> None:
        """All nodes, and all members, come to hold what the leader holds."""
        for node in self.cluster.nodes:

            def same(node: NodeMember = node) -> bool:
                return node.node is not None and _contents(node.node.topology) == _contents(self.topology)

            await self.until(same)
        for member in self.cluster.auto_admins:
            assert member.service is not None
            assert _contents(member.service.topology) == _contents(self.topology)


def _tables(topology: Topology) -> Iterator[Table]:
    return (record.table for record in topology.tables.values())


def _contents(topology: Topology) -> tuple[Any, ...]:
    return topology.at, dict(topology.tables), dict(topology.partitions), dict(topology.nodes)


def run(story: Callable[[AutoAdmins], Coroutine[Any, Any, None]], seed: int = 1) -> str:
    """Run a story; everything that happened."""

    async def whole() -> str:
        made = AutoAdmins(seed)
        try:
            await story(made)
        finally:
            await made.cluster.close()
        assert not made.cluster.failures, made.cluster.failures
        return made.cluster.trace.text()

    with noticed_errors():
        return run_virtual(whole())


@pytest.mark.parametrize("seed", [1, 2])
def test_no_acknowledged_table_is_lost_or_made_twice_while_leaders_die(seed: int) -> None:
    async def story(made: AutoAdmins) -> None:
        await made.start()
        creating = asyncio.ensure_future(made.create_on())
        for _ in range(6):
            await asyncio.sleep(made.random.uniform(0.3, 2.0))
            leader = made.leader()
            if leader is None:
                continue
            if made.random.random() < 0.5:
                await leader.crash(power_lost=made.random.random() < 0.5)
            else:
                # From everything, or from the other members alone: then routers and nodes still come to it.
                everything = made.random.random() < 0.5
                for other in made.cluster.members if everything else made.cluster.auto_admins:
                    if other is not leader:
                        made.cluster.network.cut(leader.name, other.name, both_ways=made.random.random() < 0.7)
            await asyncio.sleep(made.random.uniform(0.5, 3.0))
            made.cluster.network.mend()
            made.cluster.start()
        made.stop = True
        await creating
        await made.settled()
        made.check()
        assert await made.create() is not None
        assert len(made.made) > 3
        await made.settled()
        await made.same_everywhere()
        assert made.topology.epoch == 1

    run(story, seed)


def test_members_find_each_other_again_after_all_of_them_have_died() -> None:
    async def story(made: AutoAdmins) -> None:
        await made.start()
        await made.create()
        for member in made.cluster.auto_admins:
            await member.crash(power_lost=True)
        made.cluster.start()
        await made.settled()
        made.check()
        assert made.topology.epoch == 1

    run(story)


@pytest.mark.parametrize("trimmed", [False, True])
def test_a_member_that_lost_its_disk_comes_back_as_another_and_counts_again(
    trimmed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a log that was trimmed, it gets the whole catalog from the leader."""
    brought, put_in_place = [], Member._put_in_place

    async def noticed(member: Member, snapshot: members_pb2.Snapshot) -> None:
        brought.append(snapshot.position)
        await put_in_place(member, snapshot)

    monkeypatch.setattr(Member, "_put_in_place", noticed)
    if trimmed:
        monkeypatch.setattr(replicated_log, "SAVE_ENTRIES", 1)
        monkeypatch.setattr(replicated_log, "KEPT_ENTRIES", 1)

    async def story(made: AutoAdmins) -> None:
        await made.start()
        for _ in range(3):
            await made.create()
        lost, *others = [member for member in made.cluster.auto_admins if member is not made.leader()]
        assert lost.service is not None
        before = lost.service.member.replica
        await lost.crash()
        lost.lose_disk()
        lost.start()
        assert lost.service is not None
        service = lost.service
        await made.until(lambda: service.member.replica in service.member.voters)
        assert service.member.replica != before
        assert before not in service.member.voters
        assert bool(brought) is trimmed
        await made.settled()
        made.check()
        await others[0].crash()  # from now on nothing is agreed on without the one that is new
        assert await made.create() is not None
        others[0].start()
        await made.settled()
        await made.same_everywhere()

    run(story)


def test_a_lost_leader_is_replaced_as_well() -> None:
    async def story(made: AutoAdmins) -> None:
        await made.start()
        await made.create()
        lost = made.leader()
        assert lost is not None
        await lost.crash()
        lost.lose_disk()
        lost.start()
        service = lost.service
        assert service is not None
        await made.until(lambda: service.member.replica in service.member.voters)
        assert await made.create() is not None
        await made.settled()
        made.check()

    run(story)


def test_all_members_may_lose_their_disks_and_take_what_the_nodes_hold() -> None:
    async def story(made: AutoAdmins) -> None:
        await made.start()
        for _ in range(3):
            assert await made.create() is not None
        await made.settled()
        await made.same_everywhere()
        before = made.topology
        for member in made.cluster.auto_admins:
            await member.crash()
            member.lose_disk()
        made.cluster.start()
        await made.until(lambda: made.leader() is not None and made.topology.epoch == before.epoch + 1)
        assert dict(made.topology.tables) == dict(before.tables)
        assert dict(made.topology.partitions) == dict(before.partitions)
        assert await made.create() is not None
        await made.settled()
        await made.same_everywhere()
        made.check()
        assert made.topology.epoch == before.epoch + 1

    run(story)


def test_nobody_begins_anew_while_one_member_still_holds_state() -> None:
    async def story(made: AutoAdmins) -> None:
        await made.start()
        assert await made.create() is not None
        await made.settled()
        kept, *lost = made.cluster.auto_admins
        for member in made.cluster.auto_admins:
            await member.crash()
        for member in lost:
            member.lose_disk()
            member.start()
        await asyncio.sleep(10.0)  # the third is down: it may hold anything
        roles = {member.service.member.role for member in lost if member.service is not None}
        assert roles == {"waiting"}
        kept.start()
        await asyncio.sleep(10.0)  # two of three are lost: nobody can tell what they had promised
        assert made.leader() is None
        roles = {member.service.member.role for member in lost if member.service is not None}
        assert roles == {"learner"}
        for member in made.cluster.auto_admins:  # the one way out, by hand
            await member.crash()
            member.lose_disk()
        made.cluster.start()
        await made.until(lambda: made.leader() is not None and made.topology.epoch == 2)
        await made.settled()
        made.check()

    run(story)


def test_a_router_starts_and_serves_while_every_auto_admin_is_down() -> None:
    async def story(made: AutoAdmins) -> None:
        await made.start()
        name = await made.create()
        assert name is not None
        await made.settled()
        await made.same_everywhere()
        for member in made.cluster.auto_admins:
            await member.crash()
        (router,) = made.cluster.routers
        await router.crash()
        router.start()
        await made.until(lambda: router.ready)
        put = await made.client.call("PutItem", {"TableName": name, "Item": {"id": {"S": "a"}, "n": {"N": "7"}}})
        assert put is not None
        assert not put.error
        got = await made.client.call("GetItem", {"TableName": name, "Key": {"id": {"S": "a"}}, "ConsistentRead": True})
        assert got is not None
        assert got.body["Item"]["n"] == {"N": "7"}
        refused = await made.client.call("DeleteTable", {"TableName": name})
        assert refused is None or refused.error == "ServiceUnavailable"
        made.cluster.start()
        await made.settled()
        assert await made.create() is not None

    run(story)


def test_one_seed_gives_one_history() -> None:
    async def story(made: AutoAdmins) -> None:
        await made.start()
        await made.create()
        leader = made.leader()
        assert leader is not None
        await leader.crash()
        assert await made.create() is not None

    assert run(story, 5) == run(story, 5)


def _of_old() -> MemoryState:
    """What an auto-admin has left that knew of no members: a catalog."""
    state = MemoryState()
    state.write(Write(MemberRecord(CLUSTER_ID, 1), changes=(first_change(CLUSTER_ID),)))
    del state._records[b"member"]
    return state


def test_a_single_auto_admin_of_old_grows_to_three() -> None:
    async def story(made: AutoAdmins) -> None:
        made.cluster.auto_admins[0]._state = _of_old()
        await made.start()
        service = made.cluster.auto_admins[0].service
        assert service is not None
        await made.until(lambda: len(service.member.voters) == 3)
        assert await made.create() is not None
        await made.settled()
        leader = made.leader()
        assert leader is not None
        await leader.crash()
        assert await made.create() is not None
        made.check()

    run(story)
