"""Tags and resource policies: what is kept, what is refused, and what happens when several change them at once."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from dynamo.errors import ApiError
from dynamo.policy import POLICY_SIZE_MAX
from tests.unit.router_tables import ARN, Catalog, ask, error, on_demand

TABLE_ARN = f"{ARN}abc"
POLICY = orjson.dumps({"Version": "2012-10-17", "Statement": []}).decode()


def tagging(**tags: str) -> dict[str, Any]:
    """A TagResource request."""
    return {"ResourceArn": TABLE_ARN, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


async def listed(catalog: Catalog) -> dict[str, str]:
    """The table's tags."""
    answer = await ask("ListTagsOfResource", {"ResourceArn": TABLE_ARN}, catalog)
    return {tag["Key"]: tag["Value"] for tag in answer["Tags"]}


async def test_tags_are_added_replaced_and_removed() -> None:
    catalog = Catalog(on_demand(tags={"a": "1", "b": "2"}))
    assert await ask("TagResource", tagging(b="3", c=""), catalog) == {}
    assert await listed(catalog) == {"a": "1", "b": "3", "c": ""}
    assert await ask("UntagResource", {"ResourceArn": TABLE_ARN, "TagKeys": ["a", "none"]}, catalog) == {}
    assert await listed(catalog) == {"b": "3", "c": ""}


async def test_a_request_that_changes_nothing_asks_nobody() -> None:
    catalog = Catalog(on_demand(tags={"a": "1"}))
    await ask("TagResource", tagging(a="1"), catalog)
    assert catalog.submitted == []


async def test_tags_of_requests_at_once_all_survive() -> None:  # case 20
    catalog = Catalog(on_demand(), conflicts=3)
    await asyncio.gather(*(ask("TagResource", tagging(**{key: key}), catalog) for key in "abcdefgh"))
    assert sorted(await listed(catalog)) == list("abcdefgh")


async def test_a_tag_follows_a_table_that_was_made_just_now() -> None:
    catalog = Catalog(later=(on_demand(),))
    await ask("TagResource", tagging(a="1"), catalog)
    assert await listed(catalog) == {"a": "1"}


@pytest.mark.parametrize(
    ("operation", "members", "text"),
    [
        ("TagResource", {"Tags": []}, "Atleast one Tag needs to be provided as Input."),
        ("UntagResource", {"TagKeys": []}, "Atleast one Tag Key needs to be provided as Input."),
        ("TagResource", {"Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]}, "unique"),
        ("TagResource", {"Tags": [{"Key": "AWS:x", "Value": ""}]}, "must not begin with aws:"),
        ("TagResource", {"Tags": [{"Key": str(n), "Value": ""} for n in range(51)]}, "Too many tags: 51"),
        ("ListTagsOfResource", {"NextToken": "x"}, "Invalid NextToken"),
    ],
)
async def test_tags_that_are_refused(operation: str, members: dict[str, Any], text: str) -> None:
    found = await error(operation, {"ResourceArn": TABLE_ARN, **members}, on_demand())
    assert found.type == "ValidationException"
    assert text in found.message


async def test_the_51st_tag_is_refused_with_those_that_came_before() -> None:
    found = await error("TagResource", tagging(new=""), on_demand(tags={str(n): "" for n in range(50)}))
    assert "Too many tags: 51" in found.message


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("TagResource", {"Tags": [{"Key": "a", "Value": "b"}]}),
    ("UntagResource", {"TagKeys": ["a"]}),
    ("ListTagsOfResource", {}),
    ("PutResourcePolicy", {"Policy": POLICY}),
    ("GetResourcePolicy", {}),
    ("DeleteResourcePolicy", {}),
]


@pytest.mark.parametrize(("operation", "members"), CALLS)
@pytest.mark.parametrize("arn", ["abc", f"{TABLE_ARN}/index/i", "arn:aws:s3:us-east-1:000000000000:table/abc"])
async def test_what_is_no_table_arn(operation: str, members: dict[str, Any], arn: str) -> None:  # case 21
    found = await error(operation, {"ResourceArn": arn, **members}, on_demand())
    text = f"Invalid TableArn: Invalid ResourceArn provided as input {arn}"
    assert (found.type, found.message) == ("ValidationException", text)


@pytest.mark.parametrize(("operation", "members"), CALLS)
@pytest.mark.parametrize("arn", [f"{ARN}missing", "arn:aws:dynamodb:eu-west-1:000000000000:table/abc"])
async def test_the_arn_of_a_missing_table(operation: str, members: dict[str, Any], arn: str) -> None:  # case 21
    found = await error(operation, {"ResourceArn": arn, **members}, on_demand())
    text = f"Requested resource not found: ResourcArn: {arn} not found"
    assert (found.type, found.message) == ("ResourceNotFoundException", text)


async def test_a_policy_is_put_given_back_and_taken_away() -> None:
    catalog = Catalog(on_demand())
    named = {"ResourceArn": TABLE_ARN}
    first = await ask("PutResourcePolicy", {**named, "Policy": POLICY}, catalog)
    again = await ask("PutResourcePolicy", {**named, "Policy": POLICY}, catalog)
    assert first == again
    assert await ask("GetResourcePolicy", named, catalog) == {"Policy": POLICY, **first}
    assert await ask("DeleteResourcePolicy", named, catalog) == first
    assert await ask("DeleteResourcePolicy", named, catalog) == {}
    with pytest.raises(ApiError, match="PolicyNotFoundException"):
        await ask("GetResourcePolicy", named, catalog)


async def test_revisions_are_compared() -> None:
    catalog = Catalog(on_demand())
    put: dict[str, Any] = {"ResourceArn": TABLE_ARN, "Policy": POLICY}
    with pytest.raises(ApiError, match="PolicyNotFoundException"):
        await ask("PutResourcePolicy", {**put, "ExpectedRevisionId": "1"}, catalog)
    made = await ask("PutResourcePolicy", {**put, "ExpectedRevisionId": "NO_POLICY"}, catalog)
    with pytest.raises(ApiError, match="PolicyNotFoundException"):
        await ask("PutResourcePolicy", {**put, "ExpectedRevisionId": "NO_POLICY"}, catalog)
    other = {**put, "Policy": POLICY + " ", "ExpectedRevisionId": made["RevisionId"]}
    changed = await ask("PutResourcePolicy", other, catalog)
    assert changed != made
    with pytest.raises(ApiError, match="PolicyNotFoundException"):
        await ask("DeleteResourcePolicy", {"ResourceArn": TABLE_ARN, "ExpectedRevisionId": made["RevisionId"]}, catalog)


@pytest.mark.parametrize("policy", ["", "{", "[]", "{}", '{"Statement": 1}', POLICY + " " * POLICY_SIZE_MAX])
async def test_a_policy_that_is_none(policy: str) -> None:
    found = await error("PutResourcePolicy", {"ResourceArn": TABLE_ARN, "Policy": policy}, on_demand())
    assert found.type == "ValidationException"


async def test_what_is_not_built_is_shown_as_disabled() -> None:
    catalog = Catalog(on_demand())
    shown = await ask("DescribeTimeToLive", {"TableName": "abc"}, catalog)
    assert shown == {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
    shown = await ask("DescribeContinuousBackups", {"TableName": "abc"}, catalog)
    recovery = shown["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    assert recovery == {"PointInTimeRecoveryStatus": "DISABLED"}


async def test_continuous_backups_of_a_missing_table() -> None:
    found = await error("DescribeContinuousBackups", {"TableName": "abc"})
    assert (found.type, found.message) == ("TableNotFoundException", "Table not found: abc")
