"""Shapes of requests: types first, then constraints, in DynamoDB's words; and the model that they come from."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import botocore
import pytest

from dynamo.errors import ApiError
from router.model import model, targets
from router.shape_errors import VALUE_TEXT_MAX, failed

ROOT = Path(__file__).resolve().parents[2]
NULL = "failed to satisfy constraint: Member must not be null"
ATTRIBUTE_MAP = "java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>"
STRUCTURE = "Start of structure or map found where not expected"
HASH = {"AttributeName": "pk", "KeyType": "HASH"}
DEFINED = {"AttributeName": "pk", "AttributeType": "S"}


def validate(operation: str, body: dict[str, Any]) -> dict[str, Any]:
    """The body once it is validated."""
    targets()[f"DynamoDB_20120810.{operation}".encode()].validate(body)
    return body


def error(operation: str, body: dict[str, Any]) -> ApiError:
    """The error that a body leads to."""
    with pytest.raises(ApiError) as raised:
        validate(operation, body)
    return raised.value


# operation, body, text of the SerializationException
WRONG_TYPES = [
    ("GetItem", {"TableName": 23}, "NUMBER_VALUE cannot be converted to String"),
    ("GetItem", {"TableName": -2147483648}, "NUMBER_VALUE cannot be converted to String"),
    ("GetItem", {"TableName": 34.56}, "DECIMAL_VALUE cannot be converted to String"),
    ("GetItem", {"TableName": True}, "TRUE_VALUE cannot be converted to String"),
    ("GetItem", {"TableName": False}, "FALSE_VALUE cannot be converted to String"),
    ("GetItem", {"TableName": []}, "Unrecognized collection type class java.lang.String"),
    ("GetItem", {"TableName": {}}, STRUCTURE),
    ("GetItem", {"ConsistentRead": "23"}, "Unexpected token received from parser"),
    ("GetItem", {"ConsistentRead": 23}, "NUMBER_VALUE cannot be converted to Boolean"),
    ("GetItem", {"ConsistentRead": 34.5}, "DECIMAL_VALUE cannot be converted to Boolean"),
    ("GetItem", {"ConsistentRead": []}, "Unrecognized collection type class java.lang.Boolean"),
    ("GetItem", {"ConsistentRead": {}}, STRUCTURE),
    ("Scan", {"Limit": "23"}, "STRING_VALUE cannot be converted to Integer"),
    ("Scan", {"Limit": True}, "TRUE_VALUE cannot be converted to Integer"),
    ("Scan", {"Limit": []}, "Unrecognized collection type class java.lang.Integer"),
    ("Scan", {"Limit": {}}, STRUCTURE),
    ("Scan", {"Limit": 1 << 31}, "NUMBER_VALUE cannot be converted to Integer"),
    ("Scan", {"Limit": 1e300}, "DECIMAL_VALUE cannot be converted to Integer"),
    ("GetItem", {"Key": "x"}, "Unexpected field type"),
    ("GetItem", {"Key": []}, f"Unrecognized collection type {ATTRIBUTE_MAP}"),
    ("GetItem", {"Key": {"pk": "x"}}, "Unexpected value type in payload"),
    (
        "GetItem",
        {"Key": {"pk": []}},
        "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue",
    ),
    ("GetItem", {"AttributesToGet": "x"}, "Unexpected field type"),
    ("GetItem", {"AttributesToGet": {}}, STRUCTURE),
    ("GetItem", {"AttributesToGet": [1]}, "NUMBER_VALUE cannot be converted to String"),
    ("GetItem", {"ExpressionAttributeNames": {"#a": 1}}, "NUMBER_VALUE cannot be converted to String"),
    ("CreateTable", {"KeySchema": ["x"]}, "Unexpected value type in payload"),
    ("CreateTable", {"ProvisionedThroughput": "x"}, "Unexpected field type"),
    (
        "CreateTable",
        {"ProvisionedThroughput": []},
        "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.ProvisionedThroughput",
    ),
    (
        "CreateTable",
        {"ProvisionedThroughput": {"ReadCapacityUnits": "1"}},
        "STRING_VALUE cannot be converted to Long",
    ),
]


@pytest.mark.parametrize(("operation", "body", "text"), WRONG_TYPES)
def test_a_wrong_type_is_a_serialization_exception(operation: str, body: dict[str, Any], text: str) -> None:
    found = error(operation, body)
    assert (found.type, found.message) == ("SerializationException", text)


def test_types_come_before_constraints() -> None:
    assert error("PutItem", {"TableName": "", "Item": []}).type == "SerializationException"


def test_lists_of_lists_and_maps_of_lists_leak_a_cast_error_as_on_dynamodb() -> None:
    found = error("BatchGetItem", {"RequestItems": {"abc": {"Keys": ["x"]}}})
    assert found.message.startswith("class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast")
    assert error("BatchWriteItem", {"RequestItems": {"abc": "x"}}).message == found.message


# operation, body, text of the ValidationException after its "N validation error(s) detected: "
FAILED_CONSTRAINTS = [
    ("PutItem", {"TableName": "abc"}, [f"Value null at 'item' {NULL}"]),
    ("PutItem", {"Item": {}}, [f"Value null at 'tableName' {NULL}"]),
    (
        "PutItem",
        {"TableName": "", "Item": {}, "ReturnValues": "BAD"},
        ["Value '' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 1"],
    ),
    (
        "PutItem",
        {"TableName": "a" * 256, "Item": {}},
        [
            f"Value '{'a' * 256}' at 'tableName' failed to satisfy constraint: "
            "Member must have length less than or equal to 255"
        ],
    ),
    (
        "PutItem",
        {"TableName": "bad table!@#", "Item": {}},
        [
            "Value 'bad table!@#' at 'tableName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
        ],
    ),
    (
        "PutItem",
        {
            "TableName": "abc",
            "Item": {},
            "ReturnValues": "INVALID",
            "ReturnConsumedCapacity": "INVALID",
            "ReturnItemCollectionMetrics": "INVALID",
        },
        [
            "Value 'INVALID' at 'returnConsumedCapacity' failed to satisfy constraint: "
            "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
            "Value 'INVALID' at 'returnValues' failed to satisfy constraint: "
            "Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]",
            "Value 'INVALID' at 'returnItemCollectionMetrics' failed to satisfy constraint: "
            "Member must satisfy enum value set: [SIZE, NONE]",
        ],
    ),
    (
        "Scan",
        {"TableName": "abc", "Limit": 0},
        ["Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"],
    ),
    (
        "Query",
        {"TableName": "abc", "Limit": 0},
        ["Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1"],
    ),
    (
        "Query",
        {"TableName": "abc", "Select": "INVALID_VALUE"},
        [
            "Value 'INVALID_VALUE' at 'select' failed to satisfy constraint: Member must satisfy enum value set: "
            "[SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]"
        ],
    ),
    (
        "ListTables",
        {"Limit": 101, "ExclusiveStartTableName": "a;"},
        [
            "Value 'a;' at 'exclusiveStartTableName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
            "Value 'a;' at 'exclusiveStartTableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 3",
            "Value '101' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100",
        ],
    ),
    (
        "CreateTable",
        {"TableName": "ab", "KeySchema": []},
        ["Value 'ab' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3"],
    ),
    (
        "CreateTable",
        {"TableName": "abc", "KeySchema": [HASH]},
        [f"Value null at 'attributeDefinitions' {NULL}"],
    ),
    (
        "CreateTable",
        {"TableName": "abc", "AttributeDefinitions": [DEFINED], "KeySchema": [{"KeyType": "INVALID"}]},
        [
            f"Value null at 'keySchema.1.member.attributeName' {NULL}",
            "Value 'INVALID' at 'keySchema.1.member.keyType' failed to satisfy constraint: "
            "Member must satisfy enum value set: [HASH, RANGE]",
        ],
    ),
    (
        "CreateTable",
        {
            "TableName": "abc",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "INVALID"}],
            "KeySchema": [HASH],
        },
        [
            "Value 'INVALID' at 'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: "
            "Member must satisfy enum value set: [B, N, S]"
        ],
    ),
    (
        "CreateTable",
        {"TableName": "abc", "AttributeDefinitions": [DEFINED], "KeySchema": [HASH, HASH, HASH]},
        [
            "Value '[KeySchemaElement(attributeName=pk, keyType=HASH), "
            "KeySchemaElement(attributeName=pk, keyType=HASH), "
            "KeySchemaElement(attributeName=pk, keyType=HASH)]' at 'keySchema' failed to satisfy constraint: "
            "Member must have length less than or equal to 2"
        ],
    ),
    (
        "BatchGetItem",
        {"RequestItems": {"abc": {"Keys": [{}] * 101}}},
        [
            "Value at 'RequestItems.abc.member.Keys' failed to satisfy constraint: "
            "Member must have length less than or equal to 100"
        ],
    ),
    (
        "BatchWriteItem",
        {"RequestItems": {"abc": []}},
        [
            "Value '{abc=[]}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: "
            "[Member must have length less than or equal to 25, Member must have length greater than or equal to 1]"
        ],
    ),
]


@pytest.mark.parametrize(("operation", "body", "texts"), FAILED_CONSTRAINTS)
def test_failed_constraints_are_gathered(operation: str, body: dict[str, Any], texts: list[str]) -> None:
    found = error(operation, body)
    plural = "error" if len(texts) == 1 else "errors"
    assert found.type == "ValidationException"
    assert found.message == f"{len(texts)} validation {plural} detected: {'; '.join(texts)}"


@pytest.mark.parametrize("operation", ["CreateTable", "DescribeTable", "UpdateTable", "DeleteTable"])
def test_operations_on_tables_word_a_missing_name_their_own_way(operation: str) -> None:
    text = "The parameter 'TableName' is required but was not present in the request"
    assert error(operation, {}).message == text


@pytest.mark.parametrize("operation", ["BatchGetItem", "BatchWriteItem"])
def test_an_empty_batch(operation: str) -> None:
    assert error(operation, {"RequestItems": {}}).message == f"The requestItems parameter is required for {operation}"


def test_ten_errors_at_the_most() -> None:
    bad = {"AttributeName": "pk", "AttributeType": "X"}
    found = error("CreateTable", {"TableName": "abc", "KeySchema": [HASH], "AttributeDefinitions": [bad] * 30})
    assert found.message.startswith("10 validation errors detected: ")
    assert found.message.count("'attributeDefinitions.") == 10


def test_a_wrong_value_is_repeated_in_part_only() -> None:
    assert len(error("PutItem", {"TableName": "a" * 100_000, "Item": {}}).message) < 5_000


def test_26_writes_of_one_table_are_too_many() -> None:
    put = {"PutRequest": {"Item": {"pk": {"S": "x"}}}}
    message = error("BatchWriteItem", {"RequestItems": {"abc": [put] * 26}}).message
    assert message.startswith("1 validation error detected: Value '{abc=[WriteRequest(putRequest=PutRequest(item={pk=")
    assert validate("BatchWriteItem", {"RequestItems": {"abc": [put] * 25}})


def test_a_deeply_nested_value_does_not_matter_to_an_error() -> None:
    deep: dict[str, Any] = {"S": "x"}
    for _ in range(5_000):
        deep = {"M": {"a": deep}}
    message = error("BatchWriteItem", {"RequestItems": {"abc": [{"PutRequest": {"Item": {"pk": deep}}}] * 26}}).message
    assert "PutRequest(item={pk=AttributeValue(m=...)})" in message


def test_nulls_are_absent_and_fractions_cut_off() -> None:
    body = {"TableName": "abc", "Limit": 1.9, "IndexName": None, "Unknown": {"x": 1}}
    assert validate("Scan", body) == {"TableName": "abc", "Limit": 1, "Unknown": {"x": 1}}


def test_a_null_attribute_value_is_left_to_the_check_of_values() -> None:
    body = {"TableName": "abc", "Item": {"a": None}}
    assert validate("PutItem", body)["Item"] == {"a": {}}


@pytest.mark.parametrize("name", ["a", "a" * 255, "arn:aws:dynamodb:us-east-1:000000000000:table/abc"])
def test_names_that_items_are_found_by(name: str) -> None:
    assert validate("GetItem", {"TableName": name, "Key": {}})


def test_the_model_is_what_this_botocore_says() -> None:
    generator = runpy.run_path(str(ROOT / "tools" / "generate_model.py"))
    content = (ROOT / "router" / "model.json").read_text()
    if json.loads(content)["botocore"] != botocore.__version__:
        pytest.skip("model.json is of another version of botocore")
    assert content == generator["render"](generator["generate"]())


def test_the_model_has_every_operation() -> None:
    sizes = {prefix: len(service["operations"]) for prefix, service in model()["services"].items()}
    assert sizes == {"DynamoDB_20120810": 62, "DynamoDBStreams_20120810": 4}
    assert len(targets()) == 66


def test_a_long_list_is_cut_and_still_ends_as_one() -> None:
    text = failed("[" + ", ".join(["Put(tableName=t)"] * 1_000) + "]", "transactItems", "Member must be short")
    assert text.startswith("Value '[Put(tableName=t), ")
    assert "]' at 'transactItems' failed" in text
    assert len(text) < VALUE_TEXT_MAX + 200


@pytest.mark.parametrize("table", [{}, {"TableName": None}])
def test_a_member_of_a_transaction_names_its_table(table: dict[str, Any]) -> None:
    members = {"TransactItems": [{"Get": {"Key": {"pk": {"S": "x"}}, **table}}]}
    found = error("TransactGetItems", members)
    text = f"1 validation error detected: Value null at 'transactItems.1.member.get.tableName' {NULL}"
    assert (found.type, found.message) == ("ValidationException", text)
