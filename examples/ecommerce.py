"""A shop in one table, as DynamoDB users build it, and the access patterns that it serves.

    python examples/ecommerce.py http://127.0.0.1:8000

Prints what it does and checks every answer; ends with exit code 1 at the first wrong one. Its tables go at the end.

    PK            SK                       what
    USER#1        PROFILE                  a customer
    USER#1        ORDER#2026-11-03#1004    that customer's orders, by date
    ORDER#1004    ITEM#01                  what is in an order
    POST#001#2    VIEWS                    one of four parts of a counter that many write at once
"""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import boto3
from boto3.dynamodb.conditions import Attr, Key
from botocore.config import Config
from botocore.exceptions import ClientError

SHARDS = 4
WRITERS = 8
ITEM_BYTES_MAX = 400 * 1024
PARTITION_KEY_BYTES_MAX = 2_048
SORT_KEY_BYTES_MAX = 1_024


def check(what: str, found: Any, expected: Any) -> None:
    """Print what was found out; end the program when it is not what DynamoDB answers."""
    if found != expected:
        sys.exit(f"WRONG  {what}: {found!r} instead of {expected!r}")
    print(f"   ok  {what}")


def connect(endpoint: str) -> Any:
    """A boto3 resource. Any credentials will do while the cluster does not check them."""
    return boto3.resource(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(max_pool_connections=WRITERS),
    )


@contextmanager
def new_table(dynamodb: Any, sort_key_type: str = "S") -> Iterator[Any]:
    """A table with the overloaded keys PK and SK, for as long as the block runs."""
    table = dynamodb.create_table(
        TableName=f"shop-{uuid.uuid4()}",
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "PK", "AttributeType": "S"},
            {"AttributeName": "SK", "AttributeType": sort_key_type},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    table.wait_until_exists()
    try:
        yield table
    finally:
        table.delete()


def fill(table: Any) -> None:
    """Three customers; the first has placed twelve orders, one a month, of which the first has three items."""
    with table.batch_writer() as batch:
        for user in range(1, 4):
            batch.put_item(Item={"PK": f"USER#{user}", "SK": "PROFILE", "name": f"Customer {user}", "version": 1})
        for month in range(1, 13):
            batch.put_item(Item=order(month))
        for line in range(1, 4):
            batch.put_item(Item={"PK": "ORDER#1001", "SK": f"ITEM#{line:02}", "price": Decimal("9.99"), "count": line})


def order(month: int) -> dict[str, Any]:
    """The order that the first customer placed in a month of 2026."""
    status = "OPEN" if month > 9 else "SHIPPED"
    return {"PK": "USER#1", "SK": f"ORDER#2026-{month:02}-03#{1000 + month}", "status": status, "total": 10 * month}


def order_keys(*months: int) -> list[str]:
    """Sort keys of the orders of these months."""
    return [str(order(month)["SK"]) for month in months]


def keys(answer: dict[str, Any]) -> list[str]:
    """Sort keys of an answer's items, in its order."""
    return [item["SK"] for item in answer["Items"]]


def single_table(table: Any) -> None:
    """One request for each question that the shop's pages ask."""
    fill(table)
    mine = Key("PK").eq("USER#1")

    profile = table.get_item(Key={"PK": "USER#1", "SK": "PROFILE"}, ConsistentRead=True)["Item"]
    check("a profile by its key", profile["name"], "Customer 1")

    everything = table.query(KeyConditionExpression=mine, ConsistentRead=True)
    check("a customer with all orders in one query", keys(everything), [*order_keys(*range(1, 13)), "PROFILE"])

    orders = table.query(KeyConditionExpression=mine & Key("SK").begins_with("ORDER#"), ConsistentRead=True)
    check("begins_with: the orders only", keys(orders), order_keys(*range(1, 13)))

    spring = Key("SK").between("ORDER#2026-03", "ORDER#2026-05-99")
    check("BETWEEN: March to May", keys(_strong(table, mine & spring)), order_keys(3, 4, 5))

    newest = _strong(table, mine & Key("SK").begins_with("ORDER#"), ScanIndexForward=False, Limit=2)
    check("backwards: the two newest orders", keys(newest), order_keys(12, 11))

    lines = _strong(table, Key("PK").eq("ORDER#1001") & Key("SK").begins_with("ITEM#"))
    check("an order's items", keys(lines), ["ITEM#01", "ITEM#02", "ITEM#03"])
    check("what they cost", sum(item["price"] * item["count"] for item in lines["Items"]), Decimal("59.94"))

    opened = _strong(table, mine & Key("SK").begins_with("ORDER#"), FilterExpression=Attr("status").eq("OPEN"))
    check("a filter: open orders", (keys(opened), opened["ScannedCount"]), (order_keys(10, 11, 12), 12))

    check("pages of five", [len(page) for page in pages(table, mine, limit=5)], [5, 5, 3])
    check("all pages together", [key for page in pages(table, mine, limit=5) for key in page], keys(everything))
    check("a scan sees every item once", len(scan(table)), 3 + 12 + 3)


def _strong(table: Any, condition: Any, **more: Any) -> Any:
    return table.query(KeyConditionExpression=condition, ConsistentRead=True, **more)


def pages(table: Any, condition: Any, limit: int) -> Iterator[list[str]]:
    """The sort keys of each page of a query."""
    more: dict[str, Any] = {}
    while True:
        answer = _strong(table, condition, Limit=limit, **more)
        if answer["Items"]:
            yield keys(answer)
        if "LastEvaluatedKey" not in answer:
            return
        more = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


def scan(table: Any) -> set[tuple[str, str]]:
    """The keys of all items of a table."""
    found: list[tuple[str, str]] = []
    more: dict[str, Any] = {}
    while True:
        answer = table.scan(ConsistentRead=True, **more)
        found += [(item["PK"], item["SK"]) for item in answer["Items"]]
        if "LastEvaluatedKey" not in answer:
            break
        more = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
    if len(found) != len(set(found)):
        sys.exit("WRONG  a scan saw an item twice")
    return set(found)


def sharded_counter(table: Any, adds: int = 200) -> None:
    """A counter in four parts, so that many may count at once, and its exact sum."""

    def add(number: int) -> None:
        key = {"PK": f"POST#001#{number % SHARDS}", "SK": "VIEWS"}
        table.update_item(Key=key, UpdateExpression="ADD amount :one", ExpressionAttributeValues={":one": 1})

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(add, range(adds)))
    shards = [{"PK": f"POST#001#{shard}", "SK": "VIEWS"} for shard in range(SHARDS)]
    amounts = [table.get_item(Key=key, ConsistentRead=True)["Item"]["amount"] for key in shards]
    check(f"{adds} concurrent ADDs on {SHARDS} parts", sum(amounts), adds)


def one_winner(table: Any) -> None:
    """Optimistic locking: of many updates from the same version exactly one succeeds."""

    def rename(writer: int) -> bool:
        try:
            table.update_item(
                Key={"PK": "USER#2", "SK": "PROFILE"},
                UpdateExpression="SET #n = :name, version = version + :one",
                ConditionExpression="version = :seen",
                ExpressionAttributeNames={"#n": "name"},
                ExpressionAttributeValues={":name": f"Writer {writer}", ":one": 1, ":seen": 1},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        won = list(pool.map(rename, range(WRITERS)))
    profile = table.get_item(Key={"PK": "USER#2", "SK": "PROFILE"}, ConsistentRead=True)["Item"]
    check(f"of {WRITERS} updates from version 1 one wins", won.count(True), 1)
    check("its name and version stand", (profile["name"], profile["version"]), (f"Writer {won.index(True)}", 2))


def limits(table: Any) -> None:
    """The largest item and the longest keys."""
    key = {"PK": "BIG", "SK": "ITEM"}
    room = ITEM_BYTES_MAX - len("PK" + "BIG" + "SK" + "ITEM" + "data")
    table.put_item(Item={**key, "data": "x" * room})
    check("an item of 400 KB", len(table.get_item(Key=key, ConsistentRead=True)["Item"]["data"]), room)
    check("one byte more is refused", _refusal(table, {**key, "data": "x" * (room + 1)}), "ValidationException")

    longest = {"PK": "p" * PARTITION_KEY_BYTES_MAX, "SK": "s" * SORT_KEY_BYTES_MAX}
    table.put_item(Item={**longest, "found": True})
    check("keys of 2,048 and 1,024 bytes", table.get_item(Key=longest, ConsistentRead=True)["Item"]["found"], True)
    check(
        "a longer partition key is refused",
        _refusal(table, {**longest, "PK": longest["PK"] + "p"}),
        "ValidationException",
    )
    check(
        "a longer sort key is refused", _refusal(table, {**longest, "SK": longest["SK"] + "s"}), "ValidationException"
    )


def _refusal(table: Any, item: dict[str, Any]) -> str:
    """The code of the error that putting an item gives."""
    try:
        table.put_item(Item=item)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "no error"


def numeric_order(table: Any) -> None:
    """Numbers of 38 digits as sort keys come back exact and in numeric order."""
    digits = "12345678901234567890123456789012345678"
    ascending = [
        Decimal("-" + digits),
        Decimal("-1E+2"),
        Decimal("-0." + digits),
        Decimal("-1E-130"),
        Decimal("0"),
        Decimal("1E-130"),
        Decimal("0." + digits),
        Decimal("2"),
        Decimal("10"),
        Decimal(digits),
        Decimal(digits[:-1] + "9"),
        Decimal("9" * 38),
    ]
    for number in [*ascending[::2], *ascending[1::2]]:
        table.put_item(Item={"PK": "NUMBERS", "SK": number})
    found = [item["SK"] for item in _strong(table, Key("PK").eq("NUMBERS"))["Items"]]
    check("38-digit numbers in numeric order", found, ascending)
    between = Key("PK").eq("NUMBERS") & Key("SK").between(Decimal(0), Decimal(10))
    check("BETWEEN 0 and 10", [item["SK"] for item in _strong(table, between)["Items"]], ascending[4:9])


def run(endpoint: str) -> None:
    """The whole tour against an endpoint."""
    dynamodb = connect(endpoint)
    with new_table(dynamodb) as table:
        for chapter in (single_table, sharded_counter, one_winner, limits):
            print(chapter.__doc__)
            chapter(table)
    with new_table(dynamodb, sort_key_type="N") as table:
        print(numeric_order.__doc__)
        numeric_order(table)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("endpoint", nargs="?", default="http://127.0.0.1:8000")
    run(arguments.parse_args().endpoint)
