"""ExecuteStatement, BatchExecuteStatement and ExecuteTransaction at the level of plans: what nodes are asked, and what
is made of their replies."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from cluster.wire import storage_pb2
from dynamo.errors import ApiError
from dynamo.expressions import tree
from dynamo.keys import partition_hash
from router.operations import batch_execute_statement, execute_statement, execute_transaction
from router.plan import Call, Single, StalePlanError, Work, carry_out
from tests.unit.router_fakes import table
from tests.unit.router_plans import PlanCatalog, PlanExecutor, answer, context, failed, refusal, written

HASH = partition_hash("S", "a")
CONDITION_FAILED = "ConditionalCheckFailedException"


def statement(text: str, *parameters: Any, **members: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"Statement": text, **members}
    return {**body, "Parameters": list(parameters)} if parameters else body


def single(body: dict[str, Any], **members: Any) -> Call:
    made = execute_statement.plan(body, context(**members))
    assert isinstance(made, Single)
    return made.call


def queried(items: bytes = b"", **members: Any) -> Any:
    """A node that answers a query with these rows."""
    return lambda _: storage_pb2.Reply(query=storage_pb2.QueryReply(items=items, **members))


def condition_of(condition: storage_pb2.Condition) -> tuple[Any, Any]:
    return tree.decode_condition(condition.tree), orjson.loads(condition.values)


# --- reads ---


def test_a_whole_key_is_a_get() -> None:
    made = single(statement("SELECT n, sk FROM composite WHERE sk = ? AND pk = 'a'", {"S": "b"}))
    assert isinstance(made.operation, storage_pb2.Get)
    assert made.operation.key == HASH + b"b"
    assert tree.decode_projection(made.operation.projection) == (tree.Path(("n",)), tree.Path(("sk",)))
    assert (made.hash, made.any_replica, made.operation.consistent, made.operation_id) == (HASH, True, False, 0)
    assert not single(statement("SELECT * FROM hash WHERE pk = 'a'", ConsistentRead=True)).any_replica


async def test_a_partition_key_is_a_query() -> None:
    body = statement("SELECT * FROM composite WHERE pk = 'a' AND begins_with(sk, 'b') AND n > 1 ORDER BY sk DESC")
    rows, (call,) = await answer(execute_statement.plan, body, queried(b'{"n":{"N":"2"}},{"n":{"N":"3"}}', count=2))
    assert rows == {"Items": [{"n": {"N": "2"}}, {"n": {"N": "3"}}]}
    query = call.operation
    assert isinstance(query, storage_pb2.Query)
    assert (query.start, query.end, query.reverse) == (HASH + b"b", HASH + b"c", True)
    assert tree.decode_condition(query.filter) == tree.Compare(">", tree.Path(("n",)), tree.Value(2))
    assert orjson.loads(query.values)[2] == {"N": "1"}


async def test_anything_else_is_a_scan_of_all_partitions() -> None:
    _, calls = await answer(execute_statement.plan, statement("SELECT * FROM hash WHERE n = 1"), queried())
    assert len(calls) == 3
    starts = [call.operation.start for call in calls]  # type: ignore[union-attr]
    assert starts == sorted(starts)


async def test_the_keys_of_in_are_read_one_after_the_other_until_the_limit() -> None:
    body = statement("SELECT * FROM composite WHERE pk IN ['a', 'b', 'c']", Limit=3)

    def node(call: Call) -> storage_pb2.Reply:
        assert isinstance(call.operation, storage_pb2.Query)
        full = call.operation.limit < 2
        key = b'{"pk":{"S":"b"},"sk":{"S":"x"}}' if full else b""
        reply = storage_pb2.QueryReply(items=b"{}", count=1, scanned_count=1 if full else 2)
        return storage_pb2.Reply(query=storage_pb2.QueryReply(**_fields(reply), last_key=key, last_key_attributes=key))

    rows, calls = await answer(execute_statement.plan, body, node)
    assert len(rows["Items"]) == 2
    assert [call.operation.limit for call in calls] == [3, 1]  # type: ignore[union-attr]
    assert rows["LastEvaluatedKey"] == {"pk": {"S": "b"}, "sk": {"S": "x"}}
    again = {**body, "NextToken": rows["NextToken"]}
    _, calls = await answer(execute_statement.plan, again, queried())
    assert [call.hash for call in calls] == [partition_hash("S", "b"), partition_hash("S", "c")]
    assert [call.operation.after for call in calls] == [partition_hash("S", "b") + b"x", b""]  # type: ignore[union-attr]


def _fields(message: storage_pb2.QueryReply) -> dict[str, Any]:
    return {field.name: value for field, value in message.ListFields()}


async def test_an_index_that_is_being_filled_cannot_be_read() -> None:
    error = await refusal(execute_statement.plan, statement("SELECT * FROM indexed.new WHERE g = 1"))
    assert error.type == "ValidationException"


async def test_a_global_index_is_read_from_its_own_partitions() -> None:
    body = statement("SELECT * FROM indexed.wide WHERE g = 1 AND l = 'x' AND a > 'y'")
    _, (call,) = await answer(execute_statement.plan, body, queried())
    assert (call.table.id, call.table.index_of) == (7, 5)


# --- writes ---


def test_an_insert_is_a_put_of_what_is_not_there() -> None:
    made = single(statement("INSERT INTO hash VALUE {'pk': ?, 'n': 1.0}", {"S": "a"})).operation
    assert isinstance(made, storage_pb2.Put)
    assert orjson.loads(made.item) == {"pk": {"S": "a"}, "n": {"N": "1"}}
    assert condition_of(made.condition) == (tree.AttributeNotExists(tree.Path(("pk",))), [])


def test_an_update_needs_an_item() -> None:
    made = single(statement("UPDATE hash SET n = 1 WHERE pk = 'a' AND m = 2 RETURNING MODIFIED OLD *")).operation
    assert isinstance(made, storage_pb2.Update)
    exists = tree.AttributeExists(tree.Path(("pk",)))
    rest = tree.Compare("=", tree.Path(("m",)), tree.Value(2))
    assert tree.decode_condition(made.condition) == tree.And(exists, rest)
    assert tree.decode_update(made.tree) == (tree.Set(tree.Path(("n",)), tree.Value(0)),)
    assert (made.return_values, made.condition_return_old) == (storage_pb2.Update.UPDATED_OLD, False)


def test_a_delete_asks_only_what_is_there() -> None:
    made = single(statement("DELETE FROM hash WHERE pk = 'a' AND m = 2 RETURNING ALL OLD *")).operation
    assert isinstance(made, storage_pb2.Delete)
    rest = tree.Compare("=", tree.Path(("m",)), tree.Value(1))
    condition, values = condition_of(made.condition)
    assert condition == tree.Or(tree.AttributeNotExists(tree.Path(("pk",))), rest)
    assert (values[1], made.return_old) == ({"N": "2"}, True)
    plain = single(statement("DELETE FROM hash WHERE pk = 'a'")).operation
    assert isinstance(plain, storage_pb2.Delete)
    assert not plain.HasField("condition")


def test_a_retry_of_a_statement_has_its_operation_id() -> None:
    body = statement("UPDATE hash SET n = 1 WHERE pk = 'a'")
    first = single(body, invocation_id="i").operation_id
    assert first == single(body, invocation_id="i").operation_id
    assert first != single(body, invocation_id="j").operation_id


async def test_the_condition_of_an_insert_fails_as_a_duplicate() -> None:
    with pytest.raises(ApiError) as raised:
        await answer(
            execute_statement.plan, statement("INSERT INTO hash VALUE {'pk': 'a'}"), failed(CONDITION_FAILED, "")
        )
    assert raised.value.type == "DuplicateItemException"


async def test_a_table_that_the_catalog_at_hand_lacks_is_asked_for() -> None:
    catalog = PlanCatalog(table("late", id_=9))
    executor = PlanExecutor(written())
    made = execute_statement.plan(
        statement("INSERT INTO late VALUE {'pk': 'a', 'sk': 'b'}"), context(executor, catalog=catalog)
    )
    assert isinstance(made, Work)
    await carry_out(made, executor)
    assert (catalog.refreshes, executor.calls[0].table.id) == (1, 9)


# --- several ---


def batch(*statements: str) -> dict[str, Any]:
    return {"Statements": [{"Statement": text} for text in statements]}


async def test_members_of_a_batch_have_operation_ids_of_their_own() -> None:
    body = batch(*[f"INSERT INTO hash VALUE {{'pk': '{name}'}}" for name in "abc"])
    _, calls = await answer(batch_execute_statement.plan, body, written(), invocation_id="i")
    _, again = await answer(batch_execute_statement.plan, body, written(), invocation_id="i")
    ids = [call.operation_id for call in calls]
    assert len(set(ids)) == 3
    assert ids == [call.operation_id for call in again]


async def test_one_look_for_the_tables_of_a_batch() -> None:
    catalog = PlanCatalog(table("late", id_=9))
    body = batch("DELETE FROM late WHERE pk = 'a' AND sk = 'b'", "DELETE FROM never WHERE pk = 'a'")
    rows, calls = await answer(batch_execute_statement.plan, body, written(), catalog=catalog)
    assert (catalog.refreshes, len(calls)) == (1, 1)
    assert rows["Responses"][0] == {"TableName": "late"}
    assert rows["Responses"][1]["Error"]["Code"] == "ResourceNotFound"


async def test_a_member_that_meets_a_changed_table_has_the_batch_planned_again() -> None:
    def node(_: Call) -> ApiError:
        return StalePlanError()

    with pytest.raises(StalePlanError):
        await answer(batch_execute_statement.plan, batch("DELETE FROM hash WHERE pk = 'a'"), node)


@pytest.mark.parametrize(
    ("type_", "code"),
    [
        ("TransactionConflictException", "TransactionConflict"),
        ("ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded"),
        ("InternalServerError", "InternalServerError"),
        ("ServiceUnavailable", "InternalServerError"),
    ],
)
async def test_errors_of_members_have_short_codes(type_: str, code: str) -> None:
    body = batch("DELETE FROM hash WHERE pk = 'a'")
    rows, _ = await answer(batch_execute_statement.plan, body, failed(type_, "text"))
    assert rows["Responses"] == [{"Error": {"Code": code, "Message": "text"}, "TableName": "hash"}]


async def test_a_transaction_in_one_partition_is_one_call() -> None:
    texts = (
        "INSERT INTO composite VALUE {'pk': 'a', 'sk': '1'}",
        "UPDATE composite SET n = 1 WHERE pk = 'a' AND sk = '2'",
        "DELETE FROM composite WHERE pk = 'a' AND sk = '3'",
        "EXISTS(SELECT * FROM composite WHERE pk = 'a' AND sk = '4' AND n = 1)",
    )
    body = {"TransactStatements": [{"Statement": text} for text in texts]}

    def node(call: Call) -> storage_pb2.Reply:
        assert isinstance(call.operation, storage_pb2.Transact)
        kinds = [action.WhichOneof("action") for action in call.operation.actions]
        assert kinds == ["put", "update", "delete", "check"]
        result = storage_pb2.ActionResult(write=storage_pb2.WriteReply())
        return storage_pb2.Reply(transact=storage_pb2.TransactReply(results=[result] * 4, sizes=[1] * 4))

    rows, calls = await answer(execute_transaction.plan, body, node)
    assert rows == {"Responses": []}
    assert len(calls) == 1
