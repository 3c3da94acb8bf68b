"""What a Query or Scan reads: a table, or one of its indexes. Where its rows are, and the order of their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cluster.topology import Topology
from cluster.wire import storage_pb2
from dynamo.errors import ApiError, validation
from dynamo.expressions.compile import Compiled
from dynamo.expressions.key_condition import KeyCondition, RangeCondition, resolve_key_condition
from dynamo.indexes import projected_names
from dynamo.keys import (
    encode_range,
    encode_range_prefix,
    encode_sort,
    index_partition_hash,
    index_row_key,
    next_key,
    prefix_end,
    row_key,
    validate_key,
    wrong_key,
)
from dynamo.table import Index, KeySchema, Table
from dynamo.values import AttributeValue, Item
from router.plan import StalePlanError


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """`table` is the one that the request names, `rows` the one whose partitions hold the rows: the same, or that of a
    global index. `local_index` is a local index's number in its table, from 1; `fetch`: attributes are asked for that
    it does not hold."""

    table: Table
    rows: Table
    index: Index | None = None
    local_index: int = 0
    fetch: bool = False

    @property
    def keys(self) -> KeySchema:
        """The keys that a key condition speaks of."""
        return self.table.keys if self.index is None else self.index.keys

    @property
    def is_global_index(self) -> bool:
        """Whether the rows are those of a global index."""
        return self.rows is not self.table

    def complete(self, query: storage_pb2.Query) -> None:
        """Tell a partition which of its rows to read."""
        if self.local_index:
            query.index, query.fetch = self.local_index, self.fetch

    # --- row keys ---

    def bounds(self, compiled: Compiled) -> tuple[bytes, bytes]:
        """The first row key of what the key condition asks for, and the least one above it all. Raises
        ValidationException."""
        assert compiled.key_condition is not None
        types = self.table.attribute_types
        condition = resolve_key_condition(compiled.key_condition, compiled.values, self.keys, types)
        hashed = self._hash(condition)
        if not condition.range:
            return hashed, prefix_end(hashed)
        if self.index is None:
            return range_bounds(hashed, condition.range[0])
        return index_range_bounds(hashed, condition.range)

    def _hash(self, condition: KeyCondition) -> bytes:
        return index_partition_hash(self.keys, dict(zip(self.keys.hash, condition.hash, strict=True)))

    def start_row(self, key: Item) -> bytes:
        """The row key of a start key. Raises ValidationException unless it holds just the key attributes of what is
        read, for an index those of the table too."""
        table, index = self.table, self.index
        try:
            if index is None:
                validate_key(table, key)
                return row_key(table.keys, table.attribute_types, key)
            names = {*table.keys.attributes, *index.keys.attributes}
            if set(key) != names:
                raise wrong_key()
            validate_key(table, {name: key[name] for name in table.keys.attributes})
            base_key = row_key(table.keys, table.attribute_types, key)
            row = index_row_key(index.keys, table.attribute_types, key, base_key)
            if row is None:
                raise wrong_key()
            return row
        except ApiError as error:
            raise invalid_start(error) from None


def invalid_start(error: ApiError) -> ApiError:
    """The error as it is told of a start key."""
    if error.type != "ValidationException":
        return error
    return validation(f"The provided starting key is invalid: {error.message}")


def read_target(table: Table, body: Mapping[str, Any], compiled: Compiled, topology: Topology) -> ReadTarget:
    """What the request reads. Raises ValidationException for an index that is not there or does not hold what is asked
    for, StalePlanError where the catalog at hand is torn."""
    name = body.get("IndexName")
    if name is None:
        return ReadTarget(table, table)
    index = _named(table.global_indexes, name)
    if index is None:
        return _local_target(table, name, body, compiled)
    if index.status == "CREATING":
        raise validation(f"Cannot read from backfilling global secondary index: {name}")
    _check_global(table, index, body, compiled)
    rows = topology.table(index.table)
    if rows is None:
        raise StalePlanError
    return ReadTarget(table, rows, index)


def _named(indexes: tuple[Index, ...], name: str) -> Index | None:
    return next((index for index in indexes if index.name == name), None)


def _local_target(table: Table, name: str, body: Mapping[str, Any], compiled: Compiled) -> ReadTarget:
    """A local index, whose partitions can fetch whole items for attributes that it does not hold. A filter alone does
    not ask for any: it finds them missing."""
    index = _named(table.local_indexes, name)
    if index is None:
        raise validation(f"The table does not have the specified index: {name}")
    held = projected_names(table, index)
    fetch = held is not None and (
        body.get("Select") == "ALL_ATTRIBUTES" or any(path.steps[0] not in held for path in compiled.projection or ())
    )
    return ReadTarget(table, table, index, table.local_indexes.index(index) + 1, fetch)


def _check_global(table: Table, index: Index, body: Mapping[str, Any], compiled: Compiled) -> None:
    if body.get("ConsistentRead"):
        raise validation("Consistent reads are not supported on global secondary indexes")
    if body.get("Select") == "ALL_ATTRIBUTES" and index.projection != "ALL":
        raise validation(
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global "
            f"secondary index {index.name} because its projection type is not ALL"
        )
    held = projected_names(table, index)
    if held is None:
        return
    if missing := {str(path.steps[0]) for path in compiled.projection or ()} - held:
        raise validation(
            "One or more parameter values were invalid: "
            f"Global secondary index {index.name} does not project [{', '.join(sorted(missing))}]"
        )
    if unfiltered := compiled.filter_attributes - held:
        raise validation(
            f"One or more parameter values were invalid: Secondary index {index.name} does not project one or more "
            f"filter attributes: [{', '.join(sorted(unfiltered))}]"
        )


# --- ranges ---


def range_bounds(hashed: bytes, condition: RangeCondition) -> tuple[bytes, bytes]:
    """A table's row keys from the first, inclusive, to the second, exclusive, are those that meet the condition."""
    first = hashed + encode_sort(*_scalar(condition.values[0]))
    match condition.operator:
        case "eq":
            return first, next_key(first)
        case "lt":
            return hashed, first
        case "le":
            return hashed, next_key(first)
        case "gt":
            return next_key(first), prefix_end(hashed)
        case "ge":
            return first, prefix_end(hashed)
        case "begins_with":
            return first, prefix_end(first)
        case "between":
            return first, next_key(hashed + encode_sort(*_scalar(condition.values[1])))


def index_range_bounds(hashed: bytes, conditions: tuple[RangeCondition, ...]) -> tuple[bytes, bytes]:
    """The same of an index's row keys: conditions on its range attributes in order, all but the last of them "eq"."""
    *equal, last = conditions
    head = hashed + b"".join(encode_range(*_scalar(condition.values[0])) for condition in equal)
    if last.operator == "begins_with":
        prefix = head + encode_range_prefix(*_scalar(last.values[0]))
        return prefix, prefix_end(prefix)
    first = head + encode_range(*_scalar(last.values[0]))
    match last.operator:
        case "eq":
            return first, prefix_end(first)
        case "lt":
            return head, first
        case "le":
            return head, prefix_end(first)
        case "gt":
            return prefix_end(first), prefix_end(head)
        case "ge":
            return first, prefix_end(head)
        case "between":
            return first, prefix_end(head + encode_range(*_scalar(last.values[1])))


def _scalar(value: AttributeValue) -> tuple[str, str]:
    ((kind, content),) = value.items()
    return kind, content
