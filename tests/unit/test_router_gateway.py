"""The gateway: what becomes of every request, on the wire. Cases of bug reports about DynamoDB-compatible servers."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Callable
from typing import Any, cast

import orjson
import pytest

from cluster.random_source import SeededRandom
from cluster.wire import storage_pb2
from dynamo.errors import ApiError, condition_failed, unavailable, validation
from dynamo.table import Table
from router.context import RequestContext
from router.gateway import Gateway, Operation
from router.model import targets
from router.plan import Call, Immediate, Plan, Single, StalePlanError, Work
from tests.unit.router_fakes import ManualClock, settle, table
from tests.unit.router_http import Client, HttpAnswer, post

SCAN = b'{"TableName":"abc"}'
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261130/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host;x-amz-date, Signature=5d672d79"
)


class Executor:
    """Hands calls to the test, which answers them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.done: list[Callable[[storage_pb2.Reply | ApiError], None]] = []

    def submit(self, call: Call, done: Callable[[storage_pb2.Reply | ApiError], None]) -> None:
        self.calls.append(call)
        self.done.append(done)


class Counted:
    """Keeps what the gateway counts."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, int, str]] = []

    def answered(self, operation: str, table: str, status: int, error: str, seconds: float) -> None:
        assert seconds >= 0
        assert table in ("", "abc")
        self.answers.append((operation, status, error))


class Front:
    """A client's connection to a gateway with one operation, Scan."""

    def __init__(self, scan: Operation, **settings: Any) -> None:
        self.executor = Executor()
        self.counted = Counted()
        self.clock = ManualClock()
        self.gateway = Gateway(
            targets=targets(),
            registry={"Scan": scan},
            catalog=cast(Any, None),
            executor=cast(Any, self.executor),
            clock=self.clock,
            random=SeededRandom(1),
            observer=self.counted,
            **settings,
        )
        self.client = Client(handle=self.gateway.handle)

    def send(self, body: bytes = SCAN, target: str = "DynamoDB_20120810.Scan", **headers: str) -> HttpAnswer:
        """The answer to a request that is answered at once."""
        self.client.send(post(body, "1.1", X_Amz_Target=target, Content_Type="application/x-amz-json-1.0", **headers))
        return self.client.answers()[-1]


def empty(_body: dict[str, Any], _context: RequestContext) -> Plan:
    return Immediate(b"{}")


def refuse(error: BaseException) -> Operation:
    def plan(_body: dict[str, Any], _context: RequestContext) -> Plan:
        raise error

    return plan


def single(reply: Callable[[storage_pb2.Reply], bytes], made: Table | None = None) -> Operation:
    def plan(_body: dict[str, Any], _context: RequestContext) -> Plan:
        return Single(Call(made or table(), bytes(16), storage_pb2.Get()), reply)

    return plan


def work(run: Callable[[], Any]) -> Operation:
    return lambda _body, _context: Work(run)


# --- the wire: cases A 1 to 17 ---


def test_a1_an_answer_without_content_is_an_object() -> None:
    assert Front(empty).send().json == {}


def test_a2_a_text_with_quotes_still_makes_json() -> None:
    text = 'Invalid value: "quoted" \\ and \u2028 and \n'
    answer = Front(refuse(validation(text))).send()
    assert answer.json == {"__type": "com.amazon.coral.validate#ValidationException", "message": text}


def test_a5_a_body_of_ten_megabytes() -> None:
    body = orjson.dumps({"TableName": "abc", "FilterExpression": "x" * (10 << 20)})
    assert Front(empty).send(body).status == 200


@pytest.mark.parametrize("plan", [empty, refuse(validation("no"))])
def test_a9_the_content_type_is_that_of_the_protocol(plan: Operation) -> None:
    assert Front(plan).send().headers["content-type"] == "application/x-amz-json-1.0"


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"TableName":"abc"', b"nonsense", b"\xff\xfe", b'{"a":NaN}', b"[" * 5000]
)
def test_a10_a_body_that_is_no_json(body: bytes) -> None:
    answer = Front(empty).send(body)
    assert answer.status == 400
    assert answer.json == {"__type": "com.amazon.coral.service#SerializationException"}


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"3", b"null", b"true"])
def test_a10_a_body_that_is_no_object(body: bytes) -> None:
    answer = Front(empty).send(body)
    assert answer.status == 400
    assert answer.json["__type"] == "com.amazon.coral.service#SerializationException"


@pytest.mark.parametrize(
    "target",
    [
        "DynamoDB_20120810.NoSuchThing",
        "DynamoDB_20111205.Scan",
        "Scan",
        "",
        "dynamodb_20120810.scan",
        "DynamoDB_20120810.",
    ],
)
def test_a12_an_operation_that_does_not_exist(target: str) -> None:
    answer = Front(empty).send(target=target)
    assert answer.status == 400
    assert answer.json == {"__type": "com.amazon.coral.service#UnknownOperationException"}


def test_a12_an_operation_that_is_not_built_yet() -> None:
    answer = Front(empty).send(target="DynamoDB_20120810.CreateBackup")
    assert answer.json["__type"] == "com.amazon.coral.service#UnknownOperationException"
    assert "CreateBackup" in answer.json["message"]


def test_a12_a_request_without_target() -> None:
    front = Front(empty)
    front.client.send(post())
    assert front.client.answer.json == {"__type": "com.amazon.coral.service#UnknownOperationException"}


def test_a14_a_wrong_type_names_its_text_as_dynamodb_does() -> None:
    answer = Front(empty).send(b'{"TableName":123}')
    assert answer.json == {
        "__type": "com.amazon.coral.service#SerializationException",
        "Message": "NUMBER_VALUE cannot be converted to String",
    }


def test_a16_health() -> None:
    front = Front(empty)
    front.client.send(b"GET / HTTP/1.1\r\nHost: dynamodb.example.com\r\n\r\n")
    assert front.client.answer.status == 200
    assert front.client.answer.body == b"healthy: dynamodb.example.com "


@pytest.mark.parametrize("request_line", [b"GET /other", b"PUT /", b"DELETE /", b"HEAD /x", b"OPTIONS /"])
def test_what_is_beside_the_api_is_not_found(request_line: bytes) -> None:
    front = Front(empty)
    front.client.send(request_line + b" HTTP/1.1\r\nHost: h\r\n\r\n")
    assert front.client.transport.written.startswith(b"HTTP/1.1 404 ")


def test_a17_every_answer_has_the_checksum_of_its_body() -> None:
    front = Front(refuse(condition_failed({"pk": {"S": "é"}})))
    front.send()
    front.send(b"{")
    front.client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert len(front.client.answers()) == 3  # which checks them


def test_every_answer_has_an_id_of_its_own() -> None:
    front = Front(empty)
    for _ in range(50):
        front.send()
    ids = [answer.headers["x-amzn-requestid"] for answer in front.client.answers()]
    assert len(set(ids)) == 50
    assert all(re.fullmatch("[A-Z0-9]{26,52}", id_) for id_ in ids)


# --- errors ---


def test_a_failed_condition_shows_the_item() -> None:
    answer = Front(refuse(condition_failed({"pk": {"S": "x"}}))).send()
    assert answer.json == {
        "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "message": "The conditional request failed",
        "Item": {"pk": {"S": "x"}},
    }


def test_an_unforeseen_exception_is_a_500_that_tells_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    answer = Front(refuse(KeyError("secret"))).send()
    assert answer.status == 500
    assert answer.json["__type"] == "com.amazonaws.dynamodb.v20120810#InternalServerError"
    assert "secret" not in answer.body.decode()
    (record,) = caplog.records
    assert record.__dict__["request_id"] == answer.headers["x-amzn-requestid"]


# --- who asks ---


def whoami(_body: dict[str, Any], context: RequestContext) -> Plan:
    return Immediate(orjson.dumps([context.account, context.invocation_id, context.request_id, context.body_crc]))


def test_the_context_says_who_asks() -> None:
    answer = Front(whoami).send(Authorization=AUTHORIZATION, amz_sdk_invocation_id="i-1")
    assert answer.json == ["AKIDEXAMPLE", "i-1", answer.headers["x-amzn-requestid"], zlib.crc32(SCAN)]


@pytest.mark.parametrize("header", [None, "Basic abc", "AWS4-HMAC-SHA256", "Credential="])
def test_without_verification_anybody_is_served(header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    answer = Front(whoami).send(SCAN, "DynamoDB_20120810.Scan", **headers)
    assert (answer.status, answer.json[0]) == (200, "")


# --- plans ---


def test_a_single_call_is_answered_without_a_task() -> None:
    front = Front(single(lambda reply: reply.item.item))
    front.client.send(post(SCAN, "1.1", X_Amz_Target="DynamoDB_20120810.Scan"))
    assert front.client.answers() == []
    front.executor.done[0](storage_pb2.Reply(item=storage_pb2.ItemReply(item=b'{"Item":{}}')))
    assert front.client.answer.json == {"Item": {}}
    assert front.counted.answers == [("Scan", 200, "")]


@pytest.mark.parametrize("result", [unavailable("no leader"), storage_pb2.Reply()])
def test_a_single_call_that_fails(result: storage_pb2.Reply | ApiError) -> None:
    def reply(_: storage_pb2.Reply) -> bytes:
        raise unavailable("no leader")

    front = Front(single(reply))
    front.client.send(post(SCAN, "1.1", X_Amz_Target="DynamoDB_20120810.Scan"))
    front.executor.done[0](result)
    assert front.client.answer.status == 503
    assert front.counted.answers == [("Scan", 503, "ServiceUnavailable")]


def test_a_reply_that_cannot_be_read_is_a_500() -> None:
    front = Front(single(lambda _: cast(bytes, [][0])))
    front.client.send(post(SCAN, "1.1", X_Amz_Target="DynamoDB_20120810.Scan"))
    front.executor.done[0](storage_pb2.Reply())
    assert front.client.answer.status == 500


async def test_work_is_answered_when_it_is_done() -> None:
    async def run() -> bytes:
        await asyncio.sleep(0)
        return b'{"Count":0}'

    front = Front(work(run))
    front.client.send(post(SCAN, "1.1", X_Amz_Target="DynamoDB_20120810.Scan"))
    assert front.client.answers() == []
    await settle()
    assert front.client.answer.json == {"Count": 0}


@pytest.mark.parametrize(("error", "status"), [(validation("no"), 400), (ZeroDivisionError(), 500)])
async def test_work_that_fails(error: Exception, status: int) -> None:
    async def run() -> bytes:
        raise error

    front = Front(work(run))
    front.client.send(post(SCAN, "1.1", X_Amz_Target="DynamoDB_20120810.Scan"))
    await settle()
    assert front.client.answer.status == status


async def test_close_ends_the_tasks_of_requests_under_way() -> None:
    front = Front(work(asyncio.Event().wait))
    front.client.send(post(SCAN, "1.1", X_Amz_Target="DynamoDB_20120810.Scan"))
    await settle()
    await asyncio.wait_for(front.gateway.close(), 5)
    assert front.client.answers() == []


def test_a_plan_that_has_become_stale_is_made_again_with_the_same_operation_id() -> None:
    seen: list[int] = []

    def plan(_body: dict[str, Any], context: RequestContext) -> Plan:
        seen.append(context.operation_id())
        return Single(Call(table(), bytes(16), storage_pb2.Get()), lambda _: b"{}")

    front = Front(plan)
    front.client.send(post(SCAN, "1.1", X_Amz_Target="DynamoDB_20120810.Scan"))
    front.executor.done[0](StalePlanError())
    front.executor.done[1](storage_pb2.Reply())
    assert front.client.answer.status == 200
    assert len(seen) == 2
    assert len(set(seen)) == 1


def test_a_plan_that_stays_stale_is_given_up() -> None:
    front = Front(single(lambda _: b"{}"))
    front.client.send(post(SCAN, "1.1", X_Amz_Target="DynamoDB_20120810.Scan"))
    while len(front.client.answers()) == 0:
        front.executor.done[-1](StalePlanError())
    assert front.client.answer.status == 500


# --- operation ids ---


def operation_ids(**members: Any) -> list[int]:
    settings: dict[str, Any] = {
        "request_id": "R",
        "operation": "PutItem",
        "account": "AKID",
        "invocation_id": "i-1",
        "body_crc": 7,
        "catalog": None,
        "executor": None,
        "clock": ManualClock(),
        "random": SeededRandom(1),
    }
    context = RequestContext(**{**settings, **members})
    return [context.operation_id(), context.operation_id(1), context.operation_id()]


def test_a_retry_by_the_sdk_has_the_same_operation_id() -> None:
    first, second, again = operation_ids()
    assert first == again != second
    assert operation_ids(request_id="S", random=SeededRandom(2)) == [first, second, first]


@pytest.mark.parametrize("member", [{"account": "B"}, {"invocation_id": "i-2"}, {"operation": "X"}, {"body_crc": 8}])
def test_another_request_has_another_operation_id(member: dict[str, Any]) -> None:
    assert not set(operation_ids(**member)) & set(operation_ids())


def test_without_invocation_id_it_is_random_and_stays() -> None:
    first, second, again = operation_ids(invocation_id="")
    assert first == again != second
    assert operation_ids(invocation_id="", random=SeededRandom(2))[0] != first


def test_a_slow_request_is_told_of_with_where_its_time_went(caplog: pytest.LogCaptureFixture) -> None:
    front = Front(single(lambda _: b"{}"), slow_seconds=1.0)
    for seconds, node_ms in ((0.9, 0), (2.5, 1_500)):
        front.client.send(post(SCAN, "1.1", X_Amz_Target="DynamoDB_20120810.Scan"))
        front.clock.now += seconds
        front.executor.done[-1](storage_pb2.Reply(node_ms=node_ms))
    (told,) = [vars(record) for record in caplog.records if record.msg == "a request was slow"]
    assert (told["operation"], told["table"], told["seconds"]) == ("Scan", "abc", 2.5)
    assert (told["node_seconds"], told["elsewhere_seconds"]) == (1.5, 1.0)
    assert told["request_id"] == front.client.answers()[-1].headers["x-amzn-requestid"]
