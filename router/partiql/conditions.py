"""Terms to conditions: the same trees that a ConditionExpression or FilterExpression comes to, with the same checks."""

from __future__ import annotations

from typing import cast

from dynamo.errors import validation
from dynamo.expressions import tree, types
from dynamo.expressions.parser import MalformedError
from dynamo.expressions.paths import check_depth, shown
from router.partiql.faults import at, malformed
from router.partiql.slots import Slots
from router.partiql.terms import Attribute, Call, Collection, Missing, Scalar, Sum, Term, Test

CHOICES_MAX = 100
"""Operands of IN."""

# The types that IS can ask for, by the names that PartiQL has for them, and DynamoDB's tag.
_TYPES = {
    "NULL": ("NULL",),
    "BOOL": ("BOOL",),
    "BOOLEAN": ("BOOL",),
    "STRING": ("S",),
    "BLOB": ("B",),
    "NUMERIC": ("N",),
    "LIST": ("L",),
    "STRUCT": ("M",),
    "TUPLE": ("M",),
    "BAG": ("SS", "NS", "BS"),
}

_OPERANDS = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
    "size": 1,
}
"""How many operands each function takes."""


class Conditions:
    """Makes conditions; values go to `slots`. Methods raise ValidationException."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots

    def condition(self, term: Term) -> tree.Condition:
        """The condition that a term stands for."""
        if isinstance(term, Test):
            return term.condition
        if isinstance(term, Call):
            return self._call(term)
        raise malformed("Unexpected term")

    def compare(self, operator: str, left: Term, right: Term) -> tree.Condition:
        """`left operator right`; a function may be compared with TRUE or FALSE."""
        for one, other in ((left, right), (right, left)):
            if isinstance(other, Scalar) and other.kind == "BOOL" and self._is_condition(one):
                return self._equals(operator, self.condition(one), bool(other.content))
        operator = "<>" if operator == "!=" else operator
        a, b = self.operand(left), self.operand(right)
        _check_distinct(operator, a, b)
        if operator not in ("=", "<>"):
            self._require(a, types.ORDERED, operator)
            self._require(b, types.ORDERED, operator)
        return tree.Compare(operator, a, b)  # type: ignore[arg-type]  # the grammar has no others

    def between(self, operand: Term, low: Term, high: Term) -> tree.Condition:
        """`operand BETWEEN low AND high`."""
        value, lower, upper = self.operand(operand), self.operand(low), self.operand(high)
        _check_distinct("BETWEEN", value, lower, upper)
        for each in (value, lower, upper):
            self._require(each, types.ORDERED, "BETWEEN")
        if isinstance(lower, tree.Value) and isinstance(upper, tree.Value):
            self._slots.checks.append(types.bounds(lower.slot, upper.slot))
        return tree.Between(value, lower, upper)

    def is_in(self, operand: Term, choices: Term) -> tree.Condition:
        """`operand IN [a, b]`, in any kind of brackets."""
        members = choices.members if isinstance(choices, Collection) else (choices,)
        if not members or len(members) > CHOICES_MAX:
            raise validation(
                f"The IN operator is provided with too {'many' if members else 'few'} operands; "
                f"number of operands: {len(members)}"
            )
        value = self.operand(operand)
        others = tuple([self.operand(member) for member in members])
        _check_distinct("IN", value, *others)
        return tree.In(value, others)

    def is_type(self, operand: Term, type_name: str) -> tree.Condition:
        """`operand IS type`."""
        path = self._path("IS", operand)
        if type_name == "MISSING":
            return tree.AttributeNotExists(path)
        kinds = _TYPES.get(type_name)
        if kinds is None:
            raise malformed("Expected type name")
        first, *others = [tree.AttributeType(path, self._type(kind, operand)) for kind in kinds]
        condition: tree.Condition = first
        for other in others:
            condition = tree.Or(condition, other)
        return condition

    def operand(self, term: Term) -> tree.Operand:
        """An operand of a condition: a path, a value, or a size."""
        if isinstance(term, Attribute):
            return checked(term.path)
        if isinstance(term, Call):
            if term.name != "size":
                raise _unrecognized(term)
            _check_count(term)
            argument = self.operand(term.arguments[0])
            self._require(argument, types.SIZED, "size")
            if isinstance(argument, tree.Size):
                raise validation(types.wrong_operand("size", "N"))
            return tree.Size(cast("tree.Path | tree.Value", argument))
        if isinstance(term, Sum):
            raise validation(f"Unsupported operator in a condition: {term.operator} at {at(term.token)}")
        if isinstance(term, Test | Missing):
            raise malformed("Unexpected term")
        return self._slots.value(term)

    # --- parts ---

    def _is_condition(self, term: Term) -> bool:
        return isinstance(term, Test) or (isinstance(term, Call) and term.name != "size")

    def _equals(self, operator: str, condition: tree.Condition, wanted: bool) -> tree.Condition:
        if operator not in ("=", "<>", "!="):
            raise validation(types.wrong_operand(operator, "BOOL"))
        return condition if (operator == "=") is wanted else tree.Not(condition)

    def _type(self, kind: str, term: Term) -> tree.Value:
        return self._slots.value(Scalar("S", kind, term.token))

    def _call(self, call: Call) -> tree.Condition:
        if call.name not in _OPERANDS or call.name == "size":
            raise _unrecognized(call)
        _check_count(call)
        first = call.arguments[0]
        if call.name == "attribute_exists":
            return tree.AttributeExists(self._path(call.name, first))
        if call.name == "attribute_not_exists":
            return tree.AttributeNotExists(self._path(call.name, first))
        if call.name == "attribute_type":
            return self._attribute_type(self._path(call.name, first), call.arguments[1])
        return self._two_operands(call)

    def _attribute_type(self, path: tree.Path, kind: Term) -> tree.Condition:
        operand = self.operand(kind)
        if not isinstance(operand, tree.Value):
            shown_type = "N" if isinstance(operand, tree.Size) else types.ANY_TYPE
            raise validation(types.wrong_operand("attribute_type", shown_type))
        self._slots.checks.append(types.type_name(operand.slot))
        return tree.AttributeType(path, operand)

    def _two_operands(self, call: Call) -> tree.Condition:
        first, second = self.operand(call.arguments[0]), self.operand(call.arguments[1])
        _check_distinct(call.name, first, second)
        if call.name == "contains":
            return tree.Contains(first, second)
        self._require(first, types.PREFIXED, call.name)
        self._require(second, types.PREFIXED, call.name)
        return tree.BeginsWith(first, second)

    def _path(self, function: str, term: Term) -> tree.Path:
        if not isinstance(term, Attribute):
            raise validation(f"Operator or function requires a document path; operator or function: {function}")
        return checked(term.path)

    def _require(self, operand: tree.Operand, allowed: frozenset[str], function: str) -> None:
        """The operand must have one of these types, as far as that can be known without the item."""
        if isinstance(operand, tree.Value):
            self._slots.checks.append(types.operand_type(operand.slot, allowed, function))
        elif isinstance(operand, tree.Size) and "N" not in allowed:
            raise validation(types.wrong_operand(function, "N"))


def checked(path: tree.Path) -> tree.Path:
    """The path, unless it leads too deep."""
    try:
        check_depth(path.steps)
    except MalformedError as fault:
        raise validation(str(fault)) from None
    return path


def _check_count(call: Call) -> None:
    if len(call.arguments) != _OPERANDS[call.name]:
        raise validation(
            "Incorrect number of operands for operator or function; "
            f"operator or function: {call.name}, number of operands: {len(call.arguments)}"
        )


def _unrecognized(call: Call) -> Exception:
    return validation(f"Unrecognized function: {call.name} at {at(call.token)}")


def _check_distinct(operator: str, first: tree.Operand, *others: tree.Operand) -> None:
    if isinstance(first, tree.Path) and first in others:
        raise validation(
            "The first operand must be distinct from the remaining operands for this operator or function; "
            f"operator: {operator}, first operand: {shown(first.steps)}"
        )
