"""What a statement reads or writes: the one item whose key it names, the rows of some partition keys, or all rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cmp_to_key

import msgspec

from dynamo.errors import validation
from dynamo.expressions import tree
from dynamo.table import KeySchema
from dynamo.values import AttributeValue, Item, compare
from router.partiql.statements import OrderKey, Select

_RANGE_OPERATORS = ("=", "<", "<=", ">", ">=")


class Reading(msgspec.Struct, frozen=True):
    """The rows that a SELECT evaluates.

    `ranges` are key conditions, each of one partition key, to be read one after the other; empty for a scan. `filter`
    is what the rows have to meet besides; `keyed_filter` says that it stands beside a key condition, not around it.
    `whole_key`: the only range is the row with one key, and has no filter.
    """

    ranges: tuple[tree.Condition, ...] = ()
    filter: tree.Condition | None = None
    reverse: bool = False
    keyed_filter: bool = False
    whole_key: bool = False


class Branch(msgspec.Struct, frozen=True):
    """One way to meet a condition: the values of the partition keys, and the rest of what it asks for."""

    hashes: tuple[tuple[tree.Operand, ...], ...]
    range: tuple[tree.Condition, ...]
    rest: tuple[tree.Condition, ...]


# --- the one item of a write, or of a read in a batch ---


def item_key(
    where: tree.Condition | None, values: Sequence[AttributeValue], keys: KeySchema
) -> tuple[Item, tree.Condition | None] | None:
    """The key that `where` gives a value for each attribute of, and the condition that is left; None if it does not."""
    rest = [] if where is None else list(conjuncts(where))
    key: Item = {}
    for name in keys.attributes:
        found = next((node for node in rest if _equated(node, name) is not None), None)
        if found is None:
            return None
        rest.remove(found)
        operand = _equated(found, name)
        assert isinstance(operand, tree.Value)
        key[name] = values[operand.slot]
    return key, joined(rest)


# --- the rows of a SELECT ---


def plan_select(select: Select, values: Sequence[AttributeValue], keys: KeySchema) -> Reading:
    """The rows to read of a table or index with these keys. Raises ValidationException."""
    if select.where is None:
        if select.order:
            raise validation("Must have WHERE clause in the statement when using ORDER BY clause.")
        return Reading()
    reading = _read_by_key(select.where, values, keys) or Reading(filter=select.where)
    return _ordered(reading, select.order, values, keys) if select.order else reading


def _read_by_key(where: tree.Condition, values: Sequence[AttributeValue], keys: KeySchema) -> Reading | None:
    branch = _branch(where, keys)
    if branch is not None:
        ranges = [joined([*_equalities(keys, each), *branch.range]) for each in _distinct(branch.hashes, values)]
        whole_key = len(ranges) == 1 and not branch.rest and _equates_all(branch.range, keys)
        return Reading(_conditions(ranges), joined(branch.rest), keyed_filter=True, whole_key=whole_key)
    for node in conjuncts(where):
        branches = [_branch(part, keys) for part in disjuncts(node)] if isinstance(node, tree.Or) else []
        found = [branch for branch in branches if branch is not None]
        if found and len(found) == len(branches):
            return Reading(_union(found, values, keys), where)
    return None


def _branch(condition: tree.Condition, keys: KeySchema) -> Branch | None:
    """The condition as a key condition and the rest, if it gives values for all partition keys."""
    rest = list(conjuncts(condition))
    equal: list[tree.Operand] = []
    for name in keys.hash:
        found = next((node for node in rest if _equated(node, name) is not None), None)
        if found is None:
            return _branch_of_in(rest, keys) if len(keys.hash) == 1 else None
        rest.remove(found)
        operand = _equated(found, name)
        assert operand is not None
        equal.append(operand)
    taken = _range(rest, keys)
    return Branch((tuple(equal),), taken, tuple(rest))


def _branch_of_in(rest: list[tree.Condition], keys: KeySchema) -> Branch | None:
    path = tree.Path((keys.hash[0],))
    for node in rest:
        if isinstance(node, tree.In) and node.operand == path and all(map(_is_value, node.choices)):
            rest.remove(node)
            return Branch(tuple([(choice,) for choice in node.choices]), _range(rest, keys), tuple(rest))
    return None


def _range(rest: list[tree.Condition], keys: KeySchema) -> tuple[tree.Condition, ...]:
    """Takes conditions on the sort keys out of `rest`: equalities in order, then one of another kind."""
    taken: list[tree.Condition] = []
    for name in keys.range:
        found = next((node for node in rest if _equated(node, name) is not None), None)
        last = found is None
        if found is None:
            found = next((node for node in rest if _bounds(node, name)), None)
        if found is not None:
            rest.remove(found)
            taken.append(found)
        if last:
            break
    return tuple(taken)


def _equates_all(conditions: Sequence[tree.Condition], keys: KeySchema) -> bool:
    return len(conditions) == len(keys.range) and all(
        _equated(condition, name) is not None for condition, name in zip(conditions, keys.range, strict=True)
    )


def _union(branches: Sequence[Branch], values: Sequence[AttributeValue], keys: KeySchema) -> tuple[tree.Condition, ...]:
    """Ranges that hold the rows of all branches, each row once; the whole condition has to be the filter."""
    by_hash: dict[bytes, tuple[tuple[tree.Operand, ...], list[Branch]]] = {}
    for branch in branches:
        for hashes in branch.hashes:
            by_hash.setdefault(_identity(hashes, values), (hashes, []))[1].append(branch)
    ranges = []
    for hashes, several in by_hash.values():
        _check_overlap(several, keys)
        narrow = several[0].range if len(several) == 1 else ()
        ranges.append(joined([*_equalities(keys, hashes), *narrow]))
    return _conditions(ranges)


def _check_overlap(branches: Sequence[Branch], keys: KeySchema) -> None:
    """DynamoDB does not take a branch on a range of sort keys beside one that other conditions alone narrow."""
    if len(branches) < 2 or not any(branch.range for branch in branches):
        return
    for branch in branches:
        if branch.rest and not branch.range and not set(keys.range) & tree.attributes_of(*branch.rest):
            raise validation("Overlapping conditions with range keys are not supported in where clause")


# --- ORDER BY ---


def _ordered(reading: Reading, order: Sequence[OrderKey], values: Sequence[AttributeValue], keys: KeySchema) -> Reading:
    stranger = next((key.attribute for key in order if key.attribute not in keys.attributes), None)
    if stranger is not None:
        raise validation(f"Variable reference {stranger} in ORDER BY clause must be part of the primary key")
    if not reading.ranges:
        raise validation(
            "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause."
        )
    by_hash = next((key for key in order if key.attribute in keys.hash), None)
    if by_hash is None and len(reading.ranges) > 1:
        raise validation(
            "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause."
        )
    ranges = reading.ranges
    if by_hash is not None and len(ranges) > 1:
        ranges = _sorted(ranges, values, by_hash)
    reverse = any(key.descending for key in order if key.attribute in keys.range)
    return msgspec.structs.replace(reading, ranges=ranges, reverse=reverse)


def _sorted(
    ranges: Sequence[tree.Condition], values: Sequence[AttributeValue], by: OrderKey
) -> tuple[tree.Condition, ...]:
    """The ranges in the order of their values of one partition key."""

    def value(condition: tree.Condition) -> AttributeValue:
        operand = next(filter(None, (_equated(node, by.attribute) for node in conjuncts(condition))))
        assert isinstance(operand, tree.Value)
        return values[operand.slot]

    def compared(left: tree.Condition, right: tree.Condition) -> int:
        return compare(value(left), value(right)) or 0

    return tuple(sorted(ranges, key=cmp_to_key(compared), reverse=by.descending))


# --- conditions taken apart and put together ---


def conjuncts(condition: tree.Condition) -> Iterator[tree.Condition]:
    """The conditions that AND joins, in the order written."""
    waiting = [condition]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.And):
            waiting += [node.right, node.left]
        else:
            yield node


def disjuncts(condition: tree.Condition) -> Iterator[tree.Condition]:
    """The conditions that OR joins, in the order written."""
    waiting = [condition]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.Or):
            waiting += [node.right, node.left]
        else:
            yield node


def joined(conditions: Sequence[tree.Condition]) -> tree.Condition | None:
    """All of the conditions; None for none."""
    whole: tree.Condition | None = None
    for condition in conditions:
        whole = condition if whole is None else tree.And(whole, condition)
    return whole


def _equated(node: tree.Condition, name: str) -> tree.Operand | None:
    """The value that the condition says the attribute equals."""
    if isinstance(node, tree.Compare) and node.operator == "=":
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if _is_value(other) and isinstance(one, tree.Path) and one.steps == (name,):
                return other
    return None


def _bounds(node: tree.Condition, name: str) -> bool:
    """Whether the condition bounds the attribute in a way that a range of rows can follow."""
    path = tree.Path((name,))
    match node:
        case tree.Compare(operator, left, right):
            return operator in _RANGE_OPERATORS and (
                (left == path and _is_value(right)) or (right == path and _is_value(left))
            )
        case tree.Between(operand, low, high):
            return operand == path and _is_value(low) and _is_value(high)
        case tree.BeginsWith(operand, prefix):
            return operand == path and _is_value(prefix)
    return False


def _is_value(operand: tree.Operand) -> bool:
    return isinstance(operand, tree.Value)


def _equalities(keys: KeySchema, hashes: Sequence[tree.Operand]) -> list[tree.Condition]:
    return [tree.Compare("=", tree.Path((name,)), value) for name, value in zip(keys.hash, hashes, strict=True)]


def _distinct(
    hashes: Sequence[tuple[tree.Operand, ...]], values: Sequence[AttributeValue]
) -> list[tuple[tree.Operand, ...]]:
    found: dict[bytes, tuple[tree.Operand, ...]] = {}
    for each in hashes:
        found.setdefault(_identity(each, values), each)
    return list(found.values())


def _identity(hashes: Sequence[tree.Operand], values: Sequence[AttributeValue]) -> bytes:
    """Equal for equal partition keys."""
    return msgspec.json.encode([values[operand.slot] for operand in hashes if isinstance(operand, tree.Value)])


def _conditions(ranges: Sequence[tree.Condition | None]) -> tuple[tree.Condition, ...]:
    return tuple([condition for condition in ranges if condition is not None])
