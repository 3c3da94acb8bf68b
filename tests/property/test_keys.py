"""Order of encoded keys against order of values."""

from base64 import b64decode, b64encode
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamo import keys, number
from dynamo.table import KeySchema, ScalarType

from .values import binaries, names, numbers, texts

_awkward = st.text(st.sampled_from("\x00\x01\x7f\x80\xff\uffff\U0001f600"), max_size=20)
_zeros_and_ones = st.lists(st.sampled_from([0, 1, 0xFE, 0xFF]), max_size=20).map(
    lambda data: b64encode(bytes(data)).decode()
)

CONTENTS: dict[ScalarType, st.SearchStrategy[str]] = {
    "S": texts | _awkward,
    "B": binaries | _zeros_and_ones,
    "N": numbers,
}


def order(kind: str, content: str) -> Any:
    """What DynamoDB sorts by."""
    if kind == "N":
        return Fraction(content)
    return content.encode() if kind == "S" else b64decode(content)


_typed_pairs = st.sampled_from(list(CONTENTS)).flatmap(
    lambda kind: st.tuples(st.just(kind), CONTENTS[kind], CONTENTS[kind])
)


@given(_typed_pairs)
def test_sort_keys_are_in_the_order_of_their_values(pair: tuple[ScalarType, str, str]) -> None:
    kind, left, right = pair
    a, b = keys.encode_sort(kind, left), keys.encode_sort(kind, right)
    assert (a < b) == (order(kind, left) < order(kind, right))
    assert (a == b) == (order(kind, left) == order(kind, right))


@given(_typed_pairs)
def test_range_values_of_indexes_are_too(pair: tuple[ScalarType, str, str]) -> None:
    kind, left, right = pair
    a, b = keys.encode_range(kind, left), keys.encode_range(kind, right)
    assert (a < b) == (order(kind, left) < order(kind, right))
    assert a == b or not a.startswith(b)


_ranges = st.lists(st.sampled_from(list(CONTENTS)), min_size=1, max_size=4).flatmap(
    lambda kinds: st.tuples(
        st.just(kinds),
        st.tuples(*(CONTENTS[kind] for kind in kinds)),
        st.tuples(*(CONTENTS[kind] for kind in kinds)),
    )
)


@given(_ranges)
def test_several_range_values_sort_one_after_the_other(
    case: tuple[list[ScalarType], tuple[str, ...], tuple[str, ...]],
) -> None:
    kinds, left, right = case

    def encoded(contents: tuple[str, ...]) -> bytes:
        return b"".join(map(keys.encode_range, kinds, contents))

    def wanted(contents: tuple[str, ...]) -> list[Any]:
        return list(map(order, kinds, contents))

    assert (encoded(left) < encoded(right)) == (wanted(left) < wanted(right))


@given(_ranges)
def test_range_values_decode_one_by_one(case: tuple[list[ScalarType], tuple[str, ...], tuple[str, ...]]) -> None:
    kinds, contents, _ = case
    data = b"".join(map(keys.encode_range, kinds, contents))
    at = 0
    for kind, content in zip(kinds, contents, strict=True):
        value, at = keys.decode_range(data, at)
        assert value == keys.encode_sort(kind, content)
    assert at == len(data)


@given(CONTENTS["N"])
def test_equal_numbers_are_one_key(text: str) -> None:
    written = text + ("0" if "." in text else ".0")
    assert keys.partition_hash("N", number.normalise(written)) == keys.partition_hash("N", text)


@given(st.binary(min_size=1, max_size=6), st.binary(max_size=6))
def test_keys_with_a_prefix_lie_below_its_end(prefix: bytes, other: bytes) -> None:
    end = keys.prefix_end(prefix)
    assert prefix <= prefix + other < end
    if other >= prefix and not other.startswith(prefix):
        assert other >= end


@given(st.binary(max_size=6), st.binary(max_size=6))
def test_nothing_lies_between_a_key_and_the_next(key: bytes, other: bytes) -> None:
    assert not key < other < keys.next_key(key)


@given(st.binary(min_size=16, max_size=16), st.integers(1, 64))
def test_every_hash_is_in_exactly_one_range(value: bytes, count: int) -> None:
    assert sum(low <= value <= high for low, high in keys.split_hashes(count)) == 1


@given(names, CONTENTS["S"], CONTENTS["N"])
def test_row_keys_of_one_partition_share_their_hash(name: str, partition: str, sort: str) -> None:
    schema = KeySchema(hash=(name,), range=(name + "2",))
    types: dict[str, ScalarType] = {name: "S", name + "2": "N"}
    key = keys.row_key(schema, types, {name: {"S": partition}, name + "2": {"N": sort}})
    assert key.startswith(keys.partition_hash("S", partition))
    assert number.decode_ordered(key[keys.HASH_SIZE :]) == sort
