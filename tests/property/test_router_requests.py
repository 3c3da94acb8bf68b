"""Requests that are almost right, to every operation that is built: answered with an error of DynamoDB, never 500."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.random_source import SeededRandom
from cluster.wire import storage_pb2
from dynamo.errors import ApiError, unavailable
from router.gateway import Answer, Gateway, Received
from router.model import model, targets
from router.operations import REGISTRY
from router.plan import Call
from tests.unit.router_fakes import ManualClock
from tests.unit.router_plans import TABLES, PlanCatalog

SERVICES = model()["services"]
# Where both services name a shape alike, DynamoDB's is as good: requests only have to be almost right.
SHAPES = {name: shape for service in reversed(SERVICES.values()) for name, shape in service["shapes"].items()}
INPUTS = {operation: shape for service in SERVICES.values() for operation, shape in service["operations"].items()}
TARGETS = {operation: name for name, service in SERVICES.items() for operation in service["operations"]}
NAMES = [*(table.name for table in TABLES), "missing", "ab", "arn:aws:dynamodb:us-east-1:000000000000:table/hash"]
ATTRIBUTES = ["pk", "sk", "a", "#a", ":v"]
EXPRESSIONS = [
    "pk = :v",
    "#a = :v",
    "SET a = :v",
    "REMOVE a",
    "a",
    "a[0].b",
    "attribute_exists(a)",
    "((",
    "size(a) > :v",
]
TEXTS = st.sampled_from([*NAMES, *ATTRIBUTES, *EXPRESSIONS, "", "1", "-1e3"])

scalars = st.one_of(
    st.builds(lambda text: {"S": text}, TEXTS),
    st.builds(lambda text: {"N": text}, st.sampled_from(["1", "-1e3", "", "x", "1e400", "9" * 40])),
    st.builds(lambda text: {"B": text}, st.sampled_from(["YQ==", "", "@@", "YQ"])),
    st.sampled_from(
        [{"BOOL": True}, {"BOOL": 1}, {"NULL": True}, {"NULL": False}, {}, {"S": 1}, {"X": "y"}, {"S": "a", "N": "1"}]
    ),
    st.sampled_from(
        [{"SS": ["a", "a"]}, {"SS": []}, {"NS": ["1", "1.0"]}, {"BS": ["YQ=="]}, {"L": [None]}, {"M": {"a": None}}]
    ),
)
attribute_values = st.recursive(
    scalars,
    lambda inner: (
        st.builds(lambda items: {"L": items}, st.lists(inner, max_size=2))
        | st.builds(lambda items: {"M": items}, st.dictionaries(st.sampled_from(ATTRIBUTES), inner, max_size=2))
    ),
    max_leaves=4,
)

keys = st.sampled_from([{"pk": {"S": "p"}, "sk": {"S": "s"}}, {"pk": {"S": "p"}}, {"pk": {"S": "p"}, "sk": {"N": "1"}}])
items = st.builds(lambda key, rest: {**rest, **key}, keys, st.dictionaries(st.sampled_from("abc"), attribute_values))

# Members that are of no use unless they fit each other.
KNOWN: dict[str, st.SearchStrategy[Any]] = {
    "Key": keys | items,
    "Item": items | keys,
    "ExclusiveStartKey": keys | items,
    "Keys": st.lists(keys, min_size=1, max_size=3),
    "TableName": st.sampled_from(NAMES),
    "KeyConditionExpression": st.sampled_from(
        ["pk = :v", "#a = :v AND sk > :w", "pk = :v AND begins_with(sk, :w)", "x"]
    ),
    "ExpressionAttributeNames": st.sampled_from([{"#a": "pk"}, {"#a": "a"}, {}]),
    "ExpressionAttributeValues": st.fixed_dictionaries({":v": scalars}, optional={":w": attribute_values}),
}


@cache
def values_of(name: str) -> st.SearchStrategy[Any]:
    """Values of a shape, most of them of its type."""
    shape = SHAPES[name]
    match shape["type"]:
        case "string":
            return st.sampled_from(shape["enum"]) if "enum" in shape else TEXTS
        case "integer" | "long":
            return st.integers(-1, 3) | st.sampled_from([10**12, 10**13])
        case "boolean":
            return st.booleans()
        case "list":
            return st.lists(values_of(shape["member"]), max_size=3)
        case "map":
            return st.dictionaries(st.sampled_from([*NAMES, *ATTRIBUTES]), values_of(shape["value"]), max_size=3)
        case "structure" if name == "AttributeValue":
            return attribute_values
        case "structure":
            return bodies_of(name)
    return st.none()


def bodies_of(name: str) -> st.SearchStrategy[Any]:
    """Structures with the members that are required, and a few of the others."""
    shape = SHAPES[name]
    members = {
        member: KNOWN[member] if member in KNOWN else values_of(value) for member, value in shape["members"].items()
    }
    required = {member: members.pop(member) for member in shape.get("required", ())}
    if not members:
        return st.fixed_dictionaries(required)
    few = st.lists(st.sampled_from(sorted(members)), max_size=3, unique=True)
    return few.flatmap(
        lambda chosen: st.fixed_dictionaries({**required, **{member: members[member] for member in chosen}})
    )


class NoNodes:
    """An executor that no node answers, or whose nodes hold nothing."""

    def __init__(self, empty: bool) -> None:
        self._empty = empty

    def _result(self, call: Call) -> storage_pb2.Reply | ApiError:
        if not self._empty:
            return unavailable("no leader")
        match call.operation:
            case storage_pb2.Get():
                return storage_pb2.Reply(item=storage_pb2.ItemReply())
            case storage_pb2.Query():
                return storage_pb2.Reply(query=storage_pb2.QueryReply())
            case storage_pb2.Statistics():
                return storage_pb2.Reply(statistics=storage_pb2.StatisticsReply())
            case storage_pb2.TransactGet(gets=gets):
                reads = [storage_pb2.TransactRead(item=storage_pb2.ItemReply())] * len(gets)
                return storage_pb2.Reply(transact_get=storage_pb2.TransactGetReply(reads=reads))
            case storage_pb2.Transact(actions=actions) | storage_pb2.Prepare(actions=actions):
                results = [storage_pb2.ActionResult(write=storage_pb2.WriteReply())] * len(actions)
                return storage_pb2.Reply(transact=storage_pb2.TransactReply(results=results, sizes=[1] * len(actions)))
            case storage_pb2.ReadStream():
                return storage_pb2.Reply(stream=storage_pb2.StreamReply())
        return storage_pb2.Reply(write=storage_pb2.WriteReply())

    def submit(self, call: Call, done: Callable[[storage_pb2.Reply | ApiError], None]) -> None:
        done(self._result(call))

    async def call(self, call: Call) -> storage_pb2.Reply:
        result = self._result(call)
        if isinstance(result, ApiError):
            raise result
        return result

    async def call_all(self, calls: Sequence[Call]) -> list[storage_pb2.Reply | ApiError]:
        return [self._result(call) for call in calls]


class Unchangeable(PlanCatalog):
    """A catalog whose auto-admin is away."""

    async def _away(self, *_: Any) -> Any:
        raise unavailable("no auto-admin")

    create_table = update_table = delete_table = _away


async def answered(operation: str, body: Any, empty: bool) -> Answer:
    """The answer to a request."""
    gateway = Gateway(
        targets=targets(),
        registry=REGISTRY,
        catalog=cast(Any, Unchangeable()),
        executor=cast(Any, NoNodes(empty)),
        clock=ManualClock(),
        random=SeededRandom(1),
    )
    answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    headers = {b"x-amz-target": f"{TARGETS[operation]}.{operation}".encode()}
    gateway.handle(Received(b"POST", b"/", headers, orjson.dumps(body)), answer.set_result)
    return await asyncio.wait_for(answer, 5)


requests = st.sampled_from(sorted(REGISTRY)).flatmap(
    lambda operation: st.tuples(st.just(operation), bodies_of(INPUTS[operation]))
)


@given(requests, st.booleans())
@settings(max_examples=600, deadline=None)
def test_almost_right_requests(request: tuple[str, Any], empty: bool) -> None:
    answer = asyncio.run(answered(*request, empty))
    assert answer.status in (200, 400, 503), answer.body
    assert isinstance(orjson.loads(answer.body), dict)
