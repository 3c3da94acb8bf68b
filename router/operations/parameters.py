"""Which parameters of a request belong to its expressions, and which to the older style; the two do not mix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynamo.errors import ApiError, validation


@dataclass(frozen=True, slots=True)
class ParameterRules:
    """An operation's expression parameters, its parameters of the older style, and the expressions that may use values.

    The order of each is that of DynamoDB's texts.
    """

    expressions: tuple[str, ...]
    older: tuple[str, ...]
    valued: tuple[str, ...] = ()

    def check(self, body: Mapping[str, Any]) -> bool:
        """Whether the request has any parameter of these; False lets its caller skip all that follows from them.

        Raises ValidationException when the styles are mixed, or when placeholders are given without an expression.
        """
        expressions = [name for name in self.expressions if name in body]
        older = [name for name in self.older if name in body]
        if expressions:
            if older:
                raise _mixed(older, expressions)
            return True
        if "ExpressionAttributeNames" in body:
            raise validation("ExpressionAttributeNames can only be specified when using expressions")
        if "ExpressionAttributeValues" in body:
            verb = "is" if len(self.valued) == 1 else "are"
            raise validation(
                "ExpressionAttributeValues can only be specified when using expressions: "
                f"{' and '.join(self.valued)} {verb} null"
            )
        return bool(older)


def _mixed(older: list[str], expressions: list[str]) -> ApiError:
    return validation(
        "Can not use both expression and non-expression parameters in the same request: "
        f"Non-expression parameters: {{{', '.join(older)}}} Expression parameters: {{{', '.join(expressions)}}}"
    )


PUT = ParameterRules(("ConditionExpression",), ("Expected", "ConditionalOperator"), ("ConditionExpression",))
DELETE = PUT
UPDATE = ParameterRules(
    ("UpdateExpression", "ConditionExpression"),
    ("AttributeUpdates", "Expected", "ConditionalOperator"),
    ("UpdateExpression", "ConditionExpression"),
)
GET = ParameterRules(("ProjectionExpression",), ("AttributesToGet",))
QUERY = ParameterRules(
    ("ProjectionExpression", "FilterExpression", "KeyConditionExpression"),
    ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"),
    ("FilterExpression", "KeyConditionExpression"),
)
SCAN = ParameterRules(
    ("ProjectionExpression", "FilterExpression"),
    ("AttributesToGet", "ScanFilter", "ConditionalOperator"),
    ("FilterExpression",),
)
