"""Several PartiQL statements at once: BatchExecuteStatement and ExecuteTransaction. Numbers are those of the collected
cases."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.support import VALIDATION, Client, Item, n, random_name, refused, s
from tests.conformance.test_partiql import NO_KEY, NOT_WELL_FORMED, filled, stored

# --- batches ---


def batch(client: Client, *statements: str | Item, **members: Any) -> Any:
    """BatchExecuteStatement's answer."""
    given = [{"Statement": each} if isinstance(each, str) else each for each in statements]
    return client.batch_execute_statement(Statements=given, **members)


def test_a_batch_of_reads(client: Client, strings: str) -> None:
    p = filled(client, strings, 2)
    answer = batch(
        client,
        {"Statement": f'SELECT n FROM "{strings}" WHERE p = ? AND c = ?', "Parameters": [s(p), s("1")]},
        {"Statement": f"SELECT m.x FROM \"{strings}\" WHERE p = '{p}' AND c = '0'", "ConsistentRead": True},
        f"SELECT * FROM \"{strings}\" WHERE p = '{p}' AND c = 'none'",
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["Responses"] == [
        {"TableName": strings, "Item": {"n": n(1)}},
        {"TableName": strings, "Item": {"x": {"L": [n(0)]}}},
        {"TableName": strings},
    ]
    assert answer["ConsumedCapacity"] == [{"TableName": strings, "CapacityUnits": 2}]


def test_a_batch_that_cannot_be_read(client: Client, simple: str) -> None:
    """A value that is not of its type spoils the whole request, not its statement alone."""
    with refused("SerializationException"):
        batch(client, {"Statement": f'SELECT * FROM "{simple}" WHERE p = ?', "Parameters": [{"S": 1}]})


def test_a_batch_of_writes(client: Client, simple: str) -> None:
    p, q, r = random_name(), random_name(), random_name()
    for each in (q, r):
        client.put_item(TableName=simple, Item={"p": s(each), "a": n(1)})
    answer = batch(
        client,
        f"INSERT INTO \"{simple}\" VALUE {{'p': '{p}'}}",
        f"UPDATE \"{simple}\" SET a = a + 1 WHERE p = '{q}' RETURNING MODIFIED NEW *",
        f"DELETE FROM \"{simple}\" WHERE p = '{r}' RETURNING ALL OLD *",
    )
    assert answer["Responses"] == [
        {"TableName": simple},
        {"TableName": simple, "Item": {"a": n(2)}},
        {"TableName": simple, "Item": {"p": s(r), "a": n(1)}},
    ]
    assert [stored(client, simple, p=each) for each in (p, q, r)] == [{"p": s(p)}, {"p": s(q), "a": n(2)}, None]


def test_members_fail_on_their_own(client: Client, simple: str) -> None:
    p, q = random_name(), random_name()
    client.put_item(TableName=simple, Item={"p": s(p), "b": s("x" * 3000)})
    answer = batch(
        client,
        f"INSERT INTO \"{simple}\" VALUE {{'p': '{p}'}}",
        f"UPDATE \"{simple}\" SET a = 1 WHERE p = 'none'",
        f'INSERT INTO "{random_name()}" VALUE {{}}',
        "SLECT",
        f"DELETE FROM \"{simple}\" WHERE p = 'y' RETURNING MODIFIED OLD *",
        f'UPDATE "{simple}" SET a = 1 WHERE a = 1',
        f"INSERT INTO \"{simple}\" VALUE {{'p': '{q}'}}",
        ReturnConsumedCapacity="TOTAL",
    )
    errors = [response.get("Error") for response in answer["Responses"]]
    assert [error and error["Code"] for error in errors] == [
        "DuplicateItem",
        "ConditionalCheckFailed",
        "ResourceNotFound",
        "ValidationError",
        "ValidationError",
        "ValidationError",
        None,
    ]
    assert errors[3]["Message"] == f"{NOT_WELL_FORMED}Expected data manipulation"
    assert errors[5]["Message"] == NO_KEY
    named = ["TableName" in response for response in answer["Responses"]]
    assert named == [True, True, False, False, False, False, True]
    assert answer["ConsumedCapacity"] == [{"TableName": simple, "CapacityUnits": 3 + 1 + 1}]
    assert stored(client, simple, p=q) == {"p": s(q)}


def test_a_read_in_a_batch_names_one_item(client: Client, strings: str) -> None:
    where = f"FROM \"{strings}\" WHERE p = 'x'"
    answer = batch(client, f"SELECT * {where}", f"SELECT * {where} AND c = 'y' AND n = 1", f'SELECT * FROM "{strings}"')
    for response in answer["Responses"]:
        assert response["Error"] == {
            "Code": "ValidationError",
            "Message": "Select statements within BatchExecuteStatement must specify the primary key in the where "
            "clause.",
        }


def test_batches_that_are_refused_as_a_whole(client: Client, simple: str) -> None:
    """Case 118."""
    p = random_name()
    select, insert = f"SELECT * FROM \"{simple}\" WHERE p = '{p}'", f"INSERT INTO \"{simple}\" VALUE {{'p': '{p}'}}"
    with refused(VALIDATION, "Read and write requests together in the same batch is not supported."):
        batch(client, select, insert)
    with refused(VALIDATION, "Provided list of item keys contains duplicates"):
        batch(client, insert, f"UPDATE \"{simple}\" SET a = 1 WHERE p = '{p}'")
    with refused(VALIDATION, "Provided list of item keys contains duplicates"):
        batch(client, select, select)
    with refused(VALIDATION, "length greater than or equal to 1"):
        batch(client)
    with refused(VALIDATION, "length less than or equal to 25"):
        batch(client, *[f"INSERT INTO \"{simple}\" VALUE {{'p': '{p}{i}'}}" for i in range(26)])
    assert stored(client, simple, p=p) is None


# --- transactions ---


def transaction(client: Client, *statements: str | Item, **members: Any) -> Any:
    """ExecuteTransaction's answer."""
    given = [{"Statement": each} if isinstance(each, str) else each for each in statements]
    return client.execute_transaction(TransactStatements=given, **members)


def test_a_transaction_of_writes(client: Client, simple: str) -> None:
    p, q, r, t = (random_name() for _ in range(4))
    for each in (q, r, t):
        client.put_item(TableName=simple, Item={"p": s(each), "a": n(1)})
    answer = transaction(
        client,
        {"Statement": f"INSERT INTO \"{simple}\" VALUE {{'p': ?}}", "Parameters": [s(p)]},
        f"UPDATE \"{simple}\" SET a = a + 1 WHERE p = '{q}' AND a = 1",
        f"DELETE FROM \"{simple}\" WHERE p = '{r}'",
        f"EXISTS(SELECT * FROM \"{simple}\" WHERE p = '{t}' AND b IS MISSING)",
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["Responses"] == []
    (capacity,) = answer["ConsumedCapacity"]
    assert (capacity["TableName"], capacity["CapacityUnits"]) == (simple, 8)
    assert [stored(client, simple, p=each) for each in (p, q, r)] == [{"p": s(p)}, {"p": s(q), "a": n(2)}, None]


def test_a_transaction_of_reads(client: Client, strings: str) -> None:
    p = filled(client, strings, 2)
    where = f"FROM \"{strings}\" WHERE p = '{p}'"
    answer = transaction(
        client, f"SELECT n {where} AND c = '1'", f"SELECT m.x {where} AND c = '0'", f"SELECT * {where} AND c = 'none'"
    )
    assert answer["Responses"] == [{"Item": {"n": n(1)}}, {"Item": {"x": {"L": [n(0)]}}}, {}]


def test_a_transaction_that_fails_does_nothing(client: Client, simple: str) -> None:
    p, q = random_name(), random_name()
    client.put_item(TableName=simple, Item={"p": s(p)})
    with pytest.raises(client.exceptions.TransactionCanceledException) as raised:
        transaction(
            client,
            f"INSERT INTO \"{simple}\" VALUE {{'p': '{q}'}}",
            f"INSERT INTO \"{simple}\" VALUE {{'p': '{p}'}}",
            f"UPDATE \"{simple}\" SET a = 1 WHERE p = 'none'",
            f"EXISTS(SELECT * FROM \"{simple}\" WHERE p = 'neither' AND a = 1)",
        )
    codes = [reason["Code"] for reason in raised.value.response["CancellationReasons"]]
    assert codes == ["None", "DuplicateItem", "ConditionalCheckFailed", "ConditionalCheckFailed"]
    assert stored(client, simple, p=q) is None


def test_a_token_is_carried_out_once(client: Client, simple: str) -> None:
    p, token = random_name(), random_name()[:36]
    client.put_item(TableName=simple, Item={"p": s(p), "a": n(0)})
    members = {"ClientRequestToken": token, "ReturnConsumedCapacity": "INDEXES"}
    first, again = (
        transaction(client, f"UPDATE \"{simple}\" SET a = a + 1 WHERE p = '{p}'", **members)["ConsumedCapacity"][0]
        for _ in range(2)
    )
    assert (first["WriteCapacityUnits"], again["ReadCapacityUnits"]) == (2, 2)
    assert stored(client, simple, p=p)["a"] == n(1)
    with refused("IdempotentParameterMismatchException"):
        transaction(client, f"UPDATE \"{simple}\" SET a = a + 2 WHERE p = '{p}'", **members)


@pytest.mark.parametrize(
    ("statements", "text"),
    [
        (["SELECT * FROM {} WHERE"], f"Validation failed in TransactStatements[0]: {NOT_WELL_FORMED}Unexpected term"),
        (
            ["DELETE FROM {} WHERE p = 'x'", "UPDATE {} SET a = 1 WHERE p = 'y' RETURNING ALL NEW *"],
            "Validation failed in TransactStatements[1]: RETURNING clause is not supported in ExecuteTransaction.",
        ),
        (
            ["SELECT * FROM {}.\"i\" WHERE p = 'x'"],
            "Validation failed in TransactStatements[0]: Reads on indices are not supported within transactions.",
        ),
        (
            ["SELECT * FROM {} WHERE p = 'x' AND a = 1"],
            "Validation failed in TransactStatements[0]: Select statements within ExecuteTransaction must specify the "
            "primary key in the where clause.",
        ),
        (
            ["EXISTS(SELECT * FROM {} WHERE p = 'x')"],
            "Validation failed in TransactStatements[0]: EXISTS() must contain a single item read with additional "
            "condition",
        ),
        (["UPDATE {} SET a = 1"], f"Validation failed in TransactStatements[0]: {NO_KEY}"),
        (
            ["SELECT * FROM {} WHERE p = 'x'", "DELETE FROM {} WHERE p = 'y'"],
            "ExecuteTransaction API does not support both read and write operations in the same request.",
        ),
        (
            ["DELETE FROM {} WHERE p = 'x'", "UPDATE {} SET a = 1 WHERE p = 'x'"],
            "Transaction request cannot include multiple operations on one item",
        ),
        ([], "length greater than or equal to 1"),
    ],
)
def test_transactions_that_are_refused_as_a_whole(
    client: Client, simple: str, statements: list[str], text: str
) -> None:
    with refused(VALIDATION, text):
        transaction(client, *[statement.format(f'"{simple}"') for statement in statements])
