"""What a request asks for, and whether a user may: actions, resources, and what conditions see of requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from cluster.random_source import SeededRandom
from cluster.sealing import Keyring, Session, session_token
from cluster.topology import CatalogTable, CatalogUpdate, CatalogUser, Topology
from dynamo.errors import ApiError
from dynamo.table import Index, KeySchema
from dynamo.user import AccessKey, User
from router.access import Circumstances, UnknownTable, check_access
from router.asks import asks_of
from router.credentials import Account, Credentials, KnownKey
from router.guard import Guard
from tests.unit.router_fakes import table
from tests.unit.signing import ACCESS_KEY, NOW, SECRET, signed

PREFIX = "arn:aws:dynamodb:us-east-1:000000000000:table/"
ORDERS = PREFIX + "Orders"
KEY = {"pk": {"S": "ada"}, "sk": {"S": "1"}}
INDEX = Index("by-n", KeySchema(("n",)), "ALL")
HERE = Circumstances("10.1.2.3", False, NOW)


def topology(**members: Any) -> Topology:
    orders = table("Orders", id_=1, global_indexes=(INDEX,), **members)
    others = [CatalogTable(table("Others", id_=2), 1)]
    return Topology().with_update(CatalogUpdate("c1", 1, 0, 1, tables=(CatalogTable(orders, 1), *others)))


def policy(*statements: Mapping[str, Any]) -> str:
    return orjson.dumps({"Version": "2012-10-17", "Statement": list(statements)}).decode()


def allow(action: Any = "dynamodb:*", resource: Any = "*", **condition: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    return {**statement, "Condition": condition} if condition else statement


def deny(action: Any = "dynamodb:*", resource: Any = "*", **condition: Any) -> dict[str, Any]:
    return {**allow(action, resource, **condition), "Effect": "Deny"}


def account(*statements: Mapping[str, Any], admin: bool = False) -> Account:
    user = User("ada", 0.0, admin, (AccessKey(ACCESS_KEY, b"-", 0.0),), {"p": policy(*statements)})
    return Credentials(dict, None, [KnownKey(user, ACCESS_KEY, SECRET)], lambda: NOW).find(ACCESS_KEY, "").account


def check(who: Account, operation: str, body: dict[str, Any], view: Topology | None = None, **how: Any) -> None:
    check_access(who, operation, body, view or topology(), HERE, "us-east-1", **how)


def may(who: Account, operation: str, body: dict[str, Any], view: Topology | None = None) -> bool:
    try:
        check(who, operation, body, view)
    except ApiError as error:
        if error.type != "AccessDeniedException":
            raise
        return False
    return True


def seen(operation: str, body: dict[str, Any]) -> list[dict[str, tuple[str, ...]]]:
    """What conditions see of each part of a request, without dynamodb:."""
    wanted = {f"dynamodb:{name}" for name in ("leadingkeys", "attributes", "select", "returnvalues")}
    found = []
    for ask in asks_of(operation, body, "us-east-1"):
        details = ask.details(topology().table_named(ask.table), wanted)
        found.append({name.removeprefix("dynamodb:"): values for name, values in details.items()})
    return found


# --- actions and resources ---


@pytest.mark.parametrize(
    ("operation", "body", "expected"),
    [
        ("GetItem", {"TableName": "Orders", "Key": KEY}, [("GetItem", ORDERS)]),
        ("GetItem", {"TableName": ORDERS, "Key": KEY}, [("GetItem", ORDERS)]),
        ("GetItem", {"TableName": "arn:aws-x:dynamodb:y:1:table/Orders", "Key": KEY}, [("GetItem", ORDERS)]),
        ("Query", {"TableName": "Orders", "IndexName": "by-n"}, [("Query", f"{ORDERS}/index/by-n")]),
        ("Scan", {"TableName": "Orders"}, [("Scan", ORDERS)]),
        (
            "BatchGetItem",
            {"RequestItems": {"Orders": {"Keys": [KEY]}, "Others": {"Keys": [KEY]}}},
            [("BatchGetItem", ORDERS), ("BatchGetItem", PREFIX + "Others")],
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"Orders": [{"DeleteRequest": {"Key": KEY}}]}},
            [("BatchWriteItem", ORDERS)],
        ),
        (
            "TransactWriteItems",
            {
                "TransactItems": [
                    {"Put": {"TableName": "Orders", "Item": KEY}},
                    {"Update": {"TableName": "Orders", "Key": KEY}},
                    {"Delete": {"TableName": "Others", "Key": KEY}},
                    {"ConditionCheck": {"TableName": "Orders", "Key": KEY}},
                ]
            },
            [
                ("PutItem", ORDERS),
                ("UpdateItem", ORDERS),
                ("DeleteItem", PREFIX + "Others"),
                ("ConditionCheckItem", ORDERS),
            ],
        ),
        ("TransactGetItems", {"TransactItems": [{"Get": {"TableName": "Orders", "Key": KEY}}]}, [("GetItem", ORDERS)]),
        ("ExecuteStatement", {"Statement": 'SELECT * FROM "Orders"'}, [("PartiQLSelect", ORDERS)]),
        (
            "ExecuteStatement",
            {"Statement": 'SELECT * FROM "Orders"."by-n"'},
            [("PartiQLSelect", f"{ORDERS}/index/by-n")],
        ),
        (
            "BatchExecuteStatement",
            {
                "Statements": [
                    {"Statement": "INSERT INTO Orders VALUE {'pk': 'a', 'sk': 'b'}"},
                    {"Statement": "DELETE FROM Others WHERE pk = 'a' AND sk = 'b'"},
                ]
            },
            [("PartiQLInsert", ORDERS), ("PartiQLDelete", PREFIX + "Others")],
        ),
        (
            "ExecuteTransaction",
            {"TransactStatements": [{"Statement": "UPDATE Orders SET x = 1 WHERE pk = 'a' AND sk = 'b'"}]},
            [("PartiQLUpdate", ORDERS)],
        ),
        ("CreateTable", {"TableName": "New"}, [("CreateTable", PREFIX + "New")]),
        (
            "CreateTable",
            {"TableName": "New", "Tags": [{}], "ResourcePolicy": "{}"},
            [(name, PREFIX + "New") for name in ("CreateTable", "TagResource", "PutResourcePolicy")],
        ),
        ("DescribeTable", {"TableName": "Orders"}, [("DescribeTable", ORDERS)]),
        ("TagResource", {"ResourceArn": ORDERS}, [("TagResource", ORDERS)]),
        ("DescribeStream", {"StreamArn": f"{ORDERS}/stream/2026"}, [("DescribeStream", f"{ORDERS}/stream/2026")]),
        ("ListStreams", {}, [("ListStreams", f"{PREFIX}*/stream/*")]),
        ("ListStreams", {"TableName": "Orders"}, [("ListStreams", f"{ORDERS}/stream/*")]),
        ("ListTables", {}, [("ListTables", f"{PREFIX}*")]),
        ("DescribeLimits", {}, [("DescribeLimits", "*")]),
    ],
)
def test_what_requests_ask_for(operation: str, body: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    found = [(ask.action, ask.resource) for ask in asks_of(operation, body, "us-east-1")]
    assert found == [(f"dynamodb:{action}", resource) for action, resource in expected]


# --- what conditions see ---


@pytest.mark.parametrize(
    ("operation", "body", "expected"),
    [
        ("GetItem", {"Key": KEY}, {"leadingkeys": ("ada",), "attributes": ("pk", "sk"), "select": ("ALL_ATTRIBUTES",)}),
        (
            "GetItem",
            {"Key": KEY, "ProjectionExpression": "a.b[0], #c", "ExpressionAttributeNames": {"#c": "c"}},
            {"attributes": ("a", "c", "pk", "sk"), "select": ("SPECIFIC_ATTRIBUTES",)},
        ),
        ("GetItem", {"Key": KEY, "AttributesToGet": ["z"]}, {"attributes": ("pk", "sk", "z")}),
        ("PutItem", {"Item": {**KEY, "x": {"N": "1"}}}, {"attributes": ("pk", "sk", "x"), "returnvalues": ("NONE",)}),
        (
            "UpdateItem",
            {
                "Key": KEY,
                "UpdateExpression": "SET a = b + :v REMOVE c",
                "ConditionExpression": "d < :v",
                "ExpressionAttributeValues": {":v": {"N": "1"}},
                "ReturnValues": "ALL_NEW",
            },
            {"attributes": ("a", "b", "c", "d", "pk", "sk"), "returnvalues": ("ALL_NEW",)},
        ),
        (
            "DeleteItem",
            {"Key": KEY, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"},
            {"returnvalues": ("ALL_OLD", "NONE")},
        ),
        (
            "Query",
            {
                "KeyConditionExpression": ":v = pk AND sk > :v",
                "FilterExpression": "secret = :v",
                "ExpressionAttributeValues": {":v": {"S": "ada"}},
            },
            {"leadingkeys": ("ada",), "attributes": ("pk", "secret", "sk"), "select": ("ALL_ATTRIBUTES",)},
        ),
        (
            "Query",
            {
                "IndexName": "by-n",
                "KeyConditionExpression": "n = :v",
                "ExpressionAttributeValues": {":v": {"N": "1.0"}},
                "Select": "COUNT",
            },
            {"leadingkeys": ("1",), "select": ("COUNT",)},
        ),
        (
            "Query",
            {
                "KeyConditions": {
                    "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "ada"}]},
                }
            },
            {"leadingkeys": ("ada",)},
        ),
    ],
)
def test_what_conditions_see(operation: str, body: dict[str, Any], expected: dict[str, tuple[str, ...]]) -> None:
    (found,) = seen(operation, {"TableName": "Orders", **body})
    assert {name: found[name] for name in expected} == expected


def test_a_scan_has_no_leading_keys() -> None:
    assert "leadingkeys" not in seen("Scan", {"TableName": "Orders"})[0]


def test_batches_show_all_their_keys() -> None:
    other = {"pk": {"S": "eve"}, "sk": {"S": "1"}}
    (read,) = seen("BatchGetItem", {"RequestItems": {"Orders": {"Keys": [KEY, other]}}})
    assert read["leadingkeys"] == ("ada", "eve")
    requests = [{"PutRequest": {"Item": {**other, "x": {"S": "y"}}}}, {"DeleteRequest": {"Key": KEY}}]
    (written,) = seen("BatchWriteItem", {"RequestItems": {"Orders": requests}})
    assert (written["leadingkeys"], written["attributes"]) == (("ada", "eve"), ("pk", "sk", "x"))


@pytest.mark.parametrize(
    ("statement", "parameters", "expected"),
    [
        ("SELECT a FROM Orders WHERE pk = 'ada'", [], {"leadingkeys": ("ada",), "fulltablescan": ("false",)}),
        ("SELECT a FROM Orders WHERE pk IN ['ada', ?]", [{"S": "eve"}], {"leadingkeys": ("ada", "eve")}),
        (
            "SELECT a FROM Orders WHERE pk = 'ada' OR pk = 'eve'",
            [],
            {"leadingkeys": ("ada", "eve"), "attributes": ("a", "pk"), "select": ("SPECIFIC_ATTRIBUTES",)},
        ),
        ("SELECT * FROM Orders WHERE x = 1", [], {"fulltablescan": ("true",), "select": ("ALL_ATTRIBUTES",)}),
        (
            "UPDATE Orders SET x = 1 WHERE pk = ? AND sk = 's' RETURNING ALL OLD *",
            [{"S": "ada"}],
            {"leadingkeys": ("ada",), "attributes": ("pk", "sk", "x"), "returnvalues": ("ALL_OLD",)},
        ),
        ("INSERT INTO Orders VALUE {'pk': 'ada', 'sk': 's', 'x': 1}", [], {"attributes": ("pk", "sk", "x")}),
    ],
)
def test_what_conditions_see_of_statements(
    statement: str, parameters: list[Any], expected: dict[str, tuple[str, ...]]
) -> None:
    body = {"Statement": statement, **({"Parameters": parameters} if parameters else {})}
    (found,) = seen("ExecuteStatement", body)
    assert {name: found[name] for name in expected} == expected


# --- who may ---


GET = {"TableName": "Orders", "Key": KEY}


def test_what_no_policy_allows_is_denied_in_dynamodbs_words() -> None:
    with pytest.raises(ApiError) as caught:
        check(account(allow("dynamodb:PutItem")), "GetItem", GET)
    assert caught.value.type == "AccessDeniedException"
    assert caught.value.message == (
        "User: arn:aws:iam::000000000000:user/ada is not authorized to perform: dynamodb:GetItem on resource: "
        f"{ORDERS} because no identity-based policy allows the dynamodb:GetItem action"
    )
    with pytest.raises(ApiError, match="with an explicit deny in an identity-based policy"):
        check(account(allow(), deny("dynamodb:Get*")), "GetItem", GET)


def test_an_admin_may_do_everything() -> None:
    assert may(account(deny(), admin=True), "DeleteTable", {"TableName": "Orders"})


def test_all_tables_of_a_batch_have_to_be_allowed() -> None:
    body = {"RequestItems": {"Orders": {"Keys": [KEY]}, "Others": {"Keys": [KEY]}}}
    assert may(account(allow("dynamodb:BatchGetItem")), "BatchGetItem", body)
    assert not may(account(allow("dynamodb:BatchGetItem", ORDERS)), "BatchGetItem", body)
    statements = {"TransactStatements": [{"Statement": "SELECT * FROM Orders WHERE pk='ada' AND sk='1'"}]}
    assert not may(account(allow("dynamodb:PartiQLUpdate")), "ExecuteTransaction", statements)


def test_own_items_only() -> None:
    own = account(allow(**{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}"]}}))
    assert may(own, "GetItem", GET)
    other = {"pk": {"S": "eve"}, "sk": {"S": "1"}}
    assert not may(own, "GetItem", {**GET, "Key": other})
    assert may(own, "GetItem", GET)
    assert not may(own, "BatchGetItem", {"RequestItems": {"Orders": {"Keys": [KEY, other]}}})
    put = {"TransactItems": [{"Put": {"TableName": "Orders", "Item": KEY}}]}
    assert may(own, "TransactWriteItems", put)
    put["TransactItems"].append({"Put": {"TableName": "Orders", "Item": other}})
    assert not may(own, "TransactWriteItems", put)
    assert not may(own, "ExecuteStatement", {"Statement": "SELECT * FROM Orders WHERE pk = 'ada' OR pk = 'eve'"})


def test_some_attributes_only() -> None:
    some = account(
        allow(
            **{
                "ForAllValues:StringEquals": {"dynamodb:Attributes": ["pk", "sk", "visible"]},
                "StringEqualsIfExists": {
                    "dynamodb:Select": "SPECIFIC_ATTRIBUTES",
                    "dynamodb:ReturnValues": ["NONE", "UPDATED_NEW"],
                },
            }
        )
    )
    assert may(some, "GetItem", {**GET, "ProjectionExpression": "visible"})
    assert not may(some, "GetItem", {**GET, "ProjectionExpression": "visible, secret"})
    assert not may(some, "GetItem", GET)
    assert may(some, "PutItem", {"TableName": "Orders", "Item": KEY})
    assert not may(some, "PutItem", {"TableName": "Orders", "Item": KEY, "ReturnValues": "ALL_OLD"})
    shown = {"TableName": "Orders", "Item": KEY, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    assert not may(some, "PutItem", shown)


def test_circumstances() -> None:
    assert may(account(allow(IpAddress={"aws:SourceIp": "10.0.0.0/8"})), "GetItem", GET)
    assert not may(account(allow(IpAddress={"aws:SourceIp": "11.0.0.0/8"})), "GetItem", GET)
    assert not may(account(allow(), deny(Bool={"aws:SecureTransport": False})), "GetItem", GET)
    assert may(account(allow(DateLessThan={"aws:CurrentTime": "2026-11-30T12:00:01Z"})), "GetItem", GET)
    assert not may(account(allow(DateLessThan={"aws:CurrentTime": "2026-11-30T12:00:00Z"})), "GetItem", GET)
    assert may(account(allow(NumericEquals={"aws:EpochTime": int(NOW)})), "GetItem", GET)


def test_a_tables_own_policy() -> None:
    shared = topology(resource_policy=policy({**allow("dynamodb:GetItem", ORDERS), "Principal": "*"}))
    assert may(account(), "GetItem", GET, shared)
    assert not may(account(), "PutItem", {"TableName": "Orders", "Item": KEY}, shared)
    closed = topology(resource_policy=policy({**deny("dynamodb:GetItem", ORDERS), "Principal": "*"}))
    with pytest.raises(ApiError, match="with an explicit deny in a resource-based policy"):
        check(account(allow()), "GetItem", GET, closed)


def test_what_was_sure_is_looked_at_again_when_the_table_gets_a_policy() -> None:
    guard, caller = guarded(allow())
    view = [topology()]
    guard._topology = lambda: view[0]  # the catalog moves on
    guard.authorize(caller, "GetItem", GET)
    guard.authorize(caller, "GetItem", GET)
    view[0] = topology(resource_policy=policy({**deny("dynamodb:GetItem", ORDERS), "Principal": "*"}))
    with pytest.raises(ApiError, match="resource-based"):
        guard.authorize(caller, "GetItem", GET)


def test_a_table_that_this_router_does_not_know_is_asked_for_first() -> None:
    body = {"TableName": "Nowhere", "Key": KEY}
    with pytest.raises(UnknownTable):
        check(account(allow()), "GetItem", body)
    check(account(allow()), "GetItem", body, final=True)
    with pytest.raises(ApiError, match="explicit deny"):
        check(account(deny()), "GetItem", body)
    own = account(allow(**{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["ada"]}}))
    with pytest.raises(ApiError, match="ResourceNotFoundException"):
        check(own, "GetItem", body, final=True)


# --- the guard, and credentials ---


def guarded(*statements: Mapping[str, Any], mode: Any = "enforce") -> Any:
    user = User("ada", 0.0, False, (AccessKey(ACCESS_KEY, b"-", 0.0),), {"p": policy(*statements)})
    credentials = Credentials(dict, None, [KnownKey(user, ACCESS_KEY, SECRET)], lambda: NOW)
    guard = Guard(mode, credentials, "us-east-1", lambda: NOW, topology)
    return guard, guard.authenticate(signed(), "10.1.2.3", False)


def test_warn_lets_pass_counts_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    guard, caller = guarded(mode="warn")
    for _ in range(3):
        guard.authorize(caller, "GetItem", GET)
        assert guard.authenticate(signed(secret="wrong"), "10.1.2.3", False).account is None
    assert guard.refusals == {"AccessDeniedException": 3, "InvalidSignatureException": 3}
    assert len([record for record in caplog.records if "would be refused" in record.message]) == 2


def test_enforce_refuses_and_counts() -> None:
    guard, caller = guarded()
    with pytest.raises(ApiError, match="AccessDenied"):
        guard.authorize(caller, "GetItem", GET)
    with pytest.raises(ApiError, match="InvalidSignature"):
        guard.authenticate(signed(secret="wrong"), "10.1.2.3", False)
    assert guard.refusals == {"AccessDeniedException": 1, "InvalidSignatureException": 1}


class Users:
    """A catalog's users that a test changes."""

    def __init__(self, *users: User) -> None:
        self.keyring = Keyring([bytes(32)])
        self.put(*users)

    def put(self, *users: User) -> None:
        self.current = {user.id: CatalogUser(user, 1) for user in users}

    def sealed(self, secret: str, about: str = ACCESS_KEY) -> AccessKey:
        return AccessKey(ACCESS_KEY, self.keyring.seal(secret.encode(), about, SeededRandom(1)), 0.0)

    def credentials(self, keyring: Keyring | None = None, now: float = NOW) -> Credentials:
        return Credentials(lambda: self.current, keyring or self.keyring, (), lambda: now)


def kind(credentials: Credentials, key: str = ACCESS_KEY, token: str = "") -> str:
    try:
        credentials.find(key, token)
    except ApiError as error:
        return error.type
    return ""


def test_a_sealed_secret_opens_with_its_key_for_its_access_key_only(caplog: pytest.LogCaptureFixture) -> None:
    users = Users()
    users.put(User("ada", 0.0, keys=(users.sealed(SECRET),)))
    assert users.credentials().find(ACCESS_KEY, "").secret == SECRET.encode()
    assert kind(users.credentials(Keyring([b"x" * 32]))) == "UnrecognizedClientException"
    users.put(User("ada", 0.0, keys=(users.sealed(SECRET, "another"),)))
    assert kind(users.credentials()) == "UnrecognizedClientException"
    assert SECRET not in caplog.text
    assert SECRET.encode() not in users.sealed(SECRET).secret


def test_keys_change_with_the_catalog() -> None:
    users = Users()
    ada = User("ada", 0.0, keys=(users.sealed(SECRET),))
    users.put(ada)
    credentials = users.credentials()
    assert kind(credentials) == ""
    disabled = AccessKey(ACCESS_KEY, ada.keys[0].secret, 0.0, disabled=True)
    users.put(User("ada", 0.0, keys=(disabled,)))
    assert kind(credentials) == "UnrecognizedClientException"
    users.put(ada)
    assert kind(credentials) == ""
    users.put()
    assert kind(credentials) == "UnrecognizedClientException"


def test_sessions() -> None:
    users = Users(User("ada", 0.0))
    token = session_token(Session("ada", b"temporary", int(NOW) + 60), "TZSTKEY", users.keyring, SeededRandom(1))
    credentials = users.credentials()
    found = credentials.find("TZSTKEY", token)
    assert (found.secret, found.account.name) == (b"temporary", "ada")
    assert kind(credentials, "TZSTOTHER", token) == "UnrecognizedClientException"
    assert kind(credentials, "TZSTKEY", token[:-4] + "AAAA") == "UnrecognizedClientException"
    assert kind(credentials, "TZSTKEY", "TZ1é") == "UnrecognizedClientException"
    assert kind(credentials, "TZSTKEY") == "UnrecognizedClientException"
    assert kind(users.credentials(now=NOW + 60), "TZSTKEY", token) == "ExpiredTokenException"
    users.put()
    assert kind(credentials, "TZSTKEY", token) == "UnrecognizedClientException"


def test_a_policy_that_cannot_be_read_allows_nothing() -> None:
    users = Users()
    bad = '{"Statement": [{"Effect": "Perhaps"}]}'
    users.put(User("ada", 0.0, keys=(users.sealed(SECRET),), policies={"a": policy(allow()), "z": bad}))
    assert not may(users.credentials().find(ACCESS_KEY, "").account, "GetItem", GET)
