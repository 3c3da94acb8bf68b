"""Attribute values in DynamoDB's tagged JSON form."""

from __future__ import annotations

from typing import Any, TypeAlias

AttributeValue: TypeAlias = dict[str, Any]
"""One tagged value, such as {"S": "x"} or {"M": {"a": {"N": "1"}}}."""

Item: TypeAlias = dict[str, AttributeValue]
"""An attribute map."""
