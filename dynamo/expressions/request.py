"""From the parameters of an operation to compiled expressions: which parameters go together, and which of the two ways,
expressions or legacy parameters, a request takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dynamo.errors import request_validation, validation
from dynamo.expressions.compile import Compiled, Template, compile_expressions
from dynamo.expressions.legacy import Slots, compile_key_conditions, compile_legacy


class _Parameters(NamedTuple):
    expressions: tuple[str, ...]
    legacy: tuple[str, ...]


_WRITE = _Parameters(("ConditionExpression",), ("Expected", "ConditionalOperator"))

_OPERATIONS = {
    "GetItem": _Parameters(("ProjectionExpression",), ("AttributesToGet",)),
    "PutItem": _WRITE,
    "DeleteItem": _WRITE,
    "UpdateItem": _Parameters(
        ("UpdateExpression", "ConditionExpression"), ("AttributeUpdates", "Expected", "ConditionalOperator")
    ),
    "Query": _Parameters(
        ("ProjectionExpression", "FilterExpression", "KeyConditionExpression"),
        ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"),
    ),
    "Scan": _Parameters(
        ("ProjectionExpression", "FilterExpression"), ("AttributesToGet", "ScanFilter", "ConditionalOperator")
    ),
}


def compile_request(operation: str, parameters: Mapping[str, Any]) -> Compiled:
    """Checks and compiles the expressions or legacy parameters of a request, or of a member of a batch or transaction.

    `operation` is GetItem, PutItem, DeleteItem, UpdateItem, Query or Scan; the members of TransactWriteItems are
    checked as the single operation (a ConditionCheck as DeleteItem). `parameters` is the request as decoded from JSON,
    of the right JSON types already. Raises a ValidationException with DynamoDB's text.
    """
    known = _OPERATIONS[operation]
    used = [name for name in known.expressions if parameters.get(name) is not None]
    legacy = [name for name in known.legacy if parameters.get(name) is not None]
    if legacy:
        _check_together(used, legacy)
    _check_placeholders(known, used, parameters)
    if not used:
        return _compile_legacy(parameters) if legacy else Compiled(_NOTHING, [])
    compiled = compile_expressions(
        condition=parameters.get("ConditionExpression"),
        filter=parameters.get("FilterExpression"),
        update=parameters.get("UpdateExpression"),
        projection=parameters.get("ProjectionExpression"),
        key_condition=parameters.get("KeyConditionExpression"),
        names=parameters.get("ExpressionAttributeNames"),
        values=parameters.get("ExpressionAttributeValues"),
    )
    return _with_key_conditions(compiled, parameters["KeyConditions"]) if legacy else compiled


_NOTHING = Template()


def _check_together(used: list[str], legacy: list[str]) -> None:
    """Only KeyConditions may stand beside expressions, in place of a KeyConditionExpression."""
    if not used or (legacy == ["KeyConditions"] and "KeyConditionExpression" not in used):
        return
    if "KeyConditionExpression" not in used:
        legacy = [name for name in legacy if name != "KeyConditions"]
    raise request_validation(
        "Can not use both expression and non-expression parameters in the same request: "
        f"Non-expression parameters: {{{', '.join(legacy)}}} Expression parameters: {{{', '.join(used)}}}"
    )


def _check_placeholders(known: _Parameters, used: list[str], parameters: Mapping[str, Any]) -> None:
    if not used and parameters.get("ExpressionAttributeNames") is not None:
        raise validation("ExpressionAttributeNames can only be specified when using expressions")
    takers = [name for name in known.expressions if name != "ProjectionExpression"]
    if (
        takers
        and parameters.get("ExpressionAttributeValues") is not None
        and all(parameters.get(name) is None for name in takers)
    ):
        raise request_validation(
            "ExpressionAttributeValues can only be specified when using expressions: "
            f"{' and '.join(takers)} {'are' if len(takers) > 1 else 'is'} null"
        )


def _compile_legacy(parameters: Mapping[str, Any]) -> Compiled:
    filter_ = parameters.get("QueryFilter")
    return compile_legacy(
        expected=parameters.get("Expected"),
        filter=parameters.get("ScanFilter") if filter_ is None else filter_,
        conditional_operator=parameters.get("ConditionalOperator"),
        attribute_updates=parameters.get("AttributeUpdates"),
        attributes_to_get=parameters.get("AttributesToGet"),
        key_conditions=parameters.get("KeyConditions"),
    )


def _with_key_conditions(compiled: Compiled, conditions: Mapping[str, Any]) -> Compiled:
    slots = Slots(compiled.values)
    template = Template(
        filter=compiled.filter,
        projection=compiled.projection,
        key_condition=compile_key_conditions(conditions, slots),
        filter_attributes=compiled.filter_attributes,
        nested_attributes=compiled.nested_attributes,
    )
    return Compiled(template, slots.values)
