"""PartiQL through boto3: ExecuteStatement and BatchExecuteStatement. Numbers are those of the collected cases."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.support import VALIDATION, Client, Item, key, n, new_table, random_name, refused, s

NOT_WELL_FORMED = "Statement wasn't well formed, can't be processed: "
NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"
CONDITION_FAILED = "ConditionalCheckFailedException"


def run(client: Client, statement: str, *parameters: Item, **members: Any) -> Any:
    """ExecuteStatement's answer."""
    if parameters:
        members["Parameters"] = list(parameters)
    return client.execute_statement(Statement=statement, **members)


def items(client: Client, statement: str, *parameters: Item, **members: Any) -> Any:
    return run(client, statement, *parameters, ConsistentRead=True, **members)["Items"]


def stored(client: Client, table: str, **key_: str) -> Any:
    return client.get_item(TableName=table, Key=key(**key_), ConsistentRead=True).get("Item")


def filled(client: Client, table: str, count: int = 5) -> str:
    """A partition of `strings` with sort keys "0", "1" and so on; its partition key."""
    p = random_name()
    for i in range(count):
        client.put_item(TableName=table, Item={**key(p=p, c=str(i)), "n": n(i), "m": {"M": {"x": {"L": [n(i)]}}}})
    return p


# --- writes ---


def test_insert(client: Client, simple: str) -> None:
    p = random_name()
    answer = run(
        client,
        f"INSERT INTO \"{simple}\" VALUE {{'p': ?, 'l': [1, 'a', null, {{'t': true}}], 'ns': <<2, 1.>>, 'q': 'it''s'}}",
        s(p),
    )
    assert answer["Items"] == []
    item = stored(client, simple, p=p)
    assert item.pop("ns") == {"NS": ["1", "2"]}
    assert item == {
        "p": s(p),
        "l": {"L": [n(1), s("a"), {"NULL": True}, {"M": {"t": {"BOOL": True}}}]},
        "q": s("it's"),
    }


def test_insert_of_a_key_that_is_taken(client: Client, simple: str) -> None:
    p = random_name()
    run(client, f'INSERT INTO "{simple}" VALUE ?', {"M": {"p": s(p), "n": n(1)}})
    with refused("DuplicateItemException", "Duplicate primary key exists in table"):
        run(client, f"INSERT INTO \"{simple}\" VALUE {{'p': ?, 'n': 2}}", s(p))
    assert stored(client, simple, p=p)["n"] == n(1)
    run(client, f'DELETE FROM "{simple}" WHERE p = ?', s(p))
    run(client, f"INSERT INTO \"{simple}\" VALUE {{'p': ?, 'n': 3}}", s(p))
    assert stored(client, simple, p=p)["n"] == n(3)


def test_insert_checks_what_put_item_checks(client: Client, strings: str) -> None:
    with refused(VALIDATION, "Missing the key c in the item"):
        run(client, f"INSERT INTO \"{strings}\" VALUE {{'p': 'x'}}")
    with refused(VALIDATION, "Type mismatch for key c"):
        run(client, f"INSERT INTO \"{strings}\" VALUE {{'p': 'x', 'c': 1}}")
    with refused(VALIDATION, "Item size has exceeded the maximum allowed size"):
        run(client, f"INSERT INTO \"{strings}\" VALUE {{'p': 'x', 'c': 'x', 'b': ?}}", s("x" * 409_600))


@pytest.mark.parametrize(
    ("clause", "old", "new"),
    [
        ("SET a = 1", {}, {"a": n(1)}),
        ("SET a = a + 5 - ?", {"a": n(1)}, {"a": n(4)}),
        ("SET a = if_not_exists(a, 7), b = 'x'", {}, {"a": n(7), "b": s("x")}),
        ("SET a = list_append(a, [?])", {"a": {"L": [n(1)]}}, {"a": {"L": [n(1), n(2)]}}),
        (
            "SET a.x = 1 REMOVE b[0]",
            {"a": {"M": {}}, "b": {"L": [n(1), n(2)]}},
            {"a": {"M": {"x": n(1)}}, "b": {"L": [n(2)]}},
        ),
        ("SET a = set_add(a, <<'y'>>)", {"a": {"SS": ["x"]}}, {"a": {"SS": ["x", "y"]}}),
        ("SET a = SET_ADD(a, <<1>>)", {}, {"a": {"NS": ["1"]}}),
        ("SET a = set_delete(a, <<'x'>>)", {"a": {"SS": ["x"]}}, {}),
        ("REMOVE a", {"a": n(1)}, {}),
    ],
)
def test_update(client: Client, simple: str, clause: str, old: Item, new: Item) -> None:
    p = random_name()
    client.put_item(TableName=simple, Item={"p": s(p), **old})
    assert run(client, f"UPDATE \"{simple}\" {clause} WHERE p = '{p}'", *[n(2)] * clause.count("?"))["Items"] == []
    assert stored(client, simple, p=p) == {"p": s(p), **new}


def test_update_of_a_missing_item_makes_none(client: Client, simple: str) -> None:
    """Case 116."""
    p = random_name()
    for statement in (f"UPDATE \"{simple}\" SET a = 1 WHERE p = '{p}'", f"FROM \"{simple}\" WHERE p = '{p}' SET a = 1"):
        with refused(CONDITION_FAILED, "The conditional request failed"):
            run(client, statement)
    with refused(CONDITION_FAILED):
        run(client, f"UPDATE \"{simple}\" SET a = 1 WHERE p = '{p}' AND attribute_not_exists(p)")
    assert stored(client, simple, p=p) is None


def test_the_rest_of_where_is_a_condition(client: Client, simple: str) -> None:
    p = random_name()
    client.put_item(TableName=simple, Item={"p": s(p), "a": n(1)})
    with refused(CONDITION_FAILED):
        run(client, f"UPDATE \"{simple}\" SET b = 1 WHERE p = '{p}' AND a = 2")
    with refused(CONDITION_FAILED):
        run(client, f"DELETE FROM \"{simple}\" WHERE p = '{p}' AND NOT begins_with(a, 'x') AND a IS MISSING")
    run(client, f"UPDATE \"{simple}\" SET b = 1 WHERE a = 1 AND p = '{p}'")
    run(client, f"DELETE FROM \"{simple}\" WHERE p = '{p}' AND b IS NOT MISSING")
    assert stored(client, simple, p=p) is None
    run(client, f"DELETE FROM \"{simple}\" WHERE p = '{p}' AND b = 1")  # of a missing item it is not asked


def test_a_failed_condition_shows_the_item_where_that_is_asked_for(client: Client, simple: str) -> None:
    p = random_name()
    client.put_item(TableName=simple, Item={"p": s(p), "a": n(1)})
    for statement in ("UPDATE {} SET b = 1 WHERE p = ? AND a = 2", "DELETE FROM {} WHERE p = ? AND a = 2"):
        with pytest.raises(client.exceptions.ConditionalCheckFailedException) as raised:
            run(
                client,
                statement.format(f'"{simple}"'),
                s(p),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        assert raised.value.response["Item"] == {"p": s(p), "a": n(1)}


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("SET a = 2 WHERE p = ? RETURNING ALL OLD *", [{"p": None, "a": n(1), "m": {"M": {"x": n(1), "y": n(2)}}}]),
        ("SET a = 2 WHERE p = ? RETURNING ALL NEW *", [{"p": None, "a": n(2), "m": {"M": {"x": n(1), "y": n(2)}}}]),
        ("SET a = 2 WHERE p = ? RETURNING MODIFIED OLD *", [{"a": n(1)}]),
        ("SET m.x = 5 WHERE p = ? RETURNING MODIFIED NEW *", [{"m": {"M": {"x": n(5)}}}]),
        ("SET b = 2 WHERE p = ? RETURNING MODIFIED OLD *", []),
        ("REMOVE a WHERE p = ? RETURNING MODIFIED NEW *", []),
    ],
)
def test_update_returning(client: Client, simple: str, clause: str, expected: list[Item]) -> None:
    p = random_name()
    client.put_item(TableName=simple, Item={"p": s(p), "a": n(1), "m": {"M": {"x": n(1), "y": n(2)}}})
    answer = run(client, f'UPDATE "{simple}" {clause}', s(p))
    assert answer["Items"] == [{**item, "p": s(p)} if "p" in item else item for item in expected]


def test_delete_returning(client: Client, simple: str) -> None:
    p = random_name()
    client.put_item(TableName=simple, Item={"p": s(p), "a": n(1)})
    statement = f'DELETE FROM "{simple}" WHERE p = ? RETURNING ALL OLD *'
    assert run(client, statement, s(p))["Items"] == [{"p": s(p), "a": n(1)}]
    assert run(client, statement, s(p))["Items"] == []
    with refused(VALIDATION, "Only RETURNING ALL OLD * is allowed in DELETE statements."):
        run(client, f'DELETE FROM "{simple}" WHERE p = ? RETURNING ALL NEW *', s(p))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {} SET a = 1 WHERE p = 'x'",
        "UPDATE {} SET a = 1 WHERE p = 'x' AND c > 'x'",
        "UPDATE {} SET a = 1",
        "DELETE FROM {} WHERE p = 'x' OR c = 'x'",
        "DELETE FROM {}",
        "FROM {} SET a = 1",
    ],
)
def test_a_write_names_the_whole_key(client: Client, strings: str, statement: str) -> None:
    with refused(VALIDATION, NO_KEY):
        run(client, statement.format(f'"{strings}"'))


def test_a_key_attribute_cannot_be_updated(client: Client, strings: str) -> None:
    with refused(VALIDATION, "Cannot update attribute c. This attribute is part of the key"):
        run(client, f"UPDATE \"{strings}\" SET c = 'y' WHERE p = 'x' AND c = 'x'")


def test_equal_statements_are_several_writes(client: Client, simple: str) -> None:
    p = random_name()
    client.put_item(TableName=simple, Item={"p": s(p), "a": n(0)})
    for _ in range(3):
        run(client, f'UPDATE "{simple}" SET a = a + 1 WHERE p = ?', s(p))
    assert stored(client, simple, p=p)["a"] == n(3)


# --- reads ---


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("c = '2'", "2"),
        ("c > '2'", "34"),
        ("'2' >= c", "012"),
        ("c BETWEEN '1' AND '3' ORDER BY c DESC", "321"),
        ("c IN ['4', '1', '9']", "14"),
        ("c <> '2'", "0134"),
        ("NOT c = '2' AND n < 4", "013"),
        ("(c = '1' OR n = 3)", "13"),
        ("begins_with(c, '3')", "3"),
        ("contains(c, '0')", "0"),
        ("size(m) = 1 AND m.x[0] = 2", "2"),
        ("attribute_type(n, 'N') AND n IS NUMERIC AND n IS NOT NULL AND none IS MISSING", "01234"),
        ("n IN (1, ?)", "12"),
        ("attribute_exists(n) = false", ""),
    ],
)
def test_select_by_partition_key(client: Client, strings: str, condition: str, expected: str) -> None:
    p = filled(client, strings)
    found = items(
        client, f"SELECT c FROM \"{strings}\" WHERE p = '{p}' AND {condition}", *[n(2)] * condition.count("?")
    )
    assert found == [{"c": s(c)} for c in expected]


def test_select_of_several_partition_keys(client: Client, strings: str) -> None:
    p, q = sorted([filled(client, strings, 2), filled(client, strings, 3)])
    statement = f"SELECT p, c FROM \"{strings}\" WHERE p IN ['{q}', '{p}', '{q}', 'none'] ORDER BY p DESC, c DESC"
    found = items(client, statement)
    assert found == sorted(found, key=lambda item: (item["p"]["S"], item["c"]["S"]), reverse=True)
    assert len(found) == 5
    either = items(client, f"SELECT c FROM \"{strings}\" WHERE p = '{p}' AND c = '1' OR p = '{q}' AND n = 0")
    assert sorted(item["c"]["S"] for item in either) == ["0", "1"]


def test_select_columns(client: Client, strings: str) -> None:
    p = filled(client, strings, 1)
    where = f"FROM \"{strings}\" WHERE p = '{p}'"
    assert items(client, f"SELECT m.x {where}") == [{"x": {"L": [n(0)]}}]
    assert items(client, f'SELECT "c", n {where}') == [{"c": s("0"), "n": n(0)}]
    assert items(client, f"SELECT none {where}") == [{}]
    assert items(client, f"SELECT * {where} AND c = 'none'") == []


def test_select_of_everything(client: Client, own: str) -> None:
    p = filled(client, own, 3)
    for _ in range(20):
        filled(client, own, 1)
    every = [{"p", "c", "n", "m"}] * 23
    assert [set(item) for item in items(client, f'SELECT * FROM "{own}"')] == every
    assert len(items(client, f'SELECT * FROM "{own}" WHERE n = 0')) == 21
    assert items(client, f"SELECT c FROM \"{own}\" WHERE n = 2 AND p >= '{p}'") == [{"c": s("2")}]


@pytest.mark.parametrize("condition", ["", "WHERE p = '{p}'", "WHERE p IN ['{q}', '{p}', 'none']", "WHERE n > 1"])
def test_next_token(client: Client, own: str, condition: str) -> None:
    p, q = filled(client, own, 5), filled(client, own, 4)
    statement = f'SELECT p, c FROM "{own}" {condition}'.format(p=p, q=q)
    whole = items(client, statement)
    found: list[Item] = []
    members: dict[str, Any] = {}
    for _ in range(20):
        answer = run(client, statement, Limit=2, ConsistentRead=True, **members)
        assert len(answer["Items"]) <= 2
        found += answer["Items"]
        if "NextToken" not in answer:
            break
        members = {"NextToken": answer["NextToken"]}
    assert found == whole
    assert found


def test_a_token_goes_with_its_statement_only(client: Client, strings: str) -> None:
    p = filled(client, strings, 3)
    token = run(client, f'SELECT * FROM "{strings}" WHERE p = ?', s(p), Limit=1)["NextToken"]
    with refused(VALIDATION, "NextToken does not match request"):
        run(client, f'SELECT * FROM "{strings}" WHERE p = ?', s("other"), NextToken=token)
    with refused(VALIDATION, "NextToken does not match request"):
        run(client, f'SELECT c FROM "{strings}" WHERE p = ?', s(p), NextToken=token)
    with refused(VALIDATION, "Invalid NextToken"):
        run(client, f'SELECT * FROM "{strings}" WHERE p = ?', s(p), NextToken=token[:-8])
    with refused(VALIDATION, "length less than or equal to 32768"):
        run(client, f'SELECT * FROM "{strings}" WHERE p = ?', s(p), NextToken="x" * 32_769)


def test_capacity_of_statements(client: Client, strings: str) -> None:
    """A read costs what it walked, a write what the plain one costs."""

    def units(statement: str, **members: Any) -> float:
        answer = run(client, statement, ReturnConsumedCapacity="TOTAL", **members)["ConsumedCapacity"]
        assert answer["TableName"] == strings
        used: float = answer["CapacityUnits"]
        return used

    p = random_name()
    assert units(f"INSERT INTO \"{strings}\" VALUE {{'p': '{p}', 'c': '1', 'b': '{'x' * 1500}'}}") == 2
    for i in range(4):
        client.put_item(TableName=strings, Item={**key(p=p, c=f"x{i}"), "b": s("x" * 3000)})
    where = f"FROM \"{strings}\" WHERE p = '{p}'"
    assert units(f"SELECT c {where} AND c = 'x0'") == 0.5
    assert units(f"SELECT c {where} AND n = 1") == units(f"SELECT * {where}") == 2
    assert units(f"SELECT * {where}", ConsistentRead=True) == 4
    assert units(f"DELETE {where} AND c = 'x0'") == 3
    assert "ConsumedCapacity" not in run(client, f"SELECT * {where}")


# --- indexes ---


@pytest.fixture(scope="module")
def indexed(client: Client) -> Any:
    name = random_name()
    request = new_table(name, "p:S", "c:S")
    request["AttributeDefinitions"].append({"AttributeName": "l", "AttributeType": "S"})
    request["LocalSecondaryIndexes"] = [
        {
            "IndexName": "keys",
            "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "l", "KeyType": "RANGE"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ]
    client.create_table(**request)
    client.get_waiter("table_exists").wait(TableName=name)
    for i, sort in enumerate("ba"):
        client.put_item(TableName=name, Item={**key(p="p", c=str(i), l=sort), "v": n(i)})
    client.put_item(TableName=name, Item=key(p="p", c="none"))
    yield name
    client.delete_table(TableName=name)


def test_select_from_a_local_index(client: Client, indexed: str) -> None:
    index = f'"{indexed}"."keys"'
    assert items(client, f"SELECT * FROM {index} WHERE p = 'p'") == [key(p="p", c="1", l="a"), key(p="p", c="0", l="b")]
    assert items(client, f"SELECT c FROM {index} WHERE p = 'p' AND l > 'a'") == [key(c="0")]
    assert items(client, f"SELECT v FROM {index} WHERE p = 'p' ORDER BY l DESC") == [{"v": n(0)}, {"v": n(1)}]
    assert items(client, f"SELECT c FROM {index} WHERE v = 1") == []
    assert len(items(client, f"SELECT c FROM {index} WHERE NOT v = 1")) == 2
    first = run(client, f"SELECT c FROM {index} WHERE p = 'p'", Limit=1)
    assert items(client, f"SELECT c FROM {index} WHERE p = 'p'", NextToken=first["NextToken"]) == [key(c="0")]


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ('SELECT * FROM "{}"."none" WHERE p = \'p\'', "The table does not have the specified index"),
        ('SELECT * FROM "{}"."{}"', "The table does not have the specified index"),
        ('SELECT * FROM "{}"."keys"."x"', "A path may contain at most 2 components in the FROM clause"),
        ('SELECT * FROM "{}".""', "Path component cannot be an empty string"),
        (
            'SELECT c FROM "{}"."keys" WHERE p = \'p\' AND v IS MISSING',
            "Secondary index keys does not project one or more filter attributes: [v]",
        ),
        ('UPDATE "{}"."keys" SET a = 1 WHERE p = \'p\'', "This operation is not supported on an index"),
        ('DELETE FROM "{}"."keys" WHERE p = \'p\'', "This operation is not supported on an index"),
        ('INSERT INTO "{}"."keys" VALUE {{}}', "FROM clause may only contain a single table name"),
    ],
)
def test_wrong_uses_of_indexes(client: Client, indexed: str, statement: str, text: str) -> None:
    with refused(VALIDATION, text):
        run(client, statement.format(indexed, indexed))


# --- what is refused ---


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("SELECTT * FROMM {}", f"{NOT_WELL_FORMED}Expected data manipulation"),
        ("SELECT COUNT(*) FROM {}", "Unexpected path component at 1:8:5"),  # case 117
        ("SELECT * FROM {} WHERE " + "(" * 250 + "p = 'x'" + ")" * 250, NOT_WELL_FORMED),  # case 120
        ("SELECT * FROM {} WHERE p = 'x", NOT_WELL_FORMED),  # case 120
        ('SELECT * FROM {} WHERE p = "', NOT_WELL_FORMED),  # case 120
        ("SELECT * FROM {} WHERE p = ?", "Number of parameters in request and statement don't match."),
        ("SELECT * FROM {} WHERE p = 1", "Condition parameter type does not match schema type"),
        ("SELECT * FROM {} WHERE p = 'x' AND a < true", "operator or function: <, operand type: BOOL"),
        ("SELECT * FROM {} ORDER BY p", "Must have WHERE clause in the statement when using ORDER BY clause."),
        ("EXISTS(SELECT * FROM {} WHERE p = 'x')", "EXISTS can only be used in ExecuteTransaction write requests."),
    ],
)
def test_wrong_statements(client: Client, simple: str, statement: str, text: str) -> None:
    with refused(VALIDATION, text):
        run(client, statement.format(f'"{simple}"'))
    assert items(client, f"SELECT * FROM \"{simple}\" WHERE p = 'none'") == []


def test_the_order_of_checks(client: Client) -> None:
    none = random_name()
    with refused("ResourceNotFoundException", "Requested resource not found"):
        run(client, f'SELECT * FROM "{none}" WHERE p = ?', s())
    with refused(VALIDATION, "Incorrect operand type"):
        run(client, f'SELECT * FROM "{none}" WHERE p < ?', {"BOOL": True})
    with refused(VALIDATION, "Value '0' at 'limit' failed to satisfy constraint"):
        run(client, "nonsense", Limit=0)
