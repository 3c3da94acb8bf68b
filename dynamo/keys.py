"""Keys: what an item's place is, as bytes whose order is the order of a Query, and what a key may not be.

A table's row key is 16 bytes of hash of the partition key and the encoded sort key. An index's row key is 16 bytes of
hash, each range value in a self-delimiting form, and 16 bytes of hash of the base table's row key. These encodings are
stored: they never change.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from dynamo import number
from dynamo.errors import ApiError, validation
from dynamo.item import binary_size, text_size
from dynamo.table import Index, KeySchema, ScalarType, Table
from dynamo.values import AttributeValue, Item

HASH_SIZE = 16
HASH_KEY_SIZE_MAX = 2048
"""Bytes of a partition key's value; of all of them where an index has several."""

RANGE_KEY_SIZE_MAX = 1024
"""Bytes of a sort key's value; of all of them where an index has several."""

RANGE_ATTRIBUTES_MAX = 4
"""Range attributes of a global secondary index."""

_GROUP = 8
_GROUP_FULL = 0xFF
_COUNTS = [bytes((counted,)) for counted in range(_GROUP)]
_HASH_KEY = b"trizone partition"  # fixed: it keeps these hashes apart from other uses of the function
_HASH_LAST = (1 << 8 * HASH_SIZE) - 1

# Each range value may end with one group that is not full.
ROW_KEY_SIZE_MAX = 2 * HASH_SIZE + (RANGE_KEY_SIZE_MAX // _GROUP + RANGE_ATTRIBUTES_MAX) * (_GROUP + 1)
"""Bytes that no row key of a table or index exceeds."""

AFTER_ALL_KEYS = b"\xff" * (ROW_KEY_SIZE_MAX + 1)


# --- hashes ---


def partition_hash(kind: str, content: str) -> bytes:
    """16 bytes of hash of a partition key: its type tag and its canonical content."""
    return blake2b(kind.encode() + _ordered(kind, content), digest_size=HASH_SIZE, key=_HASH_KEY).digest()


def index_partition_hash(schema: KeySchema, item: Item) -> bytes:
    """16 bytes of hash of all partition key attributes of an index; of one, the same as `partition_hash`."""
    if len(schema.hash) == 1:
        return partition_hash(*_scalar(item[schema.hash[0]]))
    digest = blake2b(digest_size=HASH_SIZE, key=_HASH_KEY)
    for name in schema.hash:
        kind, content = _scalar(item[name])
        value = _ordered(kind, content)
        digest.update(kind.encode() + len(value).to_bytes(4, "big") + value)
    return digest.digest()


def split_hashes(count: int) -> list[tuple[bytes, bytes]]:
    """The space of hashes cut into `count` ranges of equal size: first and last hash of each, both inclusive."""
    starts = [part * (_HASH_LAST + 1) // count for part in range(count)]
    ends = [start - 1 for start in starts[1:]] + [_HASH_LAST]
    return [
        (low.to_bytes(HASH_SIZE, "big"), high.to_bytes(HASH_SIZE, "big"))
        for low, high in zip(starts, ends, strict=True)
    ]


# --- row keys ---


def encode_sort(kind: str, content: str) -> bytes:
    """A sort key's bytes, in the order of its values: UTF-8 of "S", raw "B", `number.encode_ordered` of "N"."""
    return _ordered(kind, content)


def row_key(schema: KeySchema, types: Mapping[str, ScalarType], key: Item) -> bytes:
    """The row key of a table's item, or of a Key parameter: `key` must hold valid key attributes, and may hold more."""
    name = schema.hash[0]
    kind: str = types[name]
    hashed = partition_hash(kind, key[name][kind])
    if not schema.range:
        return hashed
    name = schema.range[0]
    kind = types[name]
    return hashed + _ordered(kind, key[name][kind])


def index_row_key(schema: KeySchema, types: Mapping[str, ScalarType], item: Item, base_key: bytes) -> bytes | None:
    """The row key of an item in an index, `base_key` being its row key in the table; None if the index leaves it out.

    An index leaves out items that lack one of its key attributes, and those that were stored before it was made with a
    value that cannot be a key.
    """
    hashes, ranges = _contents(schema.hash, types, item), _contents(schema.range, types, item)
    if hashes is None or ranges is None:
        return None
    if not _fits(hashes, HASH_KEY_SIZE_MAX) or not _fits(ranges, RANGE_KEY_SIZE_MAX):
        return None
    parts = [encode_range(kind, content) for kind, content in ranges]
    return b"".join((index_partition_hash(schema, item), *parts, base_hash(base_key)))


def _contents(names: Sequence[str], types: Mapping[str, ScalarType], item: Item) -> list[tuple[ScalarType, str]] | None:
    """Type and content of each of these key attributes, None if one is missing, empty, or of another type."""
    found = []
    for name in names:
        kind = types[name]
        value = item.get(name)
        content = value.get(kind) if value else None
        if not content:
            return None
        found.append((kind, content))
    return found


def _fits(contents: list[tuple[ScalarType, str]], limit: int) -> bool:
    """Whether key attributes are together not over `limit` bytes; a character never takes more than four."""
    if 4 * sum([len(content) for _, content in contents]) <= limit:
        return True
    return sum([_SIZES[kind](content) for kind, content in contents]) <= limit


def base_hash(base_key: bytes) -> bytes:
    """What an index row's key ends with: it keeps rows of equal index keys apart, in a stable order."""
    return blake2b(base_key, digest_size=HASH_SIZE).digest()


def encode_range(kind: str, content: str) -> bytes:
    """One range value of an index: ordered as `encode_sort`, and none is the beginning of another.

    Groups of 8 bytes, the last padded with zeros, each followed by a byte: 0xFF if another group follows, else how many
    of the 8 count.
    """
    value = _ordered(kind, content)
    full, counted = divmod(len(value), _GROUP)
    if not full:
        return value.ljust(_GROUP, b"\0") + _COUNTS[counted]
    end = full * _GROUP
    groups = [value[at : at + _GROUP] + b"\xff" for at in range(0, end, _GROUP)]
    return b"".join([*groups, value[end:].ljust(_GROUP, b"\0"), _COUNTS[counted]])


def encode_range_prefix(kind: str, content: str) -> bytes:
    """What the forms of all values that begin with this one begin with, and no others."""
    value = _ordered(kind, content)
    whole = len(value) // _GROUP * _GROUP
    return b"".join(value[at : at + _GROUP] + b"\xff" for at in range(0, whole, _GROUP)) + value[whole:]


def decode_range(data: bytes, at: int = 0) -> tuple[bytes, int]:
    """The bytes that `encode_range` delimited at `at`, and where the next value begins."""
    value = bytearray()
    while True:
        counted = data[at + _GROUP]
        value += data[at : at + min(counted, _GROUP)]
        at += _GROUP + 1
        if counted != _GROUP_FULL:
            return bytes(value), at


def next_key(key: bytes) -> bytes:
    """The least key above `key`."""
    return key + b"\0"


def prefix_end(prefix: bytes) -> bytes:
    """The least key above all that begin with `prefix`; `AFTER_ALL_KEYS` where nothing but 0xFF leaves no room."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes((head[-1] + 1,)) if head else AFTER_ALL_KEYS


def key_of(table: Table, item: Item) -> Item:
    """Just the key attributes of an item of the table."""
    return {name: item[name] for name in table.keys.attributes}


# --- what a key may be ---


def validate_key(table: Table, key: Item) -> None:
    """Checks the Key parameter of a call: exactly the key attributes, of the right types and sizes.

    Raises a ValidationException with DynamoDB's text.
    """
    names = table.keys.attributes
    if len(key) != len(names):
        raise wrong_key()
    types = table.attribute_types
    for name in names:
        value = key.get(name)
        content = value.get(types[name]) if value else None
        if content is None:
            raise wrong_key()
        if not content or len(content) > _LENGTH_SAFE:
            _check_content(table, name, content)


def validate_item_key(table: Table, item: Item) -> None:
    """Checks the key attributes within an item to be put; raises a ValidationException with DynamoDB's text."""
    types = table.attribute_types
    for name in table.keys.attributes:
        value = item.get(name)
        if value is None:
            raise validation(f"One or more parameter values were invalid: Missing the key {name} in the item")
        content = value.get(types[name])
        if content is None:
            raise validation(
                "One or more parameter values were invalid: "
                f"Type mismatch for key {name} expected: {types[name]} actual: {_kind(value)}"
            )
        if not content or len(content) > _LENGTH_SAFE:
            _check_content(table, name, content)


def validate_index_keys(table: Table, item: Item, before: Item | None = None) -> None:
    """Checks the key attributes of the table's indexes within an item that is about to be stored.

    A missing attribute only leaves the item out of the index. For an update, `before` is the item that it started from
    (empty if there was none): what has not changed is not checked again, as an index made later may find old values
    that it cannot take, and one text differs. Of several indexes at fault the first by name is reported.
    """
    if not table.local_indexes and not table.global_indexes:
        return
    for index in sorted((*table.local_indexes, *table.global_indexes), key=lambda index: index.name):
        changed = [
            name
            for name in index.keys.attributes
            if name in item and (before is None or before.get(name) != item[name])
        ]
        for name in changed:
            _check_index_value(index, name, table.attribute_types[name], item[name], updated=before is not None)
        if changed and all(name in item for name in index.keys.attributes):
            _check_sizes(index.keys, item)


def wrong_key() -> ApiError:
    """A Key parameter, or a paging key, that does not fit the table."""
    return validation("The provided key element does not match the schema")


def hash_key_too_large() -> ApiError:
    """More than `HASH_KEY_SIZE_MAX`. The missing blank is Amazon's."""
    return validation(
        "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes"
    )


def range_key_too_large() -> ApiError:
    """More than `RANGE_KEY_SIZE_MAX`."""
    return validation(
        "One or more parameter values were invalid: "
        "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
    )


# A shorter content fits into every key, whatever its type and characters.
_LENGTH_SAFE = RANGE_KEY_SIZE_MAX // 4


def _check_content(table: Table, name: str, content: str) -> None:
    """Emptiness and size of one key attribute that has the right type."""
    kind = table.attribute_types[name]
    if not content:
        raise validation(
            "One or more parameter values are not valid. The AttributeValue for a key attribute "
            f"cannot contain an empty {_EMPTY[kind]} value. Key: {name}"
        )
    size = _SIZES[kind](content)
    if name in table.keys.hash:
        if size > HASH_KEY_SIZE_MAX:
            raise hash_key_too_large()
    elif size > RANGE_KEY_SIZE_MAX:
        raise range_key_too_large()


def _check_index_value(index: Index, name: str, kind: ScalarType, value: AttributeValue, *, updated: bool) -> None:
    content = value.get(kind)
    if content is None:
        raise validation(
            "One or more parameter values were invalid: Type mismatch for Index Key "
            f"{name} Expected: {kind} Actual: {_kind(value)} IndexName: {index.name}"
        )
    if content:
        return
    empty = f"The AttributeValue for a key attribute cannot contain an empty {_EMPTY[kind]} value."
    if updated:
        raise validation(
            "One or more parameter values are not valid. The update expression attempted to update a secondary index "
            f"key to a value that is not supported. {empty}"
        )
    raise validation(
        "One or more parameter values are not valid. A value specified for a secondary index key is not supported. "
        f"{empty} IndexName: {index.name}, IndexKey: {name}"
    )


def _check_sizes(schema: KeySchema, item: Item) -> None:
    if _size(item, schema.hash) > HASH_KEY_SIZE_MAX:
        raise hash_key_too_large()
    if _size(item, schema.range) > RANGE_KEY_SIZE_MAX:
        raise range_key_too_large()


_EMPTY = {"S": "string", "B": "binary"}


_SIZES = {"S": text_size, "N": number.size, "B": binary_size}


def _size(item: Item, names: Sequence[str]) -> int:
    """Bytes of all these key attributes together."""
    return sum(_SIZES[kind](content) for kind, content in (_scalar(item[name]) for name in names))


def _ordered(kind: str, content: str) -> bytes:
    if kind == "S":
        return content.encode()
    if kind == "N":
        return number.encode_ordered(content)
    return a2b_base64(content)


def _scalar(value: AttributeValue) -> tuple[str, str]:
    ((kind, content),) = value.items()
    return kind, content


def _kind(value: AttributeValue) -> str:
    (kind,) = value
    return kind
