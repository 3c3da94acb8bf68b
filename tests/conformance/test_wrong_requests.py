"""Thousands of requests with one thing wrong: none is accepted, none makes a server fail, none ends a process."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.support import Client, Http, new_table, random_name, s
from tests.conformance.wrong_requests import Generator, WrongRequest

SERVICES = ("DynamoDB_20120810", "DynamoDBStreams_20120810")
SAMPLE = 25
"""How many of an operation's requests are sent in the quick run, spread over all of them."""

EXAMPLES: dict[str, Any] = {
    "AttributeValue": {"S": "x"},
    "Key": {"p": {"S": "x"}},
    "Item": {"p": {"S": "x"}},
    "PutItemInputAttributeMap": {"p": {"S": "x"}},
    "Keys": [{"p": {"S": "x"}}],
    "AttributeName": "a",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
    "ExpressionAttributeNameMap": {"#n": "a"},
    "ExpressionAttributeValueMap": {":v": {"S": "x"}},
    "Tags": [{"Key": "k", "Value": "v"}],
}
TAKE_NOTHING = ("DescribeEndpoints", "DescribeLimits")
OPERATIONS = [(service, operation) for service in SERVICES for operation in Generator(service, {}).operations]


class Sender:
    """Sends requests one after the other on one connection."""

    def __init__(self, http_: Http) -> None:
        self._connection: http.client.HTTPConnection = http_.connection()

    def send(self, request: WrongRequest) -> tuple[int, Any]:
        """Status and JSON of the answer."""
        headers = {"X-Amz-Target": request.target, "Authorization": "AWS4-HMAC-SHA256 Credential=any/a/b/c/d"}
        self._connection.request("POST", "/", json.dumps(request.body).encode(), headers)
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())


@pytest.fixture(scope="module")
def victim(client: Client) -> Iterator[str]:
    """A table that requests name when they mean one that exists."""
    name = random_name()
    client.create_table(**new_table(name, "p:S"))
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    yield name
    client.delete_table(TableName=name)


def requests_for(service: str, operation: str, table: str) -> list[WrongRequest]:
    """All requests for an operation. Those that make or drop tables name none that others need."""
    name = random_name() if operation in ("CreateTable", "DeleteTable") else table
    arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{table}"
    examples = {
        **EXAMPLES,
        "TableName": name,
        "TableArn": name,
        "SourceTableName": table,
        "ResourceArn": arn,
        "RequestItems": {table: [{"PutRequest": {"Item": {"p": {"S": "x"}}}}]},
    }
    if operation == "Query":
        hash_only = {"p": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]}}
        examples["QueryInput"] = {"TableName": table, "KeyConditions": hash_only}
    if operation == "CreateTable":
        examples["CreateTableInput"] = new_table(name, "p:S")
    if operation == "BatchGetItem":
        examples["RequestItems"] = {table: {"Keys": [{"p": {"S": "x"}}]}}
    return list(Generator(service, examples).wrong(operation))


def send_all(client: Client, http_: Http, requests: list[WrongRequest]) -> list[str]:
    """What is wrong with the answers."""
    sender, wrong = Sender(http_), []
    for request in requests:
        status, answer = sender.send(request)
        shown = (
            f"{request.path} {request.fault}: {json.dumps(request.body)[:300]} -> {status} {json.dumps(answer)[:300]}"
        )
        if status == 200 and request.must_fail and not all_members_failed(answer):
            wrong.append(f"accepted: {shown}")
        elif status not in (200, 400) or (status == 400 and "__type" not in answer):
            wrong.append(f"broke: {shown}")
        if status == 200 and request.operation == "CreateTable":
            client.delete_table(TableName=request.body["TableName"])
    return wrong


def all_members_failed(answer: Any) -> bool:
    """Whether it is a BatchExecuteStatement's answer, which is 200 though every statement was refused."""
    return bool(answer.get("Responses")) and all("Error" in member for member in answer["Responses"])


def still_serves(client: Client, table: str) -> None:
    """The service goes on."""
    item = {"p": s()}
    client.put_item(TableName=table, Item=item)
    assert client.get_item(TableName=table, Key=item, ConsistentRead=True)["Item"] == item


@pytest.mark.parametrize(("service", "operation"), OPERATIONS)
def test_some_wrong_requests(client: Client, http: Http, victim: str, service: str, operation: str) -> None:
    requests = requests_for(service, operation, victim)
    step = max(1, len(requests) // SAMPLE)
    assert send_all(client, http, requests[::step]) == []
    still_serves(client, victim)


@pytest.mark.slow
@pytest.mark.parametrize(("service", "operation"), OPERATIONS)
def test_all_wrong_requests(client: Client, http: Http, victim: str, service: str, operation: str) -> None:
    assert send_all(client, http, requests_for(service, operation, victim)) == []
    still_serves(client, victim)


def test_there_are_thousands() -> None:
    """The generator reaches every operation that takes anything."""
    counts = {operation: len(requests_for(service, operation, "table")) for service, operation in OPERATIONS}
    assert sum(counts.values()) > 5_000
    assert len(counts) == 66
    assert all(count >= 10 for operation, count in counts.items() if operation not in TAKE_NOTHING)
