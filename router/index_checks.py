"""Checks of a CreateTable request's secondary indexes, in DynamoDB's words and order. All raise ApiError."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dynamo.errors import validation
from router.table_checks import INVALID, check_index_keys_are_defined, check_key_order

LOCAL_INDEXES_MAX = 5
GLOBAL_INDEXES_MAX = 20
GLOBAL_KEYS_MAX = 4
"""Hash attributes, and range attributes, of a global index (facts.md §2.9)."""
PROJECTED_ATTRIBUTES_MAX = 100
"""NonKeyAttributes of all indexes together."""


def check_indexes(body: dict[str, Any], defined: Sequence[str]) -> None:
    """The LocalSecondaryIndexes and GlobalSecondaryIndexes of a request whose table keys have been checked."""
    local, global_ = body.get("LocalSecondaryIndexes"), body.get("GlobalSecondaryIndexes")
    for member, indexes in (("LocalSecondaryIndexes", local), ("GlobalSecondaryIndexes", global_)):
        if indexes is not None and not indexes:
            raise validation(f"{INVALID}List of {member} is empty")
    if local:
        _check_local(local, body["KeySchema"], defined)
    if global_:
        _check_global(global_, defined, body.get("BillingMode"))
    _check_names([*(local or ()), *(global_ or ())])


def _check_local(indexes: list[dict[str, Any]], table_keys: list[dict[str, str]], defined: Sequence[str]) -> None:
    if len(table_keys) < 2:
        raise validation(
            f"{INVALID}Table KeySchema does not have a range key, which is required when specifying a "
            "LocalSecondaryIndex"
        )
    for index in indexes:
        keys, name = index["KeySchema"], index["IndexName"]
        check_index_keys_are_defined([element["AttributeName"] for element in keys], defined)
        check_key_order(keys)
        if len(keys) != 2:
            raise validation(f"{INVALID}Index KeySchema does not have a range key for index: {name}")
        table_hash, index_hash = table_keys[0]["AttributeName"], keys[0]["AttributeName"]
        if table_hash != index_hash:
            raise validation(
                f"{INVALID}Index KeySchema does not have the same leading hash key as table KeySchema for index: "
                f"{name}. index hash key: {index_hash}, table hash key: {table_hash}"
            )
        check_projection(index["Projection"])
    if len(indexes) > LOCAL_INDEXES_MAX:
        raise validation(f"{INVALID}Number of LocalSecondaryIndexes exceeds per-table limit of {LOCAL_INDEXES_MAX}")


def _check_global(indexes: list[dict[str, Any]], defined: Sequence[str], billing: str | None) -> None:
    for index in indexes:
        keys = index["KeySchema"]
        check_index_keys_are_defined([element["AttributeName"] for element in keys], defined)
        check_global_keys(keys)
        check_projection(index["Projection"])
        if billing == "PAY_PER_REQUEST" and index.get("ProvisionedThroughput"):
            raise validation(
                f"{INVALID}ProvisionedThroughput should not be specified for index: {index['IndexName']} when "
                "BillingMode is PAY_PER_REQUEST"
            )
        if billing != "PAY_PER_REQUEST" and not index.get("ProvisionedThroughput"):
            raise validation(f"{INVALID}ProvisionedThroughput is not specified for index: {index['IndexName']}")
    if len(indexes) > GLOBAL_INDEXES_MAX:
        raise validation(f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_INDEXES_MAX}")


def check_global_keys(keys: list[dict[str, str]]) -> None:
    """Up to four HASH elements, then up to four RANGE elements."""
    types = [element["KeyType"] for element in keys]
    hashes = types.count("HASH")
    if len(keys) <= 2 and hashes < 2:
        check_key_order(keys)
    elif types != sorted(types) or not hashes:
        raise validation("Invalid KeySchema: HASH elements must come before RANGE elements")
    elif hashes > GLOBAL_KEYS_MAX or len(keys) - hashes > GLOBAL_KEYS_MAX:
        raise validation(f"Invalid KeySchema: At most {GLOBAL_KEYS_MAX} HASH and {GLOBAL_KEYS_MAX} RANGE elements")


def check_projection(projection: dict[str, Any]) -> None:
    """What an index takes of items besides their keys."""
    kind, attributes = projection.get("ProjectionType"), projection.get("NonKeyAttributes")
    if kind is None:
        raise validation(f"{INVALID}Unknown ProjectionType: null")
    if kind == "INCLUDE" and attributes is None:
        raise validation(f"{INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
    if kind != "INCLUDE" and attributes is not None:
        raise validation(f"{INVALID}ProjectionType is {kind}, but NonKeyAttributes is specified")
    if attributes and len(set(attributes)) != len(attributes):
        raise validation(f"{INVALID}Duplicate NonKeyAttributes: [{', '.join(attributes)}]")


def _check_names(indexes: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    for index in indexes:
        if index["IndexName"] in seen:
            raise validation(f"{INVALID}Duplicate index name: {index['IndexName']}")
        seen.add(index["IndexName"])
    check_projected([len(index["Projection"].get("NonKeyAttributes") or ()) for index in indexes])


def check_projected(counts: Iterable[int]) -> None:
    """How many NonKeyAttributes each index of a table has."""
    if sum(counts) > PROJECTED_ATTRIBUTES_MAX:
        raise validation(
            f"{INVALID}Number of NonKeyAttributes of all indexes exceeds the per-table limit of "
            f"{PROJECTED_ATTRIBUTES_MAX}"
        )
