"""Batches in one partition: what can be done is done, each write on its own, in one entry."""

from __future__ import annotations

import pytest

from cluster.wire import storage_pb2
from storagenode.decisions import Answer, Propose, Repeat
from tests.unit.partition_samples import INDEXED, Leader, item
from tests.unit.transaction_samples import add, delete, finish, prepare, put

TransactReply = storage_pb2.TransactReply


def batch(*actions: storage_pb2.Action, operation_id: int) -> storage_pb2.Request:
    return storage_pb2.Request(operation_id=operation_id, batch=storage_pb2.Batch(actions=actions))


def results_of(decision: object) -> list[storage_pb2.ActionResult]:
    assert isinstance(decision, Propose | Answer)
    assert isinstance(decision.reply, TransactReply)
    return list(decision.reply.results)


@pytest.fixture
def leader() -> Leader:
    """A partition that holds the item a 1."""
    made = Leader()
    made.put(item("a", 1, n={"N": "1"}))
    made.apply()
    return made


def test_all_writes_of_a_batch_are_one_entry(leader: Leader) -> None:
    before = leader.position
    decision = leader.decide(batch(put(item("b", 1)), delete("a", 1), put(item("c", 1)), operation_id=9))
    assert leader.position == before + 1
    sizes = [(result.write.old_size > 0, result.write.new_size > 0) for result in results_of(decision)]
    assert sizes == [(False, True), (True, False), (False, True)]
    leader.apply()
    assert [leader.get(*row) for row in (("a", 1), ("b", 1), ("c", 1))] == [None, item("b", 1), item("c", 1)]
    assert leader.partition.statistics().items == 2


def test_an_item_that_a_transaction_holds_stops_only_itself(leader: Leader) -> None:
    leader.decide(prepare(add("a", 1, 1), operation_id=9, attempt="x"))
    decision = leader.decide(batch(put(item("b", 1)), put(item("a", 1)), operation_id=10))
    assert isinstance(decision, Propose)
    assert [each.failure.type for each in results_of(decision)] == ["", "TransactionConflictException"]
    leader.decide(finish("x", ("a", 1), commit=True))
    leader.apply()
    assert leader.get("a", 1) == item("a", 1, n={"N": "2"})
    assert leader.get("b", 1) == item("b", 1)


def test_a_batch_that_changes_nothing_is_answered_without_an_entry(leader: Leader) -> None:
    before = leader.position
    decision = leader.decide(batch(delete("y", 1), delete("z", 1), operation_id=9))
    assert isinstance(decision, Answer)
    assert decision.after == 0
    assert leader.position == before
    leader.decide(batch(delete("a", 1), delete("z", 1), operation_id=10))
    in_flight = leader.decide(batch(delete("a", 1), operation_id=11))
    assert isinstance(in_flight, Answer)
    assert in_flight.after == before + 1, "it rests on the delete that is not applied yet"


def test_a_batch_that_changed_nothing_changes_nothing_when_it_comes_again(leader: Leader) -> None:
    request = batch(delete("b", 1), delete("c", 1), operation_id=9)
    first = leader.decide(request)
    leader.put(item("b", 1))
    leader.apply()
    assert leader.decide(request) == first
    assert leader.get("b", 1) == item("b", 1)
    request.operation_id = 10
    assert isinstance(leader.decide(request), Propose)


@pytest.mark.parametrize("applied", [False, True])
def test_a_retry_is_the_same_request(leader: Leader, applied: bool) -> None:
    request = batch(put(item("b", 1)), delete("a", 1), operation_id=9)
    first = results_of(leader.decide(request))
    if applied:
        leader.apply()
    again = leader.decide(request)
    if applied:
        assert isinstance(again, Repeat)
        assert again.position == leader.position
    else:
        assert results_of(again) == first
        assert isinstance(again, Answer)
        assert again.after == leader.position


def test_members_of_one_item_collection_share_its_room() -> None:
    leader = Leader(table=INDEXED, item_collection_bytes_max=1_000)
    decision = leader.decide(
        batch(*(put(item("a", number, c={"S": "x" * 400})) for number in range(3)), operation_id=9)
    )
    types = [each.failure.type for each in results_of(decision)]
    full = types.index("ItemCollectionSizeLimitExceededException")
    assert full > 0
    assert types[:full] == [""] * full
    leader.apply()
    assert leader.partition.statistics().items == full
