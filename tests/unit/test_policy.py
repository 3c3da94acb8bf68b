"""Policies: what documents may say, and what they mean."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dynamo.errors import ApiError
from dynamo.policy import Verdict, policy_of, verdict
from dynamo.wildcards import Glob, filled

TABLE = "arn:aws:dynamodb:us-east-1:000000000000:table/Orders"
ADA = "arn:aws:iam::000000000000:user/ada"


def statement(**members: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*", **members}


def document(*statements: dict[str, Any], **members: Any) -> str:
    return orjson.dumps({"Version": "2012-10-17", "Statement": list(statements), **members}).decode()


def judged(
    *statements: dict[str, Any], action: str = "dynamodb:GetItem", resource: str = TABLE, **context: Any
) -> Verdict:
    """The verdict of one policy. Context: keys with __ for :, texts or tuples of texts."""
    known = {"aws:username": ("ada",)}
    for name, values in context.items():
        known[name.replace("__", ":").lower()] = values if isinstance(values, tuple) else (values,)
    policy = policy_of(document(*statements))
    return verdict([each for each in policy if each.applies(action, resource, known)], known)


# --- actions and resources ---


@pytest.mark.parametrize(
    ("action", "resource", "expected"),
    [
        ("dynamodb:*", "*", True),
        ("*", "*", True),
        ("dynamodb:GetItem", TABLE, True),
        ("DYNAMODB:getitem", TABLE, True),
        ("dynamodb:Get*", f"{TABLE[:-2]}*", True),
        ("dynamodb:Get?tem", TABLE.replace("Orders", "Order?"), True),
        (["dynamodb:PutItem", "dynamodb:GetItem"], ["x*", "*"], True),
        ("dynamodb:PutItem", "*", False),
        ("dynamodb:GetItem", f"{TABLE}/index/*", False),
        ("dynamodb:GetItem", TABLE.lower(), False),
        ("dynamodb:GetItem", f"{TABLE}s", False),
    ],
)
def test_wildcards_in_actions_and_resources(action: Any, resource: Any, expected: bool) -> None:
    if isinstance(resource, list):
        resource = [each if each != "x*" else "arn:aws:x" for each in resource]
    found = judged(statement(Action=action, Resource=resource))
    assert found is (Verdict.ALLOW if expected else Verdict.NOTHING)


def test_what_is_not_meant() -> None:
    no_delete = {"Effect": "Allow", "NotAction": "dynamodb:Delete*", "Resource": "*"}
    assert judged(no_delete) is Verdict.ALLOW
    assert judged(no_delete, action="dynamodb:DeleteItem") is Verdict.NOTHING
    elsewhere = {"Effect": "Deny", "Action": "*", "NotResource": TABLE}
    assert judged(statement(), elsewhere) is Verdict.ALLOW
    assert judged(statement(), elsewhere, resource=f"{TABLE}2") is Verdict.DENY


def test_a_deny_wins_wherever_it_stands() -> None:
    deny = statement(Effect="Deny", Action="dynamodb:GetItem")
    assert judged(deny, statement()) is Verdict.DENY
    assert judged(statement(), deny) is Verdict.DENY
    assert judged(statement(), deny, action="dynamodb:PutItem") is Verdict.ALLOW
    assert judged() is Verdict.NOTHING


def test_a_variable_in_a_resource_means_itself() -> None:
    mine = statement(Resource="arn:aws:dynamodb:*:*:table/${aws:username}-*")
    assert judged(mine, resource=TABLE.replace("Orders", "ada-1")) is Verdict.ALLOW
    assert judged(mine, resource=TABLE.replace("Orders", "eve-1")) is Verdict.NOTHING
    starred = {"aws:username": ("*",)}
    (only,) = policy_of(document(mine))
    assert not only.applies("dynamodb:GetItem", TABLE.replace("Orders", "eve-1"), starred)


# --- conditions ---


@pytest.mark.parametrize(
    ("operator", "key", "wanted", "context", "expected"),
    [
        ("StringEquals", "aws:username", "ada", {}, True),
        ("StringEquals", "AWS:UserName", ["eve", "ada"], {}, True),
        ("StringEquals", "aws:username", "Ada", {}, False),
        ("StringEqualsIgnoreCase", "aws:username", "ADA", {}, True),
        ("StringNotEquals", "aws:username", "ada", {}, False),
        ("StringNotEquals", "aws:other", "ada", {}, True),
        ("StringEquals", "aws:other", "ada", {}, False),
        ("StringEqualsIfExists", "aws:other", "ada", {}, True),
        ("StringLike", "aws:username", "a*", {}, True),
        ("StringNotLike", "aws:username", "a*", {}, False),
        ("Null", "aws:other", "true", {}, True),
        ("Null", "aws:username", True, {}, False),
        ("Null", "aws:username", "false", {}, True),
        ("Bool", "aws:SecureTransport", "true", {"aws__securetransport": "true"}, True),
        ("Bool", "aws:SecureTransport", True, {"aws__securetransport": "false"}, False),
        ("IpAddress", "aws:SourceIp", "10.0.0.0/8", {"aws__sourceip": "10.1.2.3"}, True),
        ("IpAddress", "aws:SourceIp", ["10.0.0.0/8", "::1"], {"aws__sourceip": "::1"}, True),
        ("IpAddress", "aws:SourceIp", "10.0.0.0/8", {"aws__sourceip": "11.1.2.3"}, False),
        ("NotIpAddress", "aws:SourceIp", "10.0.0.0/8", {"aws__sourceip": "11.1.2.3"}, True),
        ("NumericLessThan", "aws:n", 10, {"aws__n": "9.5"}, True),
        ("NumericGreaterThanEquals", "aws:n", "10", {"aws__n": "9.5"}, False),
        ("NumericNotEquals", "aws:n", "10", {"aws__n": "10.0"}, False),
        ("DateLessThan", "aws:CurrentTime", "2027-01-01T00:00:00Z", {"aws__currenttime": "2026-12-31T23:59:59Z"}, True),
        ("DateGreaterThan", "aws:CurrentTime", "2027-01-01", {"aws__currenttime": "2026-12-31T23:59:59Z"}, False),
        ("ArnLike", "aws:PrincipalArn", "arn:aws:iam::*:user/ada", {"aws__principalarn": ADA}, True),
        ("ForAllValues:StringEquals", "k", ["a", "b"], {"k": ("a", "b")}, True),
        ("ForAllValues:StringEquals", "k", ["a", "b"], {"k": ("a", "c")}, False),
        ("ForAllValues:StringEquals", "k", ["a"], {}, True),
        ("ForAnyValue:StringEquals", "k", ["a"], {"k": ("a", "c")}, True),
        ("ForAnyValue:StringEquals", "k", ["a"], {}, False),
        ("ForAnyValue:StringNotEquals", "k", ["a"], {"k": ("a", "c")}, True),
        ("ForAllValues:StringNotEquals", "k", ["a"], {"k": ("a", "c")}, False),
        ("ForAllValues:StringLike", "k", ["${aws:username}-*"], {"k": ("ada-1", "ada-2")}, True),
        ("ForAllValues:StringLike", "k", ["${aws:username}-*"], {"k": ("eve-1",)}, False),
        ("StringEquals", "k", "${aws:nothing}", {"k": ""}, False),
        ("StringEquals", "k", "${*}", {"k": "*"}, True),
    ],
)
def test_conditions(operator: str, key: str, wanted: Any, context: dict[str, Any], expected: bool) -> None:
    found = judged(statement(Condition={operator: {key: wanted}}), **context)
    assert found is (Verdict.ALLOW if expected else Verdict.NOTHING)


def test_all_conditions_have_to_hold() -> None:
    both = {"StringEquals": {"aws:username": "ada", "k": "v"}, "Null": {"n": "true"}}
    assert judged(statement(Condition=both), k="v") is Verdict.ALLOW
    assert judged(statement(Condition=both), k="w") is Verdict.NOTHING
    assert judged(statement(Condition=both), k="v", n="1") is Verdict.NOTHING


def test_several_values_under_a_plain_operator_count_against_the_request() -> None:
    condition = {"StringEquals": {"k": "a"}}
    assert judged(statement(Condition=condition), k=("a", "b")) is Verdict.NOTHING
    deny = statement(Effect="Deny", Condition=condition)
    assert judged(statement(), deny, k=("a", "b")) is Verdict.DENY


# --- a table's policy ---


@pytest.mark.parametrize(
    ("principal", "effect", "expected"),
    [
        ("*", "Allow", True),
        ({"AWS": "*"}, "Allow", True),
        ({"AWS": ADA}, "Allow", True),
        ({"AWS": [ADA.replace("ada", "eve"), ADA]}, "Allow", True),
        ({"AWS": ADA.replace("ada", "eve")}, "Allow", False),
        ({"AWS": "000000000000"}, "Allow", False),
        ({"AWS": "arn:aws:iam::000000000000:root"}, "Allow", False),
        ({"AWS": "000000000000"}, "Deny", True),
        ({"AWS": "111111111111"}, "Deny", False),
    ],
)
def test_whom_a_table_names(principal: Any, effect: str, expected: bool) -> None:
    (only,) = policy_of(document(statement(Principal=principal, Effect=effect)), of_resource=True)
    assert only.names(ADA, "000000000000") is expected


# --- documents that are none ---


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is not JSON"),
        ("[]", "it has no Statement"),
        ('{"Statement": 1}', "it has no Statement"),
        (document(Extra=1), "a member that is not known: Extra"),
        (document(Version="2020"), "its Version is not 2012-10-17"),
        (document(*[statement()] * 101), "more than 100 statements"),
        ('{"Statement": [1]}', "statement 1 is not an object"),
        (document(statement(), statement(Effect="allow")), "the Effect of statement 2 is neither Allow nor Deny"),
        (document(statement(Actions="*")), "statement 1 has a member that is not known: Actions"),
        (document({"Effect": "Allow", "Resource": "*"}), "statement 1 must have either Action or NotAction"),
        (document(statement(NotAction="*")), "statement 1 must have either Action or NotAction"),
        (document(statement(Action="GetItem")), "statement 1 has an Action that is none: 'GetItem'"),
        (document(statement(Action=[])), "the Action of statement 1 is no text"),
        (document(statement(Action=["dynamodb:*", 1])), "the Action of statement 1 is no text"),
        (document(statement(Resource="Orders")), "statement 1 has a Resource that is no ARN: 'Orders'"),
        (document(statement(Resource="arn:" + "x" * 2048)), "of up to 2048 characters"),
        (document(statement(Resource="arn:${dynamodb:x}")), "has a variable in a Resource"),
        (document(statement(Principal="*")), "has a Principal, which only a table's policy has"),
        (document(statement(Condition=[])), "Condition must be an object"),
        (document(statement(Condition={"StringSame": {"a": "b"}})), "there is no condition operator StringSame"),
        (document(statement(Condition={"ForSome:StringEquals": {"a": "b"}})), "there is no condition operator ForSome"),
        (document(statement(Condition={"StringEquals": {}})), "StringEquals must be an object with keys"),
        (document(statement(Condition={"StringEquals": {"a": []}})), "the condition key a has no values"),
        (document(statement(Condition={"StringEquals": {"a": {}}})), "a value of the condition key a is no text"),
        (document(statement(Condition={"Bool": {"a": "yes"}})), "is not true or false"),
        (document(statement(Condition={"IpAddress": {"a": "10.0.0.0/99"}})), "is not an IP address"),
        (document(statement(Condition={"NumericEquals": {"a": "ten"}})), "is not a number"),
        (document(statement(Condition={"DateEquals": {"a": "today"}})), "is not a time"),
        (" " * 20_481, "larger than 20480 bytes"),
    ],
)
def test_a_bad_document_is_refused_with_what_is_wrong(text: str, told: str) -> None:
    with pytest.raises(ApiError) as caught:
        policy_of(text)
    assert caught.value.type == "ValidationException"
    assert told in caught.value.message


@pytest.mark.parametrize("principal", [None, "ada", {"AWS": "ada"}, {"AWS": []}, {"Service": "x"}, [], 1])
def test_a_table_has_to_name_principals(principal: Any) -> None:
    given = {} if principal is None else {"Principal": principal}
    with pytest.raises(ApiError, match="Principal"):
        policy_of(document(statement(**given)), of_resource=True)


# --- wildcards ---


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True), ("*", "", True), ("**", "abc", True), ("a*c", "abc", True), ("a*c", "ac", True),
        ("a*c", "abcd", False), ("*b*", "abc", True), ("a?c", "abc", True), ("a?c", "ac", False),
        ("*a?a*", "xaba", True), ("ab*ba", "aba", False), ("a.c", "abc", False), ("[ab]", "a", False),
        ("*a*b", "ab-b", True), ("*aa*aa*", "aaa", False), ("?", "\n", True),
    ],
)  # fmt: skip
def test_globs(pattern: str, text: str, expected: bool) -> None:
    assert Glob(pattern).matches(text) is expected


def test_a_value_with_wildcards_means_itself() -> None:
    assert filled("${a}*", {"a": ("x*y?",)}) is not None
    glob = Glob(filled("${a}*", {"a": ("x*y?",)}) or "")
    assert glob.matches("x*y?z")
    assert not glob.matches("xxyzz")
    assert filled("${a}", {}) is None
    assert filled("${a}", {"a": ("x", "y")}) is None


def test_a_hostile_pattern_takes_no_exponential_time() -> None:
    assert not Glob("a*" * 1_000 + "b").matches("a" * 2_048)  # would never end if all ways were tried
    assert not Glob("*?a" * 600 + "b").matches("a" * 2_048)
