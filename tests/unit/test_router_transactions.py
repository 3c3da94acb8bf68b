"""What a coordinator makes of its parts' answers."""

from __future__ import annotations

import pytest

from cluster.requests.call import StalePlanError
from cluster.wire import storage_pb2
from dynamo.errors import ApiError, unavailable
from router.transactions import Done, InProgress, Member, Part, Read, Replayed, judge, judge_reads, parts_of
from tests.unit.router_fakes import ONES, ZERO
from tests.unit.router_tables import Catalog, on_demand

LOW, HIGH = ZERO, ONES + b"x"
"""Row keys in the two partitions of the samples' table."""
WRITE = storage_pb2.ActionResult(write=storage_pb2.WriteReply(old_size=1, new_size=2))


def failed(type_: str, message: str = "no") -> storage_pb2.ActionResult:
    return storage_pb2.ActionResult(failure=storage_pb2.Failure(type=type_, message=message))


CONDITION = failed("ConditionalCheckFailedException")
INVALID = failed("ValidationException")
CONFLICT = failed("TransactionConflictException")


def parts(*rows: bytes) -> list[Part[Member]]:
    """The parts of actions on these rows."""
    catalog = Catalog(on_demand())
    (table,) = catalog.tables
    members = [Member(index, table, {}, row, storage_pb2.Action()) for index, row in enumerate(rows)]
    return parts_of(members, catalog.topology)


def reply(*results: storage_pb2.ActionResult) -> storage_pb2.Reply:
    transact = storage_pb2.TransactReply(results=results, sizes=[2] * len(results))
    return storage_pb2.Reply(transact=transact)


def codes(outcome: object) -> list[str]:
    assert isinstance(outcome, ApiError)
    return [reason["Code"] for reason in outcome.reasons]


def test_parts_are_partitions() -> None:
    found = parts(LOW, HIGH, LOW + b"2")
    assert [[member.index for member in part.members] for part in found] == [[0, 2], [1]]
    assert [part.hash for part in found] == [LOW, ONES]


def test_done_when_every_part_is() -> None:
    outcome = judge(parts(LOW, HIGH, LOW + b"2"), [reply(WRITE, WRITE), reply(WRITE)])
    assert isinstance(outcome, Done)
    assert (len(outcome.writes), outcome.sizes) == (3, (2, 2, 2))


def test_reasons_stand_where_their_actions_do() -> None:
    outcome = judge(parts(LOW, HIGH, LOW + b"2"), [reply(WRITE, CONDITION), reply(CONFLICT)])
    assert codes(outcome) == ["None", "TransactionConflict", "ConditionalCheckFailed"]


def test_nothing_is_said_of_actions_after_one_that_is_not_valid() -> None:
    """Case 106, with the parts in another order than the actions."""
    outcome = judge(parts(LOW, HIGH, LOW + b"2"), [reply(CONDITION, CONDITION), reply(INVALID)])
    assert codes(outcome) == ["ConditionalCheckFailed", "ValidationError", "None"]


def test_a_failure_tells_more_than_a_part_that_did_not_answer() -> None:
    assert codes(judge(parts(LOW, HIGH), [unavailable("no leader"), reply(CONDITION)])) == [
        "None",
        "ConditionalCheckFailed",
    ]
    outcome = judge(parts(LOW, HIGH), [unavailable("no leader"), reply(WRITE)])
    assert isinstance(outcome, ApiError)
    assert outcome.type == "ServiceUnavailable"


def test_a_part_whose_answer_is_not_kept_any_longer_may_be_done() -> None:
    trimmed = storage_pb2.Failure(type="InternalServerError", message="done before")
    outcome = judge(parts(LOW, HIGH), [reply(WRITE), storage_pb2.Reply(failure=trimmed)])
    assert isinstance(outcome, ApiError)
    assert (outcome.type, outcome.status) == ("InternalServerError", 500)


def test_a_table_that_has_changed_asks_for_a_new_plan() -> None:
    outcome = judge(parts(LOW, HIGH), [unavailable("no leader"), StalePlanError()])
    assert isinstance(outcome, StalePlanError)


def test_an_error_that_no_client_knows_may_be_tried_again() -> None:
    outcome = judge(parts(LOW), [reply(failed("ServiceUnavailable", "late"))])
    assert isinstance(outcome, ApiError)
    assert (outcome.type, outcome.status) == ("ServiceUnavailable", 503)


@pytest.mark.parametrize(("earlier", "expected"), [("SAME", Replayed((5, 6))), ("OTHER", None)])
def test_a_partition_knows_what_it_did_alone(earlier: str, expected: Replayed | None) -> None:
    transact = storage_pb2.TransactReply(earlier=earlier, sizes=[5, 6])
    outcome = judge(parts(LOW, HIGH), [reply(CONFLICT), storage_pb2.Reply(transact=transact)])
    if expected is None:
        assert isinstance(outcome, ApiError)
        assert outcome.type == "IdempotentParameterMismatchException"
    else:
        assert outcome == expected


def test_another_attempt_at_the_same_transaction_is_no_conflict() -> None:
    in_progress = storage_pb2.Reply(transact=storage_pb2.TransactReply(earlier="IN_PROGRESS"))
    for other in (reply(CONFLICT), reply(WRITE), unavailable("no leader")):
        assert judge(parts(LOW, HIGH), [in_progress, other]) == InProgress()
    done = storage_pb2.Reply(transact=storage_pb2.TransactReply(earlier="SAME", sizes=[5, 6]))
    assert judge(parts(LOW, HIGH), [in_progress, done]) == Replayed((5, 6))


def reads(*rows: bytes) -> list[Part[Read]]:
    catalog = Catalog(on_demand())
    (table,) = catalog.tables
    return parts_of([Read(index, table, row, b"") for index, row in enumerate(rows)], catalog.topology)


def look(*versions: int, marked: bool = False) -> storage_pb2.Reply:
    found = [
        storage_pb2.TransactRead(version=version, marked=marked, item=storage_pb2.ItemReply(size=version))
        for version in versions
    ]
    return storage_pb2.Reply(transact_get=storage_pb2.TransactGetReply(reads=found))


def test_items_that_stayed_what_they_were_are_read() -> None:
    outcome = judge_reads(reads(LOW, HIGH, LOW + b"2"), [look(1, 3), look(2)], [look(1, 3), look(2)])
    assert not isinstance(outcome, ApiError)
    assert [item.size for item in outcome] == [1, 2, 3]


def test_items_that_changed_or_are_held_are_not() -> None:
    found = reads(LOW, HIGH, LOW + b"2")
    assert codes(judge_reads(found, [look(1, 3), look(2)], [look(1, 4), look(2)])) == [
        "None",
        "None",
        "TransactionConflict",
    ]
    for first, second in (
        ([look(1, 3), look(2, marked=True)], [look(1, 3), look(2)]),
        ([look(1, 3), look(2)], [look(1, 3), look(2, marked=True)]),
    ):
        assert codes(judge_reads(found, first, second)) == ["None", "TransactionConflict", "None"]
    assert codes(judge_reads(reads(LOW), [look(1, marked=True)], [])) == ["TransactionConflict"]
