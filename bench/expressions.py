"""What expressions and legacy parameters cost, beside plain calls."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench import requests
from bench.requests import Requests, item_of, key_of


def _plain_put(made: Requests, dice: random.Random) -> bytes:
    item = item_of(dice.randrange(requests.ITEMS), dice.randbytes)
    return made.raw("PutItem", {"TableName": made.table, "Item": item})


def _conditional_put(made: Requests, dice: random.Random) -> bytes:
    body = {
        "TableName": made.table,
        "Item": item_of(dice.randrange(requests.ITEMS), dice.randbytes),
        "ConditionExpression": "attribute_exists(pk) AND #data <> :data",
        "ExpressionAttributeNames": {"#data": "data"},
        "ExpressionAttributeValues": {":data": {"S": "-"}},
    }
    return made.raw("PutItem", body)


def _expected_put(made: Requests, dice: random.Random) -> bytes:
    body = {
        "TableName": made.table,
        "Item": item_of(dice.randrange(requests.ITEMS), dice.randbytes),
        "Expected": {
            "pk": {"ComparisonOperator": "NOT_NULL"},
            "data": {"ComparisonOperator": "NE", "AttributeValueList": [{"S": "-"}]},
        },
    }
    return made.raw("PutItem", body)


def _conditional_update(made: Requests, dice: random.Random) -> bytes:
    body = {
        "TableName": made.table,
        "Key": key_of(dice.randrange(requests.ITEMS)),
        "UpdateExpression": "ADD #count :one",
        "ConditionExpression": "attribute_exists(pk)",
        "ExpressionAttributeNames": {"#count": "count"},
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    return made.raw("UpdateItem", body)


def _legacy_update(made: Requests, dice: random.Random) -> bytes:
    body = {
        "TableName": made.table,
        "Key": key_of(dice.randrange(requests.ITEMS)),
        "AttributeUpdates": {"count": {"Action": "ADD", "Value": {"N": "1"}}},
        "Expected": {"pk": {"ComparisonOperator": "NOT_NULL"}},
    }
    return made.raw("UpdateItem", body)


def _list(dice: random.Random) -> str:
    return f"list-{dice.randrange(requests.QUERY_PARTITIONS):03}"


def _plain_query(made: Requests, dice: random.Random) -> bytes:
    body = {
        "TableName": made.table,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": _list(dice)}},
    }
    return made.raw("Query", body)


def _filtered_query(made: Requests, dice: random.Random) -> bytes:
    body = {
        "TableName": made.table,
        "KeyConditionExpression": "pk = :pk",
        "FilterExpression": "#data >= :data",
        "ExpressionAttributeNames": {"#data": "data"},
        "ExpressionAttributeValues": {":pk": {"S": _list(dice)}, ":data": {"S": "M"}},
    }
    return made.raw("Query", body)


def _legacy_query(made: Requests, dice: random.Random) -> bytes:
    body = {
        "TableName": made.table,
        "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": _list(dice)}]}},
        "QueryFilter": {"data": {"ComparisonOperator": "GE", "AttributeValueList": [{"S": "M"}]}},
    }
    return made.raw("Query", body)


EXPRESSIONS: dict[str, Callable[[Requests, random.Random], bytes]] = {
    "put": _plain_put,
    "put condition": _conditional_put,
    "put Expected": _expected_put,
    "update cond.": _conditional_update,
    "update legacy": _legacy_update,
    "query": _plain_query,
    "query filter": _filtered_query,
    "query legacy": _legacy_query,
}
