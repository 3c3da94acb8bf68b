"""Assignments to the actions of an update."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo.errors import validation
from dynamo.expressions import tree, types
from dynamo.expressions.parser import MalformedError
from dynamo.expressions.paths import check_apart
from router.partiql.conditions import checked
from router.partiql.faults import at, malformed
from router.partiql.slots import Slots
from router.partiql.terms import Attribute, Call, Collection, Missing, Placeholder, Sum, Term, Test

_FUNCTIONS = {"list_append": 2, "if_not_exists": 2}


class Updates:
    """Makes actions; values go to `slots`. Methods raise ValidationException."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots

    def assignment(self, target: Attribute, term: Term) -> tree.Action:
        """`SET target = term`."""
        path = checked(target.path)
        if isinstance(term, Call) and term.name in ("set_add", "set_delete"):
            return self._set_function(path, term)
        return tree.Set(path, self._operand(term))

    def removal(self, target: Attribute) -> tree.Action:
        """`REMOVE target`."""
        return tree.Remove(checked(target.path))

    def _set_function(self, path: tree.Path, call: Call) -> tree.Action:
        name = call.name.upper()
        if len(call.arguments) != 2:
            raise validation(f"{name} must have exactly two arguments at {at(call.token)}")
        first, second = call.arguments
        if not isinstance(first, Attribute) or first.path != path:
            raise validation(f"The first argument to {name} must equal the assignment value at {at(call.token)}")
        bag = isinstance(second, Collection) and second.kind == "bag"
        not_a_set = f"The second argument to {name} must be a value with type SET at {at(first.token)}"
        if not bag and not isinstance(second, Placeholder):
            raise validation(not_a_set)
        value = self._slots.value(second)
        self._slots.checks.append(lambda values: None if types.type_of(values[value.slot]) in types.SETS else not_a_set)
        return tree.Add(path, value) if name == "SET_ADD" else tree.DeleteFrom(path, value)

    def _operand(self, term: Term) -> tree.Operand:
        """One call per level; operators and brackets are counted where they are read."""
        match term:
            case Attribute(path, _):
                return checked(path)
            case Sum(operator, left_term, right_term, _):
                left, right = self._operand(left_term), self._operand(right_term)
                self._require(left, types.NUMBER, operator)
                self._require(right, types.NUMBER, operator)
                return tree.Arithmetic(operator, left, right)
            case Call():
                return self._call(term)
            case Test() | Missing():
                raise malformed("Unexpected term")
        return self._slots.value(term)

    def _call(self, call: Call) -> tree.Operand:
        count = _FUNCTIONS.get(call.name)
        if count is None:
            raise validation(f"Unrecognized function: {call.name} at {at(call.token)}")
        if len(call.arguments) != count:
            raise validation(
                "Incorrect number of operands for operator or function; "
                f"operator or function: {call.name}, number of operands: {len(call.arguments)}"
            )
        first, second = self._operand(call.arguments[0]), self._operand(call.arguments[1])
        if call.name == "if_not_exists":
            if not isinstance(first, tree.Path):
                raise validation("Operator or function requires a document path; operator or function: if_not_exists")
            return tree.IfNotExists(first, second)
        self._require(first, types.LIST, call.name)
        self._require(second, types.LIST, call.name)
        return tree.ListAppend(first, second)

    def _require(self, operand: tree.Operand, allowed: frozenset[str], function: str) -> None:
        if isinstance(operand, tree.Value):
            self._slots.checks.append(types.operand_type(operand.slot, allowed, function))


def check_paths(actions: Sequence[tree.Action]) -> None:
    """No path of an update may be another or part of it. Raises ValidationException."""
    try:
        check_apart([action.path.steps for action in actions])
    except MalformedError as fault:
        raise validation(str(fault)) from None
