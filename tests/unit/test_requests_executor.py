"""The executor over scripted nodes: batching, routing, every refusal, silence, deadlines, bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cluster.requests.executor import Executor
from cluster.wire import storage_pb2
from dynamo.errors import ApiError
from router.plan import Call, StalePlanError
from tests.unit.router_fakes import (
    CLUSTER,
    MIDDLE,
    ONES,
    ZERO,
    Answer,
    FixedCatalog,
    ManualClock,
    Nodes,
    Refusal,
    partition,
    refused,
    settle,
    silent,
    table,
    topology,
    written,
)

TABLE = table()
PARTITIONS = (partition(1, ZERO, b"\x7f" + b"\xff" * 15, preferred=1), partition(2, MIDDLE, ONES, preferred=2))


class World:
    """An executor, its clock, catalog and three nodes; partition 1 is led by node 1, partition 2 by node 2."""

    def __init__(self, options: dict[str, Any], **answers: Answer) -> None:
        self.nodes = Nodes(**answers)
        self.clock = ManualClock()
        self.catalog = FixedCatalog(topology(self.nodes.addresses, (TABLE,), PARTITIONS))
        self.executor = Executor(self.nodes.transport, self.catalog, self.clock, CLUSTER, **options)
        self.results: list[storage_pb2.Reply | ApiError] = []

    def put(self, hash_: bytes = ZERO, operation_id: int = 99) -> None:
        call = Call(TABLE, hash_, storage_pb2.Put(key=hash_, item=b"{}", size=1), operation_id)
        self.executor.submit(call, self.results.append)

    def get(self, hash_: bytes = ZERO) -> None:
        self.executor.submit(Call(TABLE, hash_, storage_pb2.Get(key=hash_), any_replica=True), self.results.append)

    async def pass_time(self, seconds: float, step: float = 0.01) -> None:
        """Move the clock in steps; after each the executor looks around, as its timer makes it."""
        end = self.clock.now + seconds
        while self.clock.now < end - 1e-9:
            self.clock.now += step
            self.executor.sweep()
            await settle()

    @property
    def only(self) -> storage_pb2.Reply | ApiError:
        (result,) = self.results
        return result


Make = Any


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    worlds: list[World] = []

    def build(options: dict[str, Any] | None = None, **answers: Answer) -> World:
        worlds.append(World(options or {}, **answers))
        return worlds[-1]

    yield build
    for world in worlds:
        await world.executor.close()
        assert world.executor.outstanding == 0


async def test_a_turn_of_the_loop_makes_one_batch_per_node(make: Make) -> None:
    world = make()
    for _ in range(10):
        world.put(ZERO)
        world.put(ONES)
    await settle()
    assert len(world.results) == 20
    assert [len(node.batches) for node in world.nodes.nodes.values()] == [1, 1, 0]
    assert world.nodes.counts() == (10, 10, 0)


async def test_a_request_carries_all_that_a_leader_checks(make: Make) -> None:
    world = make()
    world.put(ONES, operation_id=5)
    await settle()
    (request,) = world.nodes[2].requests
    assert (request.partition, request.table, request.schema_version, request.operation_id) == (2, 7, 1, 5)
    assert request.deadline_ms == 10_000
    assert request.put.item == b"{}"
    assert world.nodes[2].batches[0].cluster_id == CLUSTER


async def test_what_arrives_during_a_send_goes_out_together(make: Make) -> None:
    world = make()
    world.put()
    await asyncio.sleep(0)  # the lane is opening
    for _ in range(5):
        world.put()
    await settle()
    assert len(world.results) == 6
    assert len(world.nodes[1].batches) <= 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_writes_gather_while_those_before_them_are_unanswered(make: Make, order: tuple[int, int]) -> None:
    kept: list[storage_pb2.Request] = []

    def keep(request: storage_pb2.Request) -> storage_pb2.Reply | None:
        kept.append(request)
        return None

    world = make(n1=keep)
    for operation_id in (1, 2):
        world.put(operation_id=operation_id)
    await settle()
    for operation_id in (3, 4, 5):
        world.put(operation_id=operation_id)
        await settle()
    assert [request.operation_id for request in kept] == [1, 2]
    world.nodes[1].answer = written
    await world.nodes[1].reply_late(kept[order[0]], written(kept[order[0]]))
    await settle()
    assert [len(batch.requests) for batch in world.nodes[1].batches] == [2]  # one of them is still unanswered
    await world.nodes[1].reply_late(kept[order[1]], written(kept[order[1]]))
    await settle()
    assert [len(batch.requests) for batch in world.nodes[1].batches] == [2, 3]
    assert len(world.results) == 5


async def test_reads_and_other_nodes_do_not_wait_for_writes(make: Make) -> None:
    def answer(request: storage_pb2.Request) -> storage_pb2.Reply | None:
        return storage_pb2.Reply(item=storage_pb2.ItemReply()) if request.HasField("get") else None

    world = make(n1=answer)
    world.put(ZERO)
    await settle()
    world.put(ZERO)
    world.executor.submit(Call(TABLE, ZERO, storage_pb2.Get(key=ZERO, consistent=True)), world.results.append)
    world.put(ONES)
    await settle()
    assert world.nodes.counts() == (2, 1, 0)
    assert len(world.results) == 2


async def test_no_write_waits_long_for_others(make: Make) -> None:
    world = make(n1=silent)
    world.put(operation_id=1)
    await settle()
    world.put(operation_id=2)
    await world.pass_time(0.01)
    assert world.nodes.counts() == (1, 0, 0)
    world.nodes[1].answer = written
    await world.pass_time(0.02)
    assert world.nodes.counts() == (2, 0, 0)
    assert len(world.results) == 1


async def test_writes_that_wait_for_others_go_elsewhere_when_the_stream_breaks(make: Make) -> None:
    world = make(n1=silent)
    for operation_id in (1, 2):
        world.put(operation_id=operation_id)
        await settle()
    await world.nodes[1].server.crash()
    await settle()
    await world.pass_time(0.05)
    assert len(world.results) == 2
    assert sorted({request.operation_id for request in world.nodes[2].requests}) == [1, 2]


async def test_writes_that_wait_for_others_end_in_time(make: Make) -> None:
    world = make({"request_time": 0.5, "silence": 60.0}, n1=silent)
    world.put()
    await settle()
    world.put()
    await world.pass_time(0.8)
    assert len(world.results) == 2
    assert all(isinstance(result, ApiError) for result in world.results)
    assert world.executor.outstanding == 0


async def test_large_batches_are_cut(make: Make) -> None:
    world = make()
    for _ in range(6):
        put = storage_pb2.Put(key=ZERO, item=b"x" * 400_000, size=1)
        world.executor.submit(Call(TABLE, ZERO, put, 1), world.results.append)
    await settle()
    assert len(world.results) == 6
    assert all(batch.ByteSize() < 2 << 20 for batch in world.nodes[1].batches)


async def test_a_refusal_with_a_hint_is_followed_at_once_and_remembered(make: Make) -> None:
    world = make(n1=refused(Refusal.NOT_LEADER, leader_node=3, epoch=4))
    world.put()
    await settle()
    assert isinstance(world.only, storage_pb2.Reply)
    assert world.nodes.counts() == (1, 0, 1)
    assert world.nodes[3].requests[0].epoch == 4
    world.put()
    await settle()
    assert world.nodes.counts() == (1, 0, 2)


async def test_a_hint_of_an_older_epoch_is_not_believed(make: Make) -> None:
    world = make(n1=refused(Refusal.NOT_LEADER, leader_node=2, epoch=5))
    world.put()
    await settle()
    world.nodes[2].answer = refused(Refusal.NOT_LEADER, leader_node=1, epoch=4)
    world.put()
    await settle()
    assert isinstance(world.results[1], storage_pb2.Reply)
    assert world.nodes.counts() == (1, 2, 1)  # node 3, the next in order, was asked, and not node 1


async def test_without_a_leader_the_replicas_are_asked_in_turn_with_pauses(make: Make) -> None:
    no_leader = refused(Refusal.NOT_LEADER)
    world = make(n1=no_leader, n2=no_leader, n3=no_leader)
    world.put(operation_id=77)
    await settle()
    assert world.nodes.counts() == (1, 1, 1)  # each once, at once
    await world.pass_time(0.015, step=0.005)
    assert world.nodes.counts() == (1, 1, 1)  # then a pause of 20 ms
    await world.pass_time(0.01)
    assert sum(world.nodes.counts()) == 6
    world.nodes[2].answer = written
    await world.pass_time(0.2)
    assert isinstance(world.only, storage_pb2.Reply)
    ids = {request.operation_id for node in world.nodes.nodes.values() for request in node.requests}
    assert ids == {77}


async def test_not_ready_and_overloaded_wait_for_the_same_node(make: Make) -> None:
    for reason in (Refusal.NOT_READY, Refusal.OVERLOADED):
        world = make(n1=refused(reason))
        world.put()
        await settle()
        assert world.nodes.counts() == (1, 0, 0)
        world.nodes[1].answer = written
        await world.pass_time(0.03)
        assert isinstance(world.only, storage_pb2.Reply)
        assert world.nodes.counts() == (2, 0, 0)


async def test_a_stale_epoch_is_corrected_at_once(make: Make) -> None:
    def answer(request: storage_pb2.Request) -> storage_pb2.Reply:
        if request.epoch == 9:
            return written(request)
        return storage_pb2.Reply(refusal=Refusal(reason=Refusal.STALE_EPOCH, epoch=9, leader_node=1))

    world = make(n1=answer)
    world.put()
    await settle()
    assert isinstance(world.only, storage_pb2.Reply)
    assert [request.epoch for request in world.nodes[1].requests] == [0, 9]


async def test_a_changed_schema_asks_for_a_new_plan_once_the_catalog_has_it(make: Make) -> None:
    world = make(n1=refused(Refusal.SCHEMA_CHANGED, schema_version=2))
    world.catalog.after_refresh = topology(world.nodes.addresses, (table(schema_version=2),), PARTITIONS, 2)
    world.put()
    await settle()
    assert isinstance(world.only, StalePlanError)
    assert (world.only.type, world.only.status) == ("InternalServerError", 500)  # what a client that sees it retries
    assert world.catalog.refreshes == 1


async def test_a_changed_schema_that_the_catalog_lacks_is_waited_for(make: Make) -> None:
    world = make(n1=refused(Refusal.SCHEMA_CHANGED, schema_version=2))
    world.put()
    await settle()
    assert world.results == []
    world.catalog.after_refresh = topology(world.nodes.addresses, (table(schema_version=2),), PARTITIONS, 2)
    await world.pass_time(0.05)
    assert isinstance(world.only, StalePlanError)


async def test_a_node_behind_the_routers_schema_is_waited_for(make: Make) -> None:
    world = make(n1=refused(Refusal.SCHEMA_CHANGED, schema_version=0))
    world.put()
    await settle()
    world.nodes[1].answer = written
    await world.pass_time(0.03)
    assert isinstance(world.only, storage_pb2.Reply)
    assert world.catalog.refreshes == 0


async def test_a_partition_that_moved_is_found_in_the_newer_map(make: Make) -> None:
    world = make(n1=refused(Refusal.NO_SUCH_PARTITION))
    moved = (partition(3, ZERO, ONES, nodes=(2, 3), preferred=3),)
    world.catalog.after_refresh = topology(world.nodes.addresses, (TABLE,), moved, 2)
    world.put()
    await settle()
    await world.pass_time(0.03)
    assert isinstance(world.only, storage_pb2.Reply)
    assert [request.partition for request in world.nodes[3].requests] == [3]


async def test_a_table_that_is_gone_needs_a_new_plan(make: Make) -> None:
    world = make(n1=refused(Refusal.NO_SUCH_PARTITION))
    world.catalog.after_refresh = topology(world.nodes.addresses, (), (), 2)
    world.put()
    await settle()
    assert isinstance(world.only, StalePlanError)
    world.put()  # now not in the map to begin with
    assert isinstance(world.results[1], StalePlanError)


async def test_a_full_disk_is_said_at_once(make: Make) -> None:
    world = make(n1=refused(Refusal.DISK_FULL))
    world.put()
    await settle()
    assert isinstance(world.only, ApiError)
    assert world.only.status == 503
    assert "disk space" in world.only.message


async def test_a_broken_stream_sends_the_same_operation_id_elsewhere(make: Make) -> None:
    world = make(n1=silent)
    world.put(operation_id=42)
    await settle()
    await world.nodes[1].server.crash()
    await settle()
    assert isinstance(world.only, storage_pb2.Reply)
    assert [request.operation_id for request in world.nodes[2].requests] == [42]


async def test_a_node_silent_for_half_a_second_is_given_up_on(make: Make) -> None:
    world = make(n1=silent)
    world.put()
    await settle()
    await world.pass_time(0.45)
    assert world.results == []
    await world.pass_time(0.1)
    assert isinstance(world.only, storage_pb2.Reply)
    assert world.nodes.counts() == (1, 1, 0)
    world.put()  # and it is not asked again while it is suspected
    await settle()
    assert world.nodes.counts() == (1, 2, 0)


async def test_a_node_that_answers_others_is_not_silent(make: Make) -> None:
    slow = {"first": True}

    def answer(request: storage_pb2.Request) -> storage_pb2.Reply | None:
        if slow.pop("first", False):
            return None
        return written(request)

    world = make(n1=answer)
    world.put()
    await settle()
    for _ in range(10):
        await world.pass_time(0.2)
        world.put()
        await settle()
    assert len(world.results) == 10
    assert world.nodes.counts() == (11, 0, 0)


async def test_an_unreachable_node_is_passed_over(make: Make) -> None:
    world = make()
    await world.nodes[1].server.crash()
    world.put()
    await settle()
    assert isinstance(world.only, storage_pb2.Reply)
    assert world.nodes.counts() == (0, 1, 0)


async def test_a_request_ends_when_its_time_is_over(make: Make) -> None:
    no_leader = refused(Refusal.NOT_LEADER)
    world = make({"request_time": 2.0}, n1=no_leader, n2=no_leader, n3=no_leader)
    world.put()
    await settle()
    await world.pass_time(1.9, step=0.1)
    assert world.results == []
    await world.pass_time(0.3, step=0.01)
    assert isinstance(world.only, ApiError)
    assert (world.only.type, world.only.status) == ("ServiceUnavailable", 503)
    assert world.executor.outstanding == 0
    deadlines = [request.deadline_ms for node in world.nodes.nodes.values() for request in node.requests]
    assert max(deadlines) == 2_000
    assert min(deadlines) < 200  # what is left, not the whole time again


async def test_a_request_that_is_never_answered_ends_too_and_its_late_reply_is_dropped(make: Make) -> None:
    world = make({"request_time": 1.0, "silence": 60.0}, n1=silent)
    world.put()
    await settle()
    await world.pass_time(1.3)
    assert isinstance(world.only, ApiError)
    world.nodes[1].answer = written
    world.put()
    await settle()
    assert len(world.results) == 2


async def test_time_is_never_more_than_thirty_seconds(make: Make) -> None:
    world = make({"request_time": 600.0})
    world.put()
    await settle()
    assert world.nodes[1].requests[0].deadline_ms == 30_000


async def test_too_many_requests_are_refused(make: Make) -> None:
    world = make({"outstanding_max": 3}, n1=silent)
    for _ in range(4):
        world.put()
    assert isinstance(world.only, ApiError)
    assert world.only.status == 503
    assert world.executor.outstanding == 3


async def test_eventual_reads_ride_with_what_goes_to_the_leader_anyway(make: Make) -> None:
    world = make(n1=lambda _: storage_pb2.Reply(item=storage_pb2.ItemReply()))
    world.put(ZERO)
    for _ in range(8):
        world.get(ZERO)
    await settle()
    assert [len(node.batches) for node in world.nodes.nodes.values()] == [1, 0, 0]
    assert len(world.results) == 9


async def test_eventual_reads_go_elsewhere_when_the_leader_is_behind_or_gone(make: Make) -> None:
    world = make(n1=silent)
    for _ in range(200):
        world.put()
    await settle()
    world.get()
    await settle()
    assert len(world.results) == 1  # by another node, while node 1 owes 200 answers
    await world.nodes[1].server.crash()
    await settle()
    world.get()
    await settle()
    assert len(world.results) == 202


async def test_an_eventual_read_does_not_teach_who_leads(make: Make) -> None:
    world = make(n1=silent)
    for _ in range(100):
        world.put()
    await settle()
    world.get()  # node 2 or 3 answers this
    await settle()
    assert len(world.results) == 1
    world.put()
    await world.pass_time(0.03)  # so long it waits for the writes before it
    assert world.nodes.counts()[0] == 101


async def test_call_returns_the_reply_or_raises(make: Make) -> None:
    world = make(n2=refused(Refusal.DISK_FULL))
    reply = await world.executor.call(Call(TABLE, ZERO, storage_pb2.Put(), 1))
    assert reply.write.new_size == 1
    with pytest.raises(ApiError, match="disk space"):
        await world.executor.call(Call(TABLE, ONES, storage_pb2.Put(), 1))


async def test_call_all_gives_each_result_in_its_place(make: Make) -> None:
    world = make(n2=refused(Refusal.DISK_FULL))
    calls = [Call(TABLE, hash_, storage_pb2.Put(), 1) for hash_ in (ZERO, ONES, ZERO)]
    results = await world.executor.call_all(calls)
    assert [isinstance(result, ApiError) for result in results] == [False, True, False]
    assert await world.executor.call_all([]) == []


async def test_a_failing_callback_does_not_hurt_the_others(make: Make) -> None:
    world = make()

    def fail(_: object) -> None:
        raise RuntimeError("the caller's own fault")

    world.executor.submit(Call(TABLE, ZERO, storage_pb2.Put(), 1), fail)
    world.put()
    await settle()
    assert isinstance(world.only, storage_pb2.Reply)
    assert world.executor.outstanding == 0


async def test_close_ends_what_is_under_way(make: Make) -> None:
    world = make(n1=silent, n2=refused(Refusal.NOT_READY))
    world.put(ZERO)
    world.put(ONES)
    await settle()
    await world.executor.close()
    assert [isinstance(result, ApiError) and result.status == 503 for result in world.results] == [True, True]
