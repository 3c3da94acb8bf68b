"""What a leader decides, and what every replica makes of the log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.wire import storage_pb2
from dynamo.codec import CorruptItem
from dynamo.expressions.compile import compile_expressions
from dynamo.item import ITEM_SIZE_MAX, item_size
from dynamo.values import AttributeValue, Item, load
from storagenode import commands
from storagenode.partition import Answer, Partition, Propose, Repeat
from storagenode.storage.memory_store import MemoryStore
from storagenode.storage.store import WriteBatch
from storagenode.unwritten_answers import GENERATION_ANSWERS, GENERATION_BYTES, UnwrittenAnswers
from tests.unit.partition_samples import NOW_MS, Leader, item, key, put, values_json

ONE: dict[str, AttributeValue] = {":one": {"N": "1"}}


def condition(
    text: str, values: dict[str, AttributeValue] | None = None, *, return_old: bool = False
) -> storage_pb2.Condition:
    """A condition as the router sends it."""
    compiled = compile_expressions(condition=text, names=None, values=values)
    return storage_pb2.Condition(
        tree=compiled.encoded_condition or b"", values=values_json(compiled.values), return_old=return_old
    )


def failure(decision: object) -> storage_pb2.Failure:
    """The refusal in an answer."""
    assert isinstance(decision, Answer)
    assert isinstance(decision.reply, storage_pb2.Failure)
    return decision.reply


def accepted(decision: object) -> storage_pb2.WriteReply:
    """The answer of a single write that goes ahead."""
    assert isinstance(decision, Propose)
    assert isinstance(decision.reply, storage_pb2.WriteReply)
    return decision.reply


def test_what_is_proposed_is_not_read_before_it_is_applied() -> None:
    leader = Leader()
    assert isinstance(leader.put(item("a", 1)), Propose)
    assert leader.get("a", 1) is None
    leader.apply()
    assert leader.get("a", 1) == item("a", 1)


def test_a_write_is_decided_on_those_in_flight_before_it() -> None:
    leader = Leader()
    for _ in range(5):
        leader.update("a", 1, "ADD n :one", ONE)
    leader.apply()
    assert leader.get("a", 1) == item("a", 1, n={"N": "5"})


def test_a_refusal_waits_for_the_write_in_flight_that_it_rests_on() -> None:
    leader = Leader()
    leader.put(item("a", 1))
    refused = leader.put(item("a", 1), condition=condition("attribute_not_exists(pk)"))
    assert failure(refused).type == "ConditionalCheckFailedException"
    assert isinstance(refused, Answer)
    assert refused.after == leader.position
    leader.apply()
    later = leader.put(item("a", 1), condition=condition("attribute_not_exists(pk)"))
    assert isinstance(later, Answer)
    assert later.after == 0


def test_a_failed_condition_shows_the_item_only_where_it_was_asked_for() -> None:
    leader = Leader()
    leader.put(item("a", 1, v={"S": "x"}))
    leader.apply()
    plain = failure(leader.put(item("a", 1), condition=condition("v = :v", {":v": {"S": "y"}})))
    assert plain.item == b""
    shown = failure(leader.put(item("a", 1), condition=condition("v = :v", {":v": {"S": "y"}}, return_old=True)))
    assert load(shown.item) == item("a", 1, v={"S": "x"})
    assert shown.size == item_size(item("a", 1, v={"S": "x"}))


def test_old_items_are_returned_where_they_were_asked_for() -> None:
    leader = Leader()
    leader.put(item("a", 1, v={"S": "x"}))
    leader.apply()
    replaced = leader.put(item("a", 1), return_old=True)
    assert load(accepted(replaced).attributes) == item("a", 1, v={"S": "x"})
    leader.apply()
    deleted = leader.delete("a", 1, return_old=True)
    assert load(accepted(deleted).attributes) == item("a", 1)


def test_a_delete_of_nothing_needs_no_entry() -> None:
    answer = Leader().delete("a", 1, return_old=True)
    assert isinstance(answer, Answer)
    assert answer.reply == storage_pb2.WriteReply()


def test_sizes_before_and_after_are_told_for_capacity() -> None:
    leader = Leader()
    first, second = item("a", 1, v={"S": "x" * 100}), item("a", 1, v={"S": "x" * 5})
    told = [leader.put(first), leader.put(second), leader.delete("a", 1)]
    sizes = [(accepted(write).old_size, accepted(write).new_size) for write in told]
    assert sizes == [(0, item_size(first)), (item_size(first), item_size(second)), (item_size(second), 0)]


@pytest.mark.parametrize(
    ("update", "creates"),
    [("REMOVE a", False), ("DELETE s :s", False), (None, True), ("SET a = :a", True), ("ADD n :n REMOVE a", True)],
)
def test_which_updates_create_a_missing_item(update: str | None, creates: bool) -> None:
    # Case 46.
    values: dict[str, AttributeValue] = {":s": {"SS": ["x"]}, ":a": {"S": "x"}, ":n": {"N": "1"}}
    used = {name: value for name, value in values.items() if update and name in update}
    leader = Leader()
    leader.update("a", 1, update, used or None)
    leader.apply()
    assert (leader.get("a", 1) is not None) is creates


@pytest.mark.parametrize(
    ("returning", "expected"),
    [
        (storage_pb2.Update.NONE, {}),
        (storage_pb2.Update.ALL_OLD, item("a", 1, n={"N": "1"}, m={"S": "m"})),
        (storage_pb2.Update.ALL_NEW, item("a", 1, n={"N": "2"}, m={"S": "m"})),
        (storage_pb2.Update.UPDATED_OLD, {"n": {"N": "1"}}),
        (storage_pb2.Update.UPDATED_NEW, {"n": {"N": "2"}}),
    ],
)
def test_return_values_of_updates(returning: storage_pb2.Update.Return, expected: Item) -> None:
    leader = Leader()
    leader.put(item("a", 1, n={"N": "1"}, m={"S": "m"}))
    leader.apply()
    decision = leader.update("a", 1, "ADD n :one", ONE, returning=returning)
    attributes = accepted(decision).attributes
    assert (load(attributes) if attributes else {}) == expected


def test_an_update_that_cannot_be_done_changes_nothing() -> None:
    leader = Leader()
    leader.put(item("a", 1, n={"S": "text"}))
    leader.apply()
    refused = failure(leader.update("a", 1, "ADD n :one", ONE))
    assert refused.type == "ValidationException"
    leader.apply()
    assert leader.get("a", 1) == item("a", 1, n={"S": "text"})


def test_an_update_beyond_the_ceiling_is_refused() -> None:
    leader = Leader()
    leader.put(item("a", 1, v={"S": "x" * (ITEM_SIZE_MAX - 2_000)}))
    leader.apply()
    refused = failure(leader.update("a", 1, "SET w = :w", {":w": {"S": "x" * 3_000}}))
    assert refused.message == "Item size to update has exceeded the maximum allowed size"


def test_a_retry_joins_its_first_try_and_is_repeated_after_it() -> None:
    leader = Leader()
    request = put(item("a", 1), operation_id=99, return_old=True)
    first = leader.decide(request)
    position = leader.position
    joined = leader.decide(request)
    assert isinstance(first, Propose)
    assert isinstance(joined, Answer)
    assert (joined.after, joined.reply) == (position, first.reply)
    leader.apply()
    repeated = leader.decide(request)
    assert isinstance(repeated, Repeat)
    entry = next(entry for entry in leader.log if entry.position == repeated.position)
    command = commands.decode(entry.payload)
    assert isinstance(command, commands.WriteCommand)
    assert storage_pb2.WriteReply.FromString(command.reply) == first.reply


def test_operations_are_remembered_by_whoever_applied_them_and_over_a_restart() -> None:
    leader = Leader()
    request = put(item("a", 1), operation_id=99)
    leader.decide(request)
    follower = Partition(MemoryStore())
    follower.apply(leader.log)
    assert isinstance(follower.decide(request, NOW_MS, leader.position + 1), Repeat)
    leader.apply()
    restarted = Leader(leader.store)
    assert isinstance(restarted.decide(request), Repeat)


def test_a_lost_leader_forgets_what_it_proposed() -> None:
    leader = Leader()
    leader.put(item("a", 1), operation_id=99)
    leader.partition.abandon()
    again = leader.partition.decide(put(item("a", 1), operation_id=99), NOW_MS, leader.position)
    assert accepted(again).old_size == 0


def test_applying_in_one_go_or_one_by_one_ends_the_same() -> None:
    def write(leader: Leader) -> None:
        for n in range(30):
            leader.put(item("a", n % 7, v={"N": str(n)}))
            if n % 3 == 0:
                leader.delete("a", (n + 2) % 7)

    whole, single = Leader(), Leader()
    write(whole)
    write(single)
    whole.apply()
    single.apply(together=False)
    assert whole.partition.applied == single.partition.applied
    assert list(whole.store.scan(b"", b"")) == list(single.store.scan(b"", b""))


def test_items_and_bytes_are_counted() -> None:
    leader = Leader()
    for n in range(10):
        leader.put(item("a", n, v={"S": "x" * n}))
    leader.delete("a", 3)
    leader.put(item("a", 4))
    leader.apply()
    left = [found for n in range(10) if (found := leader.get("a", n)) is not None]
    statistics = leader.partition.statistics()
    assert (statistics.items, statistics.size) == (len(left), sum(map(item_size, left)))


def test_stamps_rise_though_the_clock_falls_back() -> None:
    partition = Leader().partition
    stamps = [partition.next_stamp(wall_ms) for wall_ms in (NOW_MS, NOW_MS, NOW_MS - 60_000, NOW_MS + 1)]
    assert stamps == sorted(set(stamps))


def test_a_flipped_bit_is_never_read() -> None:
    leader = Leader()
    leader.put(item("a", 1, v={"S": "hello"}))
    leader.apply()
    ((row, stored),) = leader.store.scan(b"", b"")
    broken = WriteBatch(leader.partition.applied)
    broken.items[row] = stored[:-4] + bytes([stored[-4] ^ 1]) + stored[-3:]
    leader.store.write(broken)
    with pytest.raises(CorruptItem):
        leader.get("a", 1)
    with pytest.raises(CorruptItem):
        leader.put(item("a", 1), condition=condition("attribute_exists(pk)"))


def test_an_entry_of_a_newer_version_is_not_guessed_at() -> None:
    with pytest.raises(commands.UnknownCommand):
        commands.decode(b"\x02\x01whatever")


def test_keys_of_other_items_are_left_alone() -> None:
    leader = Leader()
    leader.put(item("a", 1))
    leader.put(item("a", 2))
    leader.apply()
    leader.delete("a", 1)
    leader.apply()
    assert [row for row, _ in leader.store.scan(b"", b"")] == [key("a", 2)]


def deletion(operation_id: int) -> storage_pb2.Request:
    """DeleteItem of a, 1."""
    return storage_pb2.Request(operation_id=operation_id, delete=storage_pb2.Delete(key=key("a", 1)))


def conditional(operation_id: int) -> storage_pb2.Request:
    """PutItem of a, 1 where it has a value."""
    return put(item("a", 1, v={"S": "late"}), operation_id=operation_id, condition=condition("attribute_exists(v)"))


@pytest.mark.parametrize("request_of", [deletion, conditional])
def test_a_request_that_was_answered_without_a_change_changes_nothing_when_it_comes_again(
    request_of: Callable[[int], storage_pb2.Request],
) -> None:
    leader = Leader()
    first = leader.decide(request_of(50))
    assert isinstance(first, Answer)
    leader.put(item("a", 1, v={"S": "x"}))
    leader.apply()
    assert leader.decide(request_of(50)) == first
    assert isinstance(leader.decide(request_of(51)), Propose)


def test_such_an_answer_rests_on_what_it_rested_on_until_that_is_applied() -> None:
    leader = Leader()
    leader.put(item("a", 1))
    rests_on = leader.position
    for _ in range(2):
        answer = leader.decide(conditional(50))
        assert isinstance(answer, Answer)
        assert answer.after == rests_on
    leader.apply()
    repeated = leader.decide(conditional(50))
    assert isinstance(repeated, Answer)
    assert repeated.after == 0


def test_a_leader_that_lost_what_an_answer_rested_on_forgets_the_answer() -> None:
    leader = Leader()
    leader.put(item("a", 1, v={"S": "x"}))
    leader.partition.abandon()
    answer = leader.decide(conditional(50))
    assert isinstance(answer, Answer)
    leader.partition.abandon()
    leader.apply()
    assert isinstance(leader.decide(conditional(50)), Propose)


def test_answers_without_an_entry_are_remembered_within_bounds() -> None:
    answers = UnwrittenAnswers()
    image = bytes(GENERATION_BYTES // 4)
    failed = storage_pb2.Failure(item=image)
    together = storage_pb2.TransactReply(results=[storage_pb2.ActionResult(failure=failed)])
    written = storage_pb2.WriteReply(attributes=image)
    for number, large in enumerate([Answer(failed, 0), Answer(written, 0), Answer(together, 0)]):
        ids = range(100 * number + 1, 100 * number + 100)
        for operation_id in ids:
            answers.add(operation_id, large)
            assert answers.find(operation_id, 0) == large
        assert sum(answers.find(operation_id, 0) is not None for operation_id in ids) <= 8
    small = Answer(storage_pb2.WriteReply(), 0)
    for operation_id in range(1, 3 * GENERATION_ANSWERS):
        answers.add(operation_id, small)
    remembered = sum(answers.find(operation_id, 0) is not None for operation_id in range(1, 3 * GENERATION_ANSWERS))
    assert GENERATION_ANSWERS <= remembered <= 2 * GENERATION_ANSWERS
