"""BatchGetItem and BatchWriteItem at the level of plans."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from cluster.wire import storage_pb2
from dynamo.errors import ApiError, unavailable
from dynamo.keys import partition_hash
from router.operations import batch_get_item, batch_write_item
from router.plan import Call, StalePlanError, carry_out
from tests.unit.router_fakes import table
from tests.unit.router_plans import PlanCatalog, PlanExecutor, answer, context, failed, refusal

INVALID = "One or more parameter values were invalid: "
DUPLICATES = "Provided list of item keys contains duplicates"


def keys(*names: str) -> list[dict[str, Any]]:
    return [{"pk": {"S": name}} for name in names]


def get(**tables: Any) -> dict[str, Any]:
    """A BatchGetItem; a list stands for Keys."""
    wanted = {name: {"Keys": part} if isinstance(part, list) else part for name, part in tables.items()}
    return {"RequestItems": wanted}


def put(item: dict[str, Any]) -> dict[str, Any]:
    return {"PutRequest": {"Item": item}}


def delete(key: dict[str, Any]) -> dict[str, Any]:
    return {"DeleteRequest": {"Key": key}}


def write(**tables: Any) -> dict[str, Any]:
    return {"RequestItems": tables}


def sized(size: int) -> Any:
    """A node that has every item, each of `size` bytes by its own account."""

    def node(call: Call) -> storage_pb2.Reply:
        assert isinstance(call.operation, storage_pb2.Get)
        item = orjson.dumps({"key": {"S": call.operation.key.hex()}})
        return storage_pb2.Reply(item=storage_pb2.ItemReply(item=item, size=size))

    return node


def failing(times: set[int], node: Any) -> Any:
    """`node`, but the calls of these numbers find no leader."""
    count = iter(range(1_000))
    return lambda call: unavailable("no leader") if next(count) in times else node(call)


# --- reading ---


async def test_items_of_several_tables() -> None:
    def node(call: Call) -> storage_pb2.Reply:
        if call.table.name == "composite":
            return storage_pb2.Reply(item=storage_pb2.ItemReply())
        return storage_pb2.Reply(item=storage_pb2.ItemReply(item=b'{"pk":{"S":"a"}}', size=3))

    body = get(hash=keys("a", "b"), composite=[{"pk": {"S": "a"}, "sk": {"S": "b"}}])
    found, calls = await answer(batch_get_item.plan, body, node)
    assert found == {"Responses": {"hash": keys("a", "a"), "composite": []}, "UnprocessedKeys": {}}
    assert [call.hash for call in calls] == [partition_hash("S", name) for name in ("a", "b", "a")]
    assert all(call.any_replica for call in calls)


async def test_each_table_has_its_own_consistency_and_projection() -> None:
    body = get(
        hash={"Keys": keys("a"), "ConsistentRead": True, "AttributesToGet": ["x"]},
        composite={
            "Keys": [{"pk": {"S": "a"}, "sk": {"S": "b"}}],
            "ProjectionExpression": "#x",
            "ExpressionAttributeNames": {"#x": "x"},
        },
    )
    _, calls = await answer(batch_get_item.plan, body, sized(1))
    sent: list[Any] = [call.operation for call in calls]
    assert [query.consistent for query in sent] == [True, False]
    assert sent[0].projection == sent[1].projection != b""


async def test_each_item_is_rounded_up_alone() -> None:
    sizes = iter((65 * 1024, 17 * 1024))

    def node(_: Call) -> storage_pb2.Reply:
        return storage_pb2.Reply(item=storage_pb2.ItemReply(item=b"{}", size=next(sizes)))

    body = {**get(hash={"Keys": keys("a", "b"), "ConsistentRead": True}), "ReturnConsumedCapacity": "TOTAL"}
    found, _ = await answer(batch_get_item.plan, body, node)
    assert found["ConsumedCapacity"] == [{"TableName": "hash", "CapacityUnits": 22.0}]  # 145


async def test_what_goes_beyond_16_mb_comes_back_unprocessed_with_its_settings() -> None:
    names = [f"k{i}" for i in range(100)]
    settings = {"ConsistentRead": True, "ProjectionExpression": "#x", "ExpressionAttributeNames": {"#x": "x"}}
    found, calls = await answer(batch_get_item.plan, get(hash={"Keys": keys(*names), **settings}), sized(409_600))
    assert len(found["Responses"]["hash"]) == 40
    assert found["UnprocessedKeys"] == {"hash": {"Keys": keys(*names[40:]), **settings}}  # 113
    assert len(calls) <= 80  # what cannot be in the answer is not read


async def test_keys_without_a_leader_come_back_unprocessed_but_not_all_of_them() -> None:
    body = get(hash=keys("a", "b", "c"))
    found, _ = await answer(batch_get_item.plan, body, failing({1}, sized(1)))
    assert len(found["Responses"]["hash"]) == 2
    assert found["UnprocessedKeys"] == {"hash": {"Keys": keys("b")}}
    with pytest.raises(ApiError) as raised:
        await answer(batch_get_item.plan, body, failing({0, 1, 2}, sized(1)))
    assert raised.value.status == 503  # 113


async def test_a_changed_table_plans_the_whole_batch_again() -> None:
    for operation, body in ((batch_get_item, get(hash=keys("a"))), (batch_write_item, write(hash=[put(keys("a")[0])]))):
        with pytest.raises(StalePlanError):
            await answer(operation.plan, body, lambda _: StalePlanError())


MANY = [f"k{i}" for i in range(60)]
WRONG_GETS = [
    (
        "101 keys over two tables",
        get(hash=keys(*MANY), composite=[{"pk": {"S": k}, "sk": {"S": k}} for k in MANY]),
        "Too many items requested for the BatchGetItem call",
    ),
    ("97", get(hash=keys("a", "b", "a")), DUPLICATES),
    ("no sort key", get(composite=keys("a")), "The provided key element does not match the schema"),
    (
        "mixed styles",
        get(hash={"Keys": keys("a"), "AttributesToGet": ["a"], "ProjectionExpression": "a"}),
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}",
    ),
    (
        "names alone",
        get(hash={"Keys": keys("a"), "ExpressionAttributeNames": {"#a": "a"}}),
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
]


@pytest.mark.parametrize(("case", "body", "text"), WRONG_GETS, ids=[case[0] for case in WRONG_GETS])
async def test_wrong_gets(case: str, body: dict[str, Any], text: str) -> None:
    error = await refusal(batch_get_item.plan, body)
    assert (error.type, error.message) == ("ValidationException", text), case


async def test_numbers_written_differently_are_two_keys_to_a_batch_of_gets() -> None:
    body = get(numbers=[{"pk": {"S": "a"}, "sk": {"N": text}} for text in ("1000", "1e3")])  # 72
    found, _ = await answer(batch_get_item.plan, body, sized(1))
    assert len(found["Responses"]["numbers"]) == 2


async def test_a_table_that_turns_up_with_a_refresh() -> None:
    executor = PlanExecutor(sized(1))
    catalog = PlanCatalog(table("late", id_=9))
    body = get(late=[{"pk": {"S": "a"}, "sk": {"S": "b"}}], hash=keys("a"))
    found = orjson.loads(await carry_out(batch_get_item.plan(body, context(executor, catalog)), executor))
    assert sorted(found["Responses"]) == ["hash", "late"]
    assert (await refusal(batch_get_item.plan, get(missing=keys("a")))).type == "ResourceNotFoundException"


# --- writing ---


def done(**members: Any) -> Any:
    """A node that does every write, alone or in a batch."""

    def node(call: Call) -> storage_pb2.Reply:
        write = storage_pb2.WriteReply(**members)
        if not isinstance(call.operation, storage_pb2.Batch):
            return storage_pb2.Reply(write=write)
        results = [storage_pb2.ActionResult(write=write)] * len(call.operation.actions)
        return storage_pb2.Reply(transact=storage_pb2.TransactReply(results=results))

    return node


TOGETHER = ("b", "d")
"""Keys of items in one partition of the table `hash`; that of "a" is in another one."""


async def test_puts_and_deletes() -> None:
    body = write(hash=[put({"pk": {"S": "a"}, "n": {"N": "1.0"}}), delete({"pk": {"S": "b"}})])
    found, calls = await answer(batch_write_item.plan, body, done(new_size=1))
    assert found == {"UnprocessedItems": {}}
    sent: list[Any] = [call.operation for call in calls]
    assert orjson.loads(sent[0].item) == {"pk": {"S": "a"}, "n": {"N": "1"}}
    assert isinstance(sent[1], storage_pb2.Delete)
    assert sent[1].key == partition_hash("S", "b")


async def test_members_of_one_partition_travel_together() -> None:
    members = [put({"pk": {"S": "b"}, "n": {"N": "1.0"}}), put(keys("a")[0]), delete(keys("d")[0])]
    found, calls = await answer(batch_write_item.plan, write(hash=members), done(new_size=1))
    assert found == {"UnprocessedItems": {}}
    together, alone = [call.operation for call in calls]
    assert isinstance(together, storage_pb2.Batch)
    assert isinstance(alone, storage_pb2.Put)
    first, second = together.actions
    assert orjson.loads(first.put.item) == {"pk": {"S": "b"}, "n": {"N": "1"}}
    assert second.delete.key == partition_hash("S", "d")


async def test_large_members_do_not_share_a_message() -> None:
    large = {"S": "x" * (batch_write_item.GROUP_BYTES // 2)}
    members = [put({"pk": {"S": "b"}, "x": large}), put({"pk": {"S": "d"}, "x": large})]
    _, calls = await answer(batch_write_item.plan, write(hash=members), done(new_size=1))
    assert [type(call.operation) for call in calls] == [storage_pb2.Put, storage_pb2.Put]


async def test_members_that_are_refused_in_a_batch_come_back() -> None:
    members = [put(key) for key in keys(*TOGETHER)]

    def node(_: Call) -> storage_pb2.Reply:
        conflict = storage_pb2.Failure(type="TransactionConflictException", message="held")
        results = [storage_pb2.ActionResult(write=storage_pb2.WriteReply(new_size=1)), storage_pb2.ActionResult()]
        results[1].failure.CopyFrom(conflict)
        return storage_pb2.Reply(transact=storage_pb2.TransactReply(results=results))

    asked = {**write(hash=members), "ReturnConsumedCapacity": "TOTAL"}
    found, _ = await answer(batch_write_item.plan, asked, node)
    assert found["UnprocessedItems"] == {"hash": members[1:]}
    assert found["ConsumedCapacity"] == [{"TableName": "hash", "CapacityUnits": 1.0}]


async def test_groups_have_operation_ids_of_their_own_that_a_retry_repeats() -> None:
    body = write(hash=[put(key) for key in keys("a", *TOGETHER)], composite=[put({"pk": {"S": "a"}, "sk": {"S": "a"}})])

    async def ids() -> list[int]:
        _, calls = await answer(batch_write_item.plan, body, done(), invocation_id="i")
        return [call.operation_id for call in calls]

    first = await ids()
    assert len(set(first)) == 3
    assert await ids() == first


async def test_what_found_no_leader_comes_back_as_it_was_sent() -> None:
    members = [put({"pk": {"S": "a"}, "n": {"N": "1.0"}}), *(delete(key) for key in keys(*TOGETHER))]
    found, _ = await answer(batch_write_item.plan, write(hash=members), failing({0}, done()))
    assert found["UnprocessedItems"] == {"hash": members[:1]}
    found, _ = await answer(batch_write_item.plan, write(hash=members), failing({1}, done()))
    assert found["UnprocessedItems"] == {"hash": members[1:]}
    with pytest.raises(ApiError) as raised:
        await answer(batch_write_item.plan, write(hash=members), failing({0, 1}, done()))
    assert raised.value.status == 503
    with pytest.raises(ApiError) as raised:
        await answer(
            batch_write_item.plan, write(hash=members), failed("ItemCollectionSizeLimitExceededException", "x")
        )
    assert raised.value.status == 400


async def test_capacity_and_collections() -> None:
    asked = {"ReturnConsumedCapacity": "INDEXES", "ReturnItemCollectionMetrics": "SIZE"}
    members = [put({"pk": {"S": "a"}, "sk": {"S": name}}) for name in ("x", "y")]
    found, _ = await answer(
        batch_write_item.plan, {**write(indexed=members, hash=[put(keys("a")[0])]), **asked}, done(new_size=1025)
    )
    assert found["ConsumedCapacity"] == [
        {"TableName": "indexed", "CapacityUnits": 4.0, "Table": {"CapacityUnits": 4.0}},
        {"TableName": "hash", "CapacityUnits": 2.0, "Table": {"CapacityUnits": 2.0}},
    ]  # 144
    assert found["ItemCollectionMetrics"] == {
        "indexed": [{"ItemCollectionKey": {"pk": {"S": "a"}}, "SizeEstimateRangeGB": [0, 1]}]
    }


NUMBER_KEYS = [{"pk": {"S": "a"}, "sk": {"N": text}} for text in ("1000", "1e3")]
ONE_OF = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
WRONG_WRITES = [
    (
        "98: 26 over two tables",
        write(hash=[put(key) for key in keys(*MANY[:13])], composite=[delete(key) for key in keys(*MANY[:13])]),
        "Too many items requested for the BatchWriteItem call",
    ),
    ("put and delete", write(hash=[put(keys("a")[0]), delete(keys("a")[0])]), DUPLICATES),
    ("72", write(numbers=[put(key) for key in NUMBER_KEYS]), DUPLICATES),
    (
        "by name and ARN",
        {
            "RequestItems": {
                "hash": [put(keys("a")[0])],
                "arn:aws:dynamodb:us-east-1:000000000000:table/hash": [put(keys("a")[0])],
            }
        },
        DUPLICATES,
    ),
    ("neither", write(hash=[{}]), ONE_OF),
    ("both", write(hash=[{**put(keys("a")[0]), **delete(keys("b")[0])}]), ONE_OF),
    ("none", write(hash=[]), "The batch write request list for a table cannot be null or empty: hash"),
    ("no sort key", write(composite=[put(keys("a")[0])]), INVALID + "Missing the key sk in the item"),
    (
        "wrong key",
        write(composite=[delete(keys("a")[0])]),
        "The provided key element does not match the schema",
    ),
    ("empty set", write(hash=[put({"pk": {"S": "a"}, "s": {"SS": []}})]), INVALID + "An string set  may not be empty"),
    (
        "400 KB",
        write(hash=[put({"pk": {"S": "a"}, "s": {"S": "x" * 409_600}})]),
        "Item size has exceeded the maximum allowed size",
    ),
]


@pytest.mark.parametrize(("case", "body", "text"), WRONG_WRITES, ids=[case[0] for case in WRONG_WRITES])
async def test_wrong_writes_write_nothing(case: str, body: dict[str, Any], text: str) -> None:
    error = await refusal(batch_write_item.plan, body)
    assert (error.type, error.message) == ("ValidationException", text), case


async def test_one_wrong_member_stops_the_whole_batch() -> None:
    body = write(hash=[put(keys("a")[0])], composite=[put(keys("a")[0])])
    assert (await refusal(batch_write_item.plan, body)).message == INVALID + "Missing the key sk in the item"
    missing = write(hash=[put(keys("a")[0])], missing=[put(keys("a")[0])])
    assert (await refusal(batch_write_item.plan, missing)).type == "ResourceNotFoundException"
