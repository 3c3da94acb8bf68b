"""Transactions in one partition: done at once, marked, committed, cancelled, remembered, read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from cluster.wire import storage_pb2
from dynamo.item import ITEM_SIZE_MAX
from dynamo.values import load
from storagenode import commands
from storagenode.decisions import Answer, Propose, Repeat
from storagenode.storage import layout
from storagenode.storage.memory_store import MemoryStore
from storagenode.transaction_commands import FinishCommand, PrepareCommand, TransactCommand
from storagenode.transaction_marks import decode_mark
from storagenode.transaction_tokens import REMEMBERED_MS
from storagenode.transactions import PREPARE_MS_MAX
from tests.unit.partition_samples import NOW_MS, Leader, item, key
from tests.unit.transaction_samples import (
    MISSING,
    PRESENT,
    add,
    check,
    delete,
    finish,
    identity,
    prepare,
    put,
    read,
    transact,
)

TransactReply = storage_pb2.TransactReply


def reply_of(decision: object) -> storage_pb2.TransactReply:
    assert isinstance(decision, Propose | Answer)
    assert isinstance(decision.reply, TransactReply)
    return decision.reply


def refusals(decision: object) -> list[str]:
    """The type of failure that each action met, "" for none."""
    assert isinstance(decision, Answer)
    return [result.failure.type for result in reply_of(decision).results]


def rows(leader: Leader, prefix: bytes) -> dict[bytes, bytes]:
    return dict(leader.store.rows(prefix, layout.prefix_end(prefix)))


@pytest.fixture
def leader() -> Leader:
    """A partition that holds the item a 1, whose n is 1."""
    made = Leader()
    made.put(item("a", 1, n={"N": "1"}))
    made.apply()
    return made


# --- at once ---


def test_all_actions_of_a_transaction_are_one_entry(leader: Leader) -> None:
    before = leader.position
    decision = leader.decide(
        transact(add("a", 1, 4), put(item("b", 1)), delete("c", 1), check("d", 1, MISSING), operation_id=9)
    )
    assert isinstance(decision, Propose)
    assert leader.position == before + 1
    assert leader.get("b", 1) is None
    leader.apply()
    assert leader.get("a", 1) == item("a", 1, n={"N": "5"})
    assert leader.get("b", 1) == item("b", 1)
    assert leader.partition.applied.items == 2


def test_nothing_is_done_when_one_condition_fails(leader: Leader) -> None:
    decision = leader.decide(
        transact(
            put(item("b", 1)),
            put(item("a", 1), MISSING, return_old=True),
            check("c", 1, PRESENT),
            delete("a", 2),
            operation_id=9,
        )
    )
    failed = "ConditionalCheckFailedException"
    assert refusals(decision) == ["", failed, failed, ""]
    assert load(reply_of(decision).results[1].failure.item) == item("a", 1, n={"N": "1"})
    leader.apply()
    assert leader.get("b", 1) is None
    assert leader.get("a", 1) == item("a", 1, n={"N": "1"})


@pytest.mark.parametrize("request_of", [transact, partial(prepare, attempt="x")])
def test_a_refused_transaction_that_comes_again_is_refused_again(
    leader: Leader, request_of: Callable[..., storage_pb2.Request]
) -> None:
    """Its client was told that nothing was done, and others have written since."""
    request = request_of(put(item("b", 1)), check("c", 1, PRESENT), operation_id=9)
    first = leader.decide(request)
    leader.put(item("c", 1))
    leader.apply()
    assert leader.decide(request) == first
    assert isinstance(first, Answer)
    request.operation_id = 10
    assert isinstance(leader.decide(request), Propose)


def test_a_write_that_met_a_transaction_is_refused_again_when_it_comes_again(leader: Leader) -> None:
    leader.decide(prepare(add("a", 1, 1), operation_id=9, attempt="x"))
    whole = storage_pb2.Request(operation_id=10, put=put(item("a", 1)).put)
    part = transact(put(item("a", 1)), operation_id=11)
    first = [leader.decide(request) for request in (whole, part)]
    leader.decide(finish("x", ("a", 1), commit=True))
    leader.apply()
    again = [leader.decide(request) for request in (whole, part)]
    assert [each.reply for each in again if isinstance(each, Answer)] == [
        each.reply for each in first if isinstance(each, Answer)
    ]
    assert len(again) == len([each for each in again if isinstance(each, Answer)])
    assert leader.get("a", 1) == item("a", 1, n={"N": "2"})


def test_an_end_that_comes_before_what_it_ends_may_come_again(leader: Leader) -> None:
    end = finish("x", ("a", 1), commit=False)
    end.operation_id = 12
    assert isinstance(leader.decide(end), Answer)
    leader.decide(prepare(add("a", 1, 1), operation_id=9, attempt="x"))
    assert isinstance(leader.decide(end), Propose)


def test_a_transaction_sees_the_writes_in_flight_and_is_seen_by_the_next(leader: Leader) -> None:
    leader.decide(transact(add("a", 1, 10), operation_id=9))
    leader.decide(transact(add("a", 1, 100), check("b", 1, MISSING), operation_id=10))
    leader.put(item("b", 1), condition=None)
    leader.apply()
    assert leader.get("a", 1) == item("a", 1, n={"N": "111"})


def test_a_refusal_waits_for_what_it_rests_on(leader: Leader) -> None:
    leader.put(item("b", 1))
    decision = leader.decide(transact(put(item("b", 1), MISSING), operation_id=9))
    assert isinstance(decision, Answer)
    assert decision.after == leader.position


def test_sizes_are_those_of_the_larger_image(leader: Leader) -> None:
    decision = leader.decide(transact(put(item("a", 1)), delete("b", 1), check("a", 1, PRESENT), operation_id=9))
    old = reply_of(decision).results[0].write.old_size
    assert list(reply_of(decision).sizes) == [old, 0, old]
    assert reply_of(decision).results[2].write.new_size == old


def test_an_update_in_a_transaction_is_measured_by_the_item_alone() -> None:
    leader = Leader()
    room = ITEM_SIZE_MAX - len("pk") - len("a") - len("sk") - 2 - len("n") - 2 - len("s")
    leader.put(item("a", 1, s={"S": "x" * room}))
    alone = leader.update("a", 1, "ADD n :n", {":n": {"N": "1"}})
    assert isinstance(alone, Answer)
    assert isinstance(leader.decide(transact(add("a", 1, 1), operation_id=9)), Propose)
    leader.put(item("a", 1, s={"S": "x" * (room + 1)}))
    decision = leader.decide(transact(add("a", 1, 1), operation_id=10))
    assert refusals(decision) == ["ValidationException"]


@pytest.mark.parametrize("applied", [False, True])
def test_a_retry_is_the_same_request(leader: Leader, applied: bool) -> None:
    request = transact(add("a", 1, 1), operation_id=9)
    leader.decide(request)
    if applied:
        leader.apply()
    again = leader.decide(request)
    assert isinstance(again, Repeat if applied else Answer)
    leader.apply()
    assert leader.get("a", 1) == item("a", 1, n={"N": "2"})


# --- tokens ---


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_a_token_is_used_once(leader: Leader, applied: bool, whole: bool) -> None:
    first = leader.decide(transact(add("a", 1, 1), operation_id=9, token="t"))
    if applied:
        leader.apply()
    if whole:
        again = leader.decide(transact(add("a", 1, 1), operation_id=10, token="t"))
        other = leader.decide(transact(add("a", 1, 1), operation_id=11, token="t", payload="other"))
    else:  # the partition has been split meanwhile
        again = leader.decide(prepare(add("a", 1, 1), operation_id=10, token="t", attempt="t"))
        other = leader.decide(prepare(add("a", 1, 1), operation_id=11, token="t", attempt="t", payload="other"))
    assert reply_of(again) == TransactReply(earlier=TransactReply.SAME, sizes=reply_of(first).sizes)
    assert reply_of(other) == TransactReply(earlier=TransactReply.OTHER)
    assert isinstance(again, Answer)
    assert (again.after == 0) is applied
    leader.apply()
    assert leader.get("a", 1) == item("a", 1, n={"N": "2"})


def test_a_token_of_a_failed_transaction_may_be_used_again(leader: Leader) -> None:
    leader.decide(transact(put(item("b", 1), PRESENT), operation_id=9, token="t"))
    leader.put(item("b", 1))
    assert isinstance(leader.decide(transact(put(item("b", 1), PRESENT), operation_id=10, token="t")), Propose)


def decide_later(leader: Leader, request: storage_pb2.Request, later_ms: int) -> object:
    return leader.decide(request, NOW_MS + later_ms)


def test_tokens_are_remembered_for_ten_minutes(leader: Leader) -> None:
    leader.decide(transact(add("a", 1, 1), operation_id=9, token="t"))
    leader.apply()
    within = decide_later(leader, transact(add("a", 1, 1), operation_id=10, token="t"), REMEMBERED_MS - 1)
    assert reply_of(within).earlier == TransactReply.SAME
    after = decide_later(leader, transact(add("a", 1, 1), operation_id=11, token="t"), REMEMBERED_MS + 1)
    assert isinstance(after, Propose)


@pytest.mark.parametrize("together", [False, True])
def test_old_tokens_are_forgotten_whatever_is_applied_together(together: bool) -> None:
    leader = Leader()
    for number in range(10):
        decide_later(leader, transact(put(item("a", number)), operation_id=100 + number, token=f"{number}"), number)
    if not together:
        leader.apply()
    for number in range(2):
        decide_later(
            leader,
            transact(put(item("b", number)), operation_id=200 + number, token=f"later {number}"),
            REMEMBERED_MS + 5 + number,
        )
    leader.apply(together=together)
    left = [name for name in map(str, range(10)) if layout.token_key(identity(name)) in rows(leader, layout.TOKEN)]
    # Four go with the first of the later ones; by the second the fifth and the sixth have had their time.
    assert left == ["6", "7", "8", "9"]
    assert len(rows(leader, layout.TOKEN)) == len(rows(leader, layout.TOKEN_AGE)) == 6


def test_a_token_that_is_used_again_is_remembered_from_then_on(leader: Leader) -> None:
    leader.decide(transact(add("a", 1, 1), operation_id=9, token="t"))
    decide_later(leader, transact(add("a", 1, 1), operation_id=10), REMEMBERED_MS)
    leader.apply()
    decide_later(leader, transact(add("a", 1, 1), operation_id=11, token="t"), REMEMBERED_MS + 10)
    leader.apply()
    decide_later(leader, transact(add("a", 1, 1), operation_id=12, token="u"), REMEMBERED_MS + 20)
    leader.apply()
    assert layout.token_key(identity("t")) in rows(leader, layout.TOKEN)


# --- marks ---


def test_marks_hold_items_until_they_are_committed(leader: Leader) -> None:
    leader.decide(
        prepare(
            add("a", 1, 1), put(item("b", 1)), delete("a", 1 + 1), check("c", 1, MISSING), operation_id=9, attempt="x"
        )
    )
    leader.apply()
    assert leader.get("a", 1) == item("a", 1, n={"N": "1"})
    assert leader.get("b", 1) is None
    every = [("a", 1), ("b", 1), ("a", 2), ("c", 1)]
    assert all(each.marked for each in read(leader, *every))
    leader.decide(finish("x", *every, commit=True))
    leader.apply()
    assert leader.get("a", 1) == item("a", 1, n={"N": "2"})
    assert leader.get("b", 1) == item("b", 1)
    assert not any(each.marked for each in read(leader, *every))
    assert rows(leader, layout.PENDING) == {}


def test_cancelled_marks_leave_no_trace(leader: Leader) -> None:
    leader.decide(prepare(add("a", 1, 1), put(item("b", 1)), operation_id=9, attempt="x"))
    leader.decide(finish("x", ("a", 1), ("b", 1), commit=False))
    leader.apply()
    assert leader.get("a", 1) == item("a", 1, n={"N": "1"})
    assert leader.get("b", 1) is None
    assert rows(leader, layout.PENDING) == {}


@pytest.mark.parametrize("applied", [False, True])
def test_whatever_meets_a_mark_conflicts(leader: Leader, applied: bool) -> None:
    leader.decide(prepare(add("a", 1, 1), check("b", 1, MISSING), operation_id=9, attempt="x"))
    if applied:
        leader.apply()
    for decision in (leader.put(item("b", 1)), leader.delete("a", 1), leader.update("a", 1, "REMOVE n")):
        assert isinstance(decision, Answer)
        assert isinstance(decision.reply, storage_pb2.Failure)
        assert decision.reply.type == "TransactionConflictException"
        assert (decision.after == 0) is applied
    conflict = "TransactionConflictException"
    other = (put(item("z", 1)), check("a", 1, PRESENT))
    assert refusals(leader.decide(transact(*other, operation_id=10))) == ["", conflict]
    assert refusals(leader.decide(prepare(*other, operation_id=11, attempt="y"))) == ["", conflict]
    leader.apply()
    assert leader.get("z", 1) is None
    assert isinstance(leader.put(item("c", 1)), Propose)


@pytest.mark.parametrize("applied", [False, True])
def test_another_attempt_at_the_same_transaction_is_told_apart_from_a_conflict(leader: Leader, applied: bool) -> None:
    leader.decide(prepare(add("a", 1, 1), operation_id=9, token="t", attempt="x"))
    if applied:
        leader.apply()
    second = leader.decide(prepare(add("a", 1, 1), put(item("b", 1)), operation_id=10, token="t", attempt="y"))
    assert reply_of(second) == TransactReply(earlier=TransactReply.IN_PROGRESS)
    assert isinstance(second, Answer)
    assert (second.after == 0) is applied
    assert not leader.partition.marks.get(key("b", 1))
    leader.decide(finish("x", ("a", 1), commit=False))
    assert isinstance(leader.decide(prepare(add("a", 1, 1), operation_id=11, token="t", attempt="z")), Propose), (
        "the other one was given up"
    )


def test_items_are_free_as_soon_as_their_end_is_in_flight(leader: Leader) -> None:
    leader.decide(prepare(add("a", 1, 1), operation_id=9, attempt="x"))
    leader.decide(finish("x", ("a", 1), commit=True))
    leader.update("a", 1, "ADD n :one", {":one": {"N": "1"}})
    leader.apply()
    assert leader.get("a", 1) == item("a", 1, n={"N": "3"})


@pytest.mark.parametrize("commit", [False, True])
def test_marks_are_ended_once_and_by_their_own_attempt(leader: Leader, commit: bool) -> None:
    leader.decide(prepare(add("a", 1, 1), operation_id=9, attempt="x"))
    assert isinstance(leader.decide(finish("y", ("a", 1), commit=commit)), Answer)
    leader.decide(finish("x", ("a", 1), commit=commit))
    in_flight = leader.decide(finish("x", ("a", 1), commit=commit))
    assert isinstance(in_flight, Answer)
    assert in_flight.after == leader.position
    leader.apply()
    assert isinstance(leader.decide(finish("x", ("a", 1), commit=commit)), Answer)
    leader.apply()
    assert leader.get("a", 1) == item("a", 1, n={"N": "2" if commit else "1"})


def test_a_prepare_marks_all_or_nothing(leader: Leader) -> None:
    decision = leader.decide(prepare(add("a", 1, 1), put(item("b", 1), PRESENT), operation_id=9, attempt="x"))
    assert refusals(decision) == ["", "ConditionalCheckFailedException"]
    assert isinstance(leader.put(item("a", 1)), Propose)


def test_a_prepare_that_comes_too_late_or_too_early_marks_nothing(leader: Leader) -> None:
    for started_ms in (NOW_MS - PREPARE_MS_MAX - 1, NOW_MS + PREPARE_MS_MAX + 1):
        request = prepare(add("a", 1, 1), operation_id=9, attempt="x", started_ms=started_ms)
        assert refusals(leader.decide(request)) == ["ServiceUnavailable"]
    assert isinstance(leader.put(item("a", 1)), Propose)


def test_marks_and_tokens_survive_a_restart(leader: Leader) -> None:
    leader.decide(prepare(add("a", 1, 1), operation_id=9, attempt="x"))
    leader.decide(transact(put(item("b", 1)), operation_id=10, token="t"))
    leader.apply()
    again = Leader(leader.store)
    assert isinstance(again.put(item("a", 1)), Answer)
    assert reply_of(again.decide(transact(put(item("b", 1)), operation_id=11, token="t"))).earlier == TransactReply.SAME
    again.decide(finish("x", ("a", 1), commit=True))
    again.apply()
    assert again.get("a", 1) == item("a", 1, n={"N": "2"})


def test_a_leader_that_is_deposed_forgets_marks_in_flight(leader: Leader) -> None:
    leader.decide(prepare(add("a", 1, 1), operation_id=9, attempt="x"))
    leader.partition.abandon()
    leader.log.pop()
    leader.position -= 1
    assert isinstance(leader.put(item("a", 1)), Propose)


def test_replicas_take_the_same_rows_whatever_they_apply_together(leader: Leader) -> None:
    leader.decide(prepare(add("a", 1, 1), delete("b", 1), operation_id=9, attempt="x"))
    leader.put(item("c", 1))
    leader.decide(finish("x", ("a", 1), ("b", 1), commit=True))
    leader.decide(transact(delete("c", 1), put(item("d", 1)), operation_id=10, token="t"))
    leader.decide(prepare(add("a", 1, 1), operation_id=11, attempt="y"))
    leader.apply()
    follower = Leader(MemoryStore())
    follower.log, follower.position = leader.log, leader.position
    follower.apply(together=False)
    for prefix in (layout.ITEM, layout.PENDING, layout.TOKEN, layout.TOKEN_AGE, layout.META):
        assert rows(follower, prefix) == rows(leader, prefix)
    (mark,) = rows(leader, layout.PENDING).values()
    assert decode_mark(mark).attempt == identity("y")


# --- reads ---


def test_a_version_changes_with_every_write(leader: Leader) -> None:
    (before,) = read(leader, ("a", 1))
    leader.put(item("a", 1, n={"N": "1"}))
    leader.apply()
    (after,) = read(leader, ("a", 1))
    assert after.version != before.version
    assert load(after.item.item) == load(before.item.item)


def test_the_version_of_a_missing_item_changes_with_deletes(leader: Leader) -> None:
    (before,) = read(leader, ("b", 1))
    leader.put(item("b", 1))
    leader.delete("b", 1)
    leader.apply()
    (after,) = read(leader, ("b", 1))
    assert not before.item.item
    assert not after.item.item
    assert after.version != before.version
    (restarted,) = read(Leader(leader.store), ("b", 1))
    assert restarted.version == after.version


# --- the log ---


def test_commands_come_back_as_they_were_written(leader: Leader) -> None:
    leader.decide(prepare(add("a", 1, 1), delete("b", 1), operation_id=9, attempt="x", token="t"))
    leader.decide(finish("x", ("a", 1), ("b", 1), commit=False))
    leader.decide(transact(put(item("c", 1)), check("d", 1, MISSING), operation_id=10))
    prepared, finished, done = [commands.decode(entry.payload) for entry in leader.log[-3:]]
    assert isinstance(prepared, PrepareCommand)
    assert (prepared.operation_id, prepared.transaction, prepared.attempt) == (9, identity("t"), identity("x"))
    assert [each.key for each in prepared.items] == [key("a", 1), key("b", 1)]
    assert isinstance(finished, FinishCommand)
    assert (finished.commit, finished.attempt, finished.keys) == (False, identity("x"), (key("a", 1), key("b", 1)))
    assert isinstance(done, TransactCommand)
    assert done.payload == identity("payload")
    assert [each.key for each in done.writes] == [key("c", 1)]
    assert len(done.sizes) == 2
