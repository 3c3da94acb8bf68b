"""Transactions over tables of several partitions."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.conformance.support import Client, random_name

MISSING, PRESENT = "attribute_not_exists(id)", "attribute_exists(id)"


def make_table(client: Client, **members: Any) -> str:
    """A table with partition key id, unless told otherwise; active."""
    name = random_name()
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        **{
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            **members,
        },
    )
    client.get_waiter("table_exists").wait(TableName=name)
    return name


@pytest.fixture(scope="module")
def table(client: Client) -> Iterator[str]:
    name = make_table(client)
    yield name
    client.delete_table(TableName=name)


@pytest.fixture(scope="module")
def other(client: Client) -> Iterator[str]:
    name = make_table(client)
    yield name
    client.delete_table(TableName=name)


@pytest.fixture
def make(client: Client) -> Iterator[Callable[..., str]]:
    """`make_table`, for tables that go with the test."""
    made: list[str] = []

    def made_table(**members: Any) -> str:
        made.append(make_table(client, **members))
        return made[-1]

    yield made_table
    for name in made:
        client.delete_table(TableName=name)


class Items:
    """Actions on items of one table whose keys begin with a random prefix."""

    def __init__(self, table: str) -> None:
        self.table = table
        self._prefix = str(uuid.uuid4())

    def key(self, name: str) -> dict[str, Any]:
        return {"id": {"S": f"{self._prefix}/{name}"}}

    def put(self, name: str, condition: str | None = None, **attributes: Any) -> dict[str, Any]:
        put = {"TableName": self.table, "Item": {**self.key(name), **attributes}}
        return {"Put": put if condition is None else {**put, "ConditionExpression": condition}}

    def add(self, name: str, amount: int) -> dict[str, Any]:
        values = {":n": {"N": str(amount)}}
        expression = {"UpdateExpression": "ADD n :n", "ExpressionAttributeValues": values}
        return {"Update": {"TableName": self.table, "Key": self.key(name), **expression}}

    def delete(self, name: str) -> dict[str, Any]:
        return {"Delete": {"TableName": self.table, "Key": self.key(name)}}

    def check(self, name: str, condition: str) -> dict[str, Any]:
        return {"ConditionCheck": {"TableName": self.table, "Key": self.key(name), "ConditionExpression": condition}}

    def get(self, name: str) -> dict[str, Any]:
        return {"Get": {"TableName": self.table, "Key": self.key(name)}}


@pytest.fixture
def items(table: str) -> Items:
    return Items(table)


def read(client: Client, items: Items, name: str) -> Any:
    """What is at a key, without the key; None if nothing is."""
    item = client.get_item(TableName=items.table, Key=items.key(name), ConsistentRead=True).get("Item")
    return None if item is None else {attribute: value for attribute, value in item.items() if attribute != "id"}


def write(client: Client, *actions: dict[str, Any], **options: Any) -> Any:
    return client.transact_write_items(TransactItems=list(actions), **options)


def error_of(client: Client, *actions: dict[str, Any], **options: Any) -> dict[str, Any]:
    with pytest.raises(ClientError) as raised:
        write(client, *actions, **options)
    return dict(raised.value.response)


def codes(response: dict[str, Any]) -> list[str]:
    assert response["Error"]["Code"] == "TransactionCanceledException"
    found = [reason["Code"] for reason in response["CancellationReasons"]]
    listed = ", ".join(found)
    assert response["Error"]["Message"] == (
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{listed}]"
    )
    return found


# --- all or nothing ---


def test_all_actions_are_done_over_partitions_and_tables(client: Client, items: Items, other: str) -> None:
    elsewhere = Items(other)
    write(client, *(items.put(str(number)) for number in range(10)), elsewhere.put("x"))
    write(
        client,
        *(items.add(str(number), number) for number in range(9)),
        items.delete("9"),
        elsewhere.check("x", PRESENT),
        elsewhere.add("y", 7),
    )
    assert [read(client, items, str(number)) for number in range(9)] == [{"n": {"N": str(n)}} for n in range(9)]
    assert read(client, items, "9") is None
    assert read(client, elsewhere, "y") == {"n": {"N": "7"}}


def test_a_hundred_actions(client: Client, items: Items) -> None:
    write(client, *(items.put(str(number)) for number in range(100)))
    gets = [items.get(str(number)) for number in range(100)]
    responses = client.transact_get_items(TransactItems=gets)["Responses"]
    assert [response["Item"] for response in responses] == [items.key(str(number)) for number in range(100)]


@pytest.mark.parametrize("others", [0, 8])  # alone, or with items of other partitions
def test_one_failed_condition_cancels_all(client: Client, items: Items, others: int) -> None:
    write(client, items.put("taken", v={"S": "old"}))
    more = [items.put(f"new {number}") for number in range(others)]
    taken = items.put("taken", MISSING, v={"S": "new"})
    taken["Put"]["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    response = error_of(client, *more, taken)
    assert codes(response) == ["None"] * others + ["ConditionalCheckFailed"]
    reason = response["CancellationReasons"][-1]
    assert reason["Item"] == {**items.key("taken"), "v": {"S": "old"}}
    assert reason["Message"] == "The conditional request failed"
    assert response["CancellationReasons"][:-1] == [{"Code": "None"}] * others
    assert all(read(client, items, f"new {number}") is None for number in range(others))
    # Nothing stays marked.
    write(client, *more, items.put("taken"))


def test_every_failure_is_told(client: Client, items: Items) -> None:
    """Case 106: positions, and nothing after an action that is not valid."""
    write(client, *(items.put(str(number), n={"S": "no number"}) for number in range(4)))
    response = error_of(
        client,
        items.put("0", MISSING),
        items.put("fresh", MISSING),
        items.check("1", MISSING),
        items.add("2", 1),
        items.put("3", MISSING),
    )
    assert codes(response) == ["ConditionalCheckFailed", "None", "ConditionalCheckFailed", "ValidationError", "None"]
    assert "incorrect data type" in response["CancellationReasons"][3]["Message"]


def test_several_items_of_one_partition_key(client: Client, make: Callable[..., str]) -> None:
    name = make(
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "id", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
        ],
    )
    puts = [{"Put": {"TableName": name, "Item": {"id": {"S": "a"}, "sk": {"N": str(n)}}}} for n in range(20)]
    write(client, *puts)
    condition = {"KeyConditionExpression": "id = :id", "ExpressionAttributeValues": {":id": {"S": "a"}}}
    assert client.query(TableName=name, ConsistentRead=True, **condition)["Count"] == 20


def test_indexes_follow(client: Client, make: Callable[..., str]) -> None:
    name = make(
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each in ("id", "sk", "x")],
        LocalSecondaryIndexes=[
            {
                "IndexName": "local",
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "x", "KeyType": "RANGE"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )

    def put(id_: str, **attributes: Any) -> dict[str, Any]:
        return {"Put": {"TableName": name, "Item": {"id": {"S": id_}, "sk": {"S": "1"}, **attributes}}}

    for wave in ("first", "second"):
        puts = [put(str(number), x={"S": wave}) for number in range(6)]
        answer = write(client, *puts, ReturnConsumedCapacity="INDEXES", ReturnItemCollectionMetrics="SIZE")
        (capacity,) = answer["ConsumedCapacity"]
        assert capacity["Table"]["WriteCapacityUnits"] == 12
        # An entry is put, or one is taken out and one put in; index units are not doubled.
        assert capacity["LocalSecondaryIndexes"]["local"]["CapacityUnits"] == (6 if wave == "first" else 12)
        assert len(answer["ItemCollectionMetrics"][name]) == 6
        for number in range(6):
            found = client.query(
                TableName=name,
                IndexName="local",
                ConsistentRead=True,
                KeyConditionExpression="id = :id",
                ExpressionAttributeValues={":id": {"S": str(number)}},
            )["Items"]
            assert [item["x"]["S"] for item in found] == [wave]


# --- what is wrong with a request ---


def test_an_item_may_be_named_once(client: Client, items: Items) -> None:
    """Case 104."""
    for pair in (
        (items.put("a"), items.put("a")),
        (items.put("a"), items.delete("a")),
        (items.add("a", 1), items.check("a", PRESENT)),
    ):
        error = error_of(client, *pair)["Error"]
        assert error["Code"] == "ValidationException"
        assert error["Message"] == "Transaction request cannot include multiple operations on one item"
    with pytest.raises(ClientError, match="cannot include multiple operations on one item"):
        client.transact_get_items(TransactItems=[items.get("a"), items.get("a")])


def test_four_megabytes_of_payload(client: Client, items: Items) -> None:
    """Case 105: what counts is the request, not the items that it deletes."""
    large = "x" * 100_000
    for start in range(0, 50, 10):
        write(client, *(items.put(str(number), v={"S": large}) for number in range(start, start + 10)))
    error = error_of(client, *(items.put(str(number), v={"S": large}) for number in range(50)))["Error"]
    assert error["Code"] == "ValidationException"
    write(client, *(items.delete(str(number)) for number in range(50)))
    assert read(client, items, "0") is None


def test_put_too_large_is_the_request_s_fault_and_update_the_action_s(client: Client, items: Items) -> None:
    error = error_of(client, items.put("a", v={"S": "x" * 409_601}))["Error"]
    assert (error["Code"], error["Message"]) == (
        "ValidationException",
        "Item size has exceeded the maximum allowed size",
    )
    room = 409_600 - len(items.key("a")["id"]["S"]) - len("id") - len("v")
    write(client, items.put("a", v={"S": "x" * room}))
    response = error_of(client, items.add("a", 1), items.put("b"))
    assert codes(response) == ["ValidationError", "None"]
    assert response["CancellationReasons"][0]["Message"] == (
        "Item size to update has exceeded the maximum allowed size"
    )


def test_expressions_are_the_request_s_fault_and_keys_the_action_s(client: Client, items: Items) -> None:
    """Cases 18, 62, 74, 106."""
    put = items.put("a")["Put"]
    for wrong in (
        {"ExpressionAttributeValues": {}, "ConditionExpression": MISSING},
        {"ExpressionAttributeNames": {"#x": "x"}, "ConditionExpression": MISSING},
        {"ConditionExpression": "#x = id"},
        {"ConditionExpression": "= id"},
    ):
        assert error_of(client, {"Put": {**put, **wrong}})["Error"]["Code"] == "ValidationException"
    empty = error_of(client, {"Put": {"TableName": items.table, "Item": {"id": {"S": ""}}}})["Error"]
    assert empty["Code"] == "ValidationException"
    assert "empty string value. Key: id" in empty["Message"]
    typed = error_of(client, items.put("b"), {"Put": {"TableName": items.table, "Item": {"id": {"N": "1"}}}})
    assert codes(typed) == ["None", "ValidationError"]
    assert "Type mismatch for key id" in typed["CancellationReasons"][1]["Message"]
    assert read(client, items, "b") is None
    with pytest.raises(ClientError) as raised:
        client.transact_get_items(TransactItems=[{"Get": {"TableName": items.table, "Key": {}}}])
    assert codes(dict(raised.value.response)) == ["ValidationError"]


def test_an_action_is_one_thing(client: Client, items: Items) -> None:
    both = {**items.put("a"), **items.delete("b")}
    assert error_of(client, both)["Error"]["Message"] == (
        "TransactItems can only contain one of Check, Put, Update or Delete"
    )
    assert error_of(client, {})["Error"]["Message"] == (
        "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request"
    )


def test_a_table_that_is_not_there(client: Client, items: Items) -> None:
    error = error_of(client, items.put("a"), Items("no-such-table").put("a"))["Error"]
    assert (error["Code"], error["Message"]) == ("ResourceNotFoundException", "Requested resource not found")
    assert read(client, items, "a") is None


# --- tokens ---


def spread(items: Items, count: int) -> list[dict[str, Any]]:
    """Actions on one item, or on so many that they are in several partitions."""
    return [items.add(str(number), 1) for number in range(count)]


@pytest.mark.parametrize("count", [1, 9])
def test_a_token_makes_a_transaction_happen_once(client: Client, items: Items, count: int) -> None:
    """Cases 108 and 110: the replay is charged as a read, in steps of 4 KB."""
    token = str(uuid.uuid4())
    write(client, *(items.put(str(number), v={"S": "x" * 1_500}) for number in range(count)))
    options = {"ClientRequestToken": token, "ReturnConsumedCapacity": "TOTAL"}
    (first,) = write(client, *spread(items, count), **options)["ConsumedCapacity"]
    (again,) = write(client, *spread(items, count), **options)["ConsumedCapacity"]
    assert (first["CapacityUnits"], first["WriteCapacityUnits"]) == (4 * count, 4 * count)
    assert (again["CapacityUnits"], again["ReadCapacityUnits"]) == (2 * count, 2 * count)
    assert "WriteCapacityUnits" not in again
    assert all(read(client, items, str(number))["n"] == {"N": "1"} for number in range(count))
    other = error_of(client, *spread(items, count)[:-1], items.add(str(count - 1), 2), ClientRequestToken=token)
    assert other["Error"]["Code"] == "IdempotentParameterMismatchException"


@pytest.mark.parametrize("count", [1, 9])
def test_a_token_of_a_cancelled_transaction_may_be_used_again(client: Client, items: Items, count: int) -> None:
    token = str(uuid.uuid4())
    actions = [items.put(str(number), MISSING) for number in range(count)]
    write(client, items.put("0"))
    assert "ConditionalCheckFailed" in codes(error_of(client, *actions, ClientRequestToken=token))
    write(client, items.delete("0"))
    write(client, *actions, ClientRequestToken=token)
    assert read(client, items, "0") == {}


def test_a_token_has_at_most_36_characters(client: Client, items: Items) -> None:
    write(client, items.put("a"), ClientRequestToken="x" * 36)
    error = error_of(client, items.put("a"), ClientRequestToken="x" * 37)["Error"]
    assert error["Code"] == "ValidationException"
    assert "Member must have length less than or equal to 36" in error["Message"]


@pytest.mark.parametrize("count", [1, 9])
def test_concurrent_calls_with_one_token_run_once(client: Client, items: Items, count: int) -> None:
    """Case 109."""
    token = str(uuid.uuid4())
    actions = spread(items, count)

    def until_done() -> None:
        # On a machine so slow that an attempt is taken for dead and cancelled, what remains of it is met once more.
        while True:
            try:
                write(client, *actions, ClientRequestToken=token)
            except ClientError as error:
                only_conflicts(error)
            else:
                return

    with ThreadPoolExecutor(8) as pool:
        for call in [pool.submit(until_done) for _ in range(8)]:
            call.result()
    assert all(read(client, items, str(number))["n"] == {"N": "1"} for number in range(count))


# --- together with others ---


def only_conflicts(error: ClientError) -> None:
    """Nothing but another transaction was in the way."""
    response: dict[str, Any] = dict(error.response)
    if response["Error"]["Code"] == "TransactionConflictException":
        assert response["Error"]["Message"] == "Transaction is ongoing for the item"
    else:
        assert set(codes(response)) == {"TransactionConflict", "None"} or set(codes(response)) == {
            "TransactionConflict"
        }


def test_concurrent_transactions_and_writes_conflict_or_follow_each_other(client: Client, items: Items) -> None:
    """Case 114: nothing is lost, and whoever is refused hears of a conflict."""
    names = [str(number) for number in range(6)]
    write(client, *(items.put(name, n={"N": "0"}) for name in names))

    def transact(_: int) -> bool:
        try:
            write(client, *(items.add(name, 1) for name in names))
        except ClientError as error:
            only_conflicts(error)
            return False
        return True

    def add(number: int) -> bool:
        update = items.add(names[number % len(names)], 1_000)["Update"]
        try:
            client.update_item(**update)
        except ClientError as error:
            only_conflicts(error)
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        transacted = pool.map(transact, range(40))
        added = list(pool.map(add, range(60)))
        done = sum(transacted)
    for position, name in enumerate(names):
        alone = sum(added[position :: len(names)])
        assert read(client, items, name) == {"n": {"N": str(done + 1_000 * alone)}}


def test_looks_at_several_items_never_see_half_a_transaction(client: Client, items: Items) -> None:
    names = [str(number) for number in range(6)]
    write(client, *(items.put(name, n={"N": "0"}) for name in names))

    def writer(number: int) -> None:
        source, target = names[number % 6], names[(number * 5 + 1) % 6]
        if source != target:
            try:
                write(client, items.add(source, -number), items.add(target, number))
            except ClientError as error:
                only_conflicts(error)

    def reader(_: int) -> int | None:
        try:
            answer = client.transact_get_items(TransactItems=[items.get(name) for name in names])
        except ClientError as error:
            only_conflicts(error)
            return None
        return sum(int(each["Item"]["n"]["N"]) for each in answer["Responses"])

    with ThreadPoolExecutor(4) as pool:
        sums = pool.map(reader, range(60))
        list(pool.map(writer, range(60)))
        assert set(sums) <= {0, None}
    assert reader(0) == 0


def test_a_look_at_what_is_missing_and_at_parts(client: Client, items: Items, other: str) -> None:
    """Case 149: what is not there costs 2 units as well."""
    elsewhere = Items(other)
    write(client, items.put("a", x={"S": "1"}, y={"S": "2"}), elsewhere.put("b"))
    part = items.get("a")
    part["Get"].update(ProjectionExpression="#x", ExpressionAttributeNames={"#x": "x"})
    nothing = elsewhere.get("b")
    nothing["Get"]["ProjectionExpression"] = "z"
    answer = client.transact_get_items(
        TransactItems=[part, items.get("missing"), nothing], ReturnConsumedCapacity="INDEXES"
    )
    assert answer["Responses"] == [{"Item": {"x": {"S": "1"}}}, {}, {}]
    assert answer["ConsumedCapacity"] == [
        {
            "TableName": items.table,
            "CapacityUnits": 4.0,
            "ReadCapacityUnits": 4.0,
            "Table": {"CapacityUnits": 4.0, "ReadCapacityUnits": 4.0},
        },
        {
            "TableName": other,
            "CapacityUnits": 2.0,
            "ReadCapacityUnits": 2.0,
            "Table": {"CapacityUnits": 2.0, "ReadCapacityUnits": 2.0},
        },
    ]


def test_the_ledger_is_nobody_s_table(client: Client, items: Items) -> None:
    write(client, *spread(items, 9))
    names = [name for page in client.get_paginator("list_tables").paginate() for name in page["TableNames"]]
    assert items.table in names
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{3,255}", name) for name in names)
