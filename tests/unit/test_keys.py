"""Keys: DynamoDB's checks in its words, and every limit taken to its last byte."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import lmdb
import pytest

from dynamo import keys, number
from dynamo.errors import ApiError
from dynamo.table import Index, KeySchema, ScalarType, Table

INVALID = "One or more parameter values were invalid: "
NOT_VALID = "One or more parameter values are not valid. "
MISMATCH = "The provided key element does not match the schema"
HASH_TOO_LARGE = INVALID + "Size of hashkey has exceeded the maximum size limit of2048 bytes"
RANGE_TOO_LARGE = INVALID + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"

LMDB_KEY_SIZE_MAX = 1978


def table(
    hash_type: ScalarType = "S",
    range_type: ScalarType | None = "N",
    local_indexes: tuple[Index, ...] = (),
    global_indexes: tuple[Index, ...] = (),
) -> Table:
    types: dict[str, ScalarType] = {"pk": hash_type, "gs": "S", "gb": "B", "gn": "N"}
    if range_type:
        types["sk"] = range_type
    schema = KeySchema(hash=("pk",), range=("sk",) if range_type else ())
    return Table(
        id=1,
        name="t",
        schema_version=1,
        attribute_types=types,
        keys=schema,
        created=0.0,
        local_indexes=local_indexes,
        global_indexes=global_indexes,
    )


def index(name: str, hash_name: str, *range_names: str) -> Index:
    return Index(name=name, keys=KeySchema(hash=(hash_name,), range=range_names), projection="ALL")


def binary(size: int) -> str:
    return b64encode(b"\xff" * size).decode()


# --- Key parameters ---


@pytest.mark.parametrize(
    "key",
    [
        {},
        {"pk": {"S": "a"}},
        {"sk": {"N": "1"}},
        {"pk": {"S": "a"}, "other": {"N": "1"}},
        {"pk": {"S": "a"}, "sk": {"N": "1"}, "other": {"N": "1"}},
        {"pk": {"N": "1"}, "sk": {"N": "1"}},
        {"pk": {"S": "a"}, "sk": {"S": "1"}},
        {"pk": {"S": "a"}, "sk": {"L": []}},
    ],
)
def test_a_key_must_be_exactly_the_key_attributes(key: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        keys.validate_key(table(), key)
    assert (caught.value.type, caught.value.message) == ("ValidationException", MISMATCH)


@pytest.mark.parametrize(
    ("hash_type", "key", "message"),
    [
        (
            "S",
            {"S": ""},
            NOT_VALID + "The AttributeValue for a key attribute cannot contain an empty string value. Key: pk",
        ),
        (
            "B",
            {"B": ""},
            NOT_VALID + "The AttributeValue for a key attribute cannot contain an empty binary value. Key: pk",
        ),
    ],
)
def test_keys_are_not_empty(hash_type: ScalarType, key: dict[str, str], message: str) -> None:
    for check in (keys.validate_key, keys.validate_item_key):
        with pytest.raises(ApiError) as caught:
            check(table(hash_type, None), {"pk": key})
        assert caught.value.message == message


# --- keys within items ---


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"sk": {"N": "1"}}, "Missing the key pk in the item"),
        ({"pk": {"S": "a"}, "x": {"N": "1"}}, "Missing the key sk in the item"),
        ({"pk": {"N": "1"}, "sk": {"N": "1"}}, "Type mismatch for key pk expected: S actual: N"),
        ({"pk": {"S": "a"}, "sk": {"M": {}}}, "Type mismatch for key sk expected: N actual: M"),
    ],
)
def test_an_item_must_hold_its_key(item: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        keys.validate_item_key(table(), item)
    assert (caught.value.type, caught.value.message) == ("ValidationException", INVALID + message)


def test_an_item_may_hold_more_than_its_key() -> None:
    item = {"pk": {"S": "a"}, "sk": {"N": "1"}, "x": {"S": ""}}
    keys.validate_item_key(table(), item)
    assert keys.key_of(table(), item) == {"pk": {"S": "a"}, "sk": {"N": "1"}}


@pytest.mark.parametrize("check", [keys.validate_key, keys.validate_item_key])
@pytest.mark.parametrize(
    ("kind", "within", "beyond"),
    [
        ("S", "x" * 2048, "x" * 2049),
        ("S", "é" * 1024, "é" * 1024 + "x"),
        ("S", "\U0001f600" * 512, "\U0001f600" * 512 + "x"),
        ("B", binary(2048), binary(2049)),
    ],
)
def test_partition_keys_reach_2048_bytes(check: Any, kind: ScalarType, within: str, beyond: str) -> None:
    check(table(kind, None), {"pk": {kind: within}})
    with pytest.raises(ApiError) as caught:
        check(table(kind, None), {"pk": {kind: beyond}})
    assert caught.value.message == HASH_TOO_LARGE


@pytest.mark.parametrize("check", [keys.validate_key, keys.validate_item_key])
@pytest.mark.parametrize(
    ("kind", "within", "beyond"),
    [
        ("S", "x" * 1024, "x" * 1025),
        ("S", "é" * 512, "é" * 512 + "x"),
        ("S", "\U0001f600" * 256, "\U0001f600" * 256 + "x"),
        ("B", binary(1024), binary(1025)),
    ],
)
def test_sort_keys_reach_1024_bytes(check: Any, kind: ScalarType, within: str, beyond: str) -> None:
    check(table("S", kind), {"pk": {"S": "a"}, "sk": {kind: within}})
    with pytest.raises(ApiError) as caught:
        check(table("S", kind), {"pk": {"S": "a"}, "sk": {kind: beyond}})
    assert caught.value.message == RANGE_TOO_LARGE


def test_the_longest_numbers_are_keys() -> None:
    for text in ("-" + "9" * 38 + "0" * 88, "-0." + "0" * 92 + "1" * 38):
        assert number.normalise(text) == text
        keys.validate_key(table("N", "N"), {"pk": {"N": text}, "sk": {"N": text}})


# --- index keys ---


INDEXES = (index("i_s", "gs"), index("i_b", "gb", "gs"), index("a_n", "gn"))


def index_refusal(item: dict[str, Any], before: dict[str, Any] | None = None) -> str:
    with pytest.raises(ApiError) as caught:
        keys.validate_index_keys(table(global_indexes=INDEXES), item, before)
    assert caught.value.type == "ValidationException"
    return caught.value.message


def test_index_keys_may_be_missing() -> None:
    keys.validate_index_keys(table(global_indexes=INDEXES), {"pk": {"S": "a"}})
    keys.validate_index_keys(table(), {"gs": {"N": "1"}})  # no index, no rule


@pytest.mark.parametrize(("value", "actual"), [({"N": "1"}, "N"), ({"L": []}, "L"), ({"NULL": True}, "NULL")])
def test_index_keys_have_the_declared_type(value: dict[str, Any], actual: str) -> None:
    item = {"gs": value, "gn": {"N": "1"}}
    expected = f"{INVALID}Type mismatch for Index Key gs Expected: S Actual: {actual} IndexName: i_b"
    assert index_refusal(item) == expected
    assert index_refusal(item, before={}) == expected


def test_the_first_index_by_name_is_reported() -> None:
    assert "IndexName: a_n" in index_refusal({"gs": {"N": "1"}, "gn": {"S": "1"}})


def test_local_indexes_are_checked_too() -> None:
    described = table(local_indexes=(index("l", "pk", "gn"),))
    with pytest.raises(ApiError, match="Index Key gn Expected: N Actual: S IndexName: l"):
        keys.validate_index_keys(described, {"pk": {"S": "a"}, "gn": {"S": "x"}})


@pytest.mark.parametrize(("name", "value", "word"), [("gs", {"S": ""}, "string"), ("gb", {"B": ""}, "binary")])
def test_index_keys_are_not_empty(name: str, value: dict[str, str], word: str) -> None:
    empty = f"The AttributeValue for a key attribute cannot contain an empty {word} value."
    assert index_refusal({name: value}) == (
        f"{NOT_VALID}A value specified for a secondary index key is not supported. "
        f"{empty} IndexName: i_b, IndexKey: {name}"
    )
    assert index_refusal({name: value}, before={}) == (
        f"{NOT_VALID}The update expression attempted to update a secondary index key to a value that is not supported. "
        f"{empty}"
    )


def test_an_update_does_not_answer_for_what_it_left_alone() -> None:
    old = {"gs": {"N": "1"}, "x": {"S": "a"}}
    keys.validate_index_keys(table(global_indexes=INDEXES), {**old, "x": {"S": "b"}}, before=old)


def test_index_keys_have_the_limits_of_keys() -> None:
    described = table(global_indexes=INDEXES)
    whole = {"gb": {"B": binary(2048)}, "gs": {"S": "x" * 1024}}
    keys.validate_index_keys(described, whole)
    assert index_refusal({**whole, "gb": {"B": binary(2049)}}) == HASH_TOO_LARGE
    assert index_refusal({**whole, "gs": {"S": "x" * 1025}}) == RANGE_TOO_LARGE


# --- row keys ---


def test_a_row_key_is_the_hash_and_the_sort_key() -> None:
    described = table()
    item = {"pk": {"S": "a"}, "sk": {"N": "42"}, "x": {"S": "y"}}
    key = keys.row_key(described.keys, described.attribute_types, item)
    assert key == keys.partition_hash("S", "a") + number.encode_ordered("42")
    alone = table("S", None)
    assert keys.row_key(alone.keys, alone.attribute_types, item) == keys.partition_hash("S", "a")


def test_hashes_depend_on_type_and_value_alone() -> None:
    # These are on disks: a change of the function would lose every item.
    assert keys.partition_hash("S", "a").hex() == "337cbd93a7301bae453e567a5dac864c"
    distinct = {keys.partition_hash(*value) for value in (("S", "1"), ("N", "1"), ("B", "MQ=="), ("S", "2"))}
    assert len(distinct) == 4
    assert all(len(value) == keys.HASH_SIZE for value in distinct)


def test_an_index_row_key_ends_with_the_hash_of_the_base_key() -> None:
    schema = KeySchema(hash=("gs",), range=("gn",))
    types = table().attribute_types
    item = {"gs": {"S": "a"}, "gn": {"N": "1"}}
    first = keys.index_row_key(schema, types, item, b"base key 1")
    second = keys.index_row_key(schema, types, item, b"base key 2")
    assert first is not None
    assert second is not None
    assert first[: -keys.HASH_SIZE] == keys.partition_hash("S", "a") + keys.encode_range("N", "1")
    assert first[-keys.HASH_SIZE :] == keys.base_hash(b"base key 1")
    assert first != second


@pytest.mark.parametrize(
    "item",
    [
        {"gs": {"S": "a"}},
        {"gn": {"N": "1"}},
        {"gs": {"N": "1"}, "gn": {"N": "1"}},
        {"gs": {"S": ""}, "gn": {"N": "1"}},
        {"gs": {"S": "x" * 2049}, "gn": {"N": "1"}},
    ],
)
def test_an_index_leaves_out_items_without_a_key_for_it(item: dict[str, Any]) -> None:
    schema = KeySchema(hash=("gs",), range=("gn",))
    assert keys.index_row_key(schema, table().attribute_types, item, b"base") is None


def test_several_partition_attributes_are_hashed_apart() -> None:
    schema = KeySchema(hash=("a", "b"))
    one = keys.index_partition_hash(schema, {"a": {"S": "xSy"}, "b": {"S": "z"}})
    other = keys.index_partition_hash(schema, {"a": {"S": "x"}, "b": {"S": "ySz"}})
    assert one != other


def test_a_whole_range_value_takes_1161_bytes() -> None:
    assert len(keys.encode_range("S", "x" * 1024)) == 1161


def test_every_row_key_fits_into_lmdb(tmp_path: Path) -> None:
    """The largest keys there can be are stored and found, with the byte that a store may put before them."""
    types: dict[str, ScalarType] = {"h": "B", "r1": "B", "r2": "S", "r3": "B", "r4": "S"}
    item = {
        "h": {"B": binary(2048)},
        "r1": {"B": binary(1024 - 3 * 8)},
        "r2": {"S": "x" * 8},
        "r3": {"B": binary(8)},
        "r4": {"S": "x" * 8},
    }
    ranges = KeySchema(hash=("h",), range=("r1", "r2", "r3", "r4"))
    in_table = keys.row_key(KeySchema(("h",), ("r1",)), types, {**item, "r1": {"B": binary(1024)}})
    in_index = keys.index_row_key(ranges, types, item, in_table)
    assert in_index is not None
    assert len(in_table) == 16 + 1024
    assert len(in_index) == keys.ROW_KEY_SIZE_MAX
    assert max(in_table, in_index) < keys.AFTER_ALL_KEYS
    with lmdb.open(str(tmp_path), lib_version=1, map_size=1 << 20) as environment:
        assert environment.max_key_size() >= LMDB_KEY_SIZE_MAX
        with environment.begin(write=True) as transaction:
            for key in (in_table, in_index, keys.AFTER_ALL_KEYS, b"k" * LMDB_KEY_SIZE_MAX):
                assert transaction.put(b"\x00" + key[: LMDB_KEY_SIZE_MAX - 1], key)
        with environment.begin() as transaction:
            for key in (in_table, in_index, keys.AFTER_ALL_KEYS):
                assert transaction.get(b"\x00" + key) == key


# --- ranges ---


@pytest.mark.parametrize("count", [1, 2, 3, 7, 1000])
def test_split_hashes_cover_all_hashes_evenly(count: int) -> None:
    ranges = keys.split_hashes(count)
    assert len(ranges) == count
    assert ranges[0][0] == bytes(16)
    assert ranges[-1][1] == b"\xff" * 16
    numbers = [(int.from_bytes(low), int.from_bytes(high)) for low, high in ranges]
    assert all(numbers[i][1] + 1 == numbers[i + 1][0] for i in range(count - 1))
    sizes = [high - low for low, high in numbers]
    assert max(sizes) - min(sizes) <= 1


def test_prefix_end_carries_over_bytes_that_are_full() -> None:
    assert keys.prefix_end(b"ab") == b"ac"
    assert keys.prefix_end(b"a\xff\xff") == b"b"
    assert keys.prefix_end(b"\xff\xff") == keys.AFTER_ALL_KEYS
    assert keys.prefix_end(b"") == keys.AFTER_ALL_KEYS
    assert keys.next_key(b"ab") == b"ab\x00"
