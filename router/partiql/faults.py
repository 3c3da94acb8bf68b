"""What is wrong with a statement, in DynamoDB's words.

Its parser tells a few kinds of fault apart. Which one it is follows from the token that does not fit, from the one
before it, and from what could have stood there. Texts: those that the Parity Suite has recorded.
"""

from __future__ import annotations

from lark import Token
from lark.exceptions import UnexpectedToken

from dynamo.errors import ApiError, validation

_NOT_WELL_FORMED = "Statement wasn't well formed, can't be processed: "

_END = "$END"
_INFIX = frozenset({"_AND", "_OR", "COMPARATOR", "EQUAL", "SIGN", "_IN"})
_OPERATORS = _INFIX | {"_IS", "_LIKE", "_BETWEEN", "_STAR"}
_NO_KEYWORDS = frozenset(
    [
        "NAME",
        "QUOTED",
        "STRING",
        "NUMBER",
        "PARAMETER",
        "_COMMA",
        "_DOT",
        "_COLON",
        "_SEMICOLON",
        "_OPEN",
        "_CLOSE",
        "OPEN_LIST",
        "_CLOSE_LIST",
        "OPEN_TUPLE",
        "_CLOSE_TUPLE",
        "OPEN_BAG",
        "_CLOSE_BAG",
    ]
)


def malformed(detail: str = "") -> ApiError:
    """The statement cannot be read. The text ends with the colon where DynamoDB has no detail to give."""
    return validation(_NOT_WELL_FORMED + detail)


def at(token: Token) -> str:
    """Where a token stands, as DynamoDB tells it: `line:column:length`, counted from 1."""
    return f"{token.line}:{token.column}:{len(token)}"


def fault_at(found: UnexpectedToken) -> ApiError:
    """The error for a token that does not fit."""
    before = _tokens_before(found)
    return malformed(_detail(found.token.type, before, found.accepts or set()))


def _tokens_before(found: UnexpectedToken) -> list[str]:
    """The kinds of the last two things that were read; rules for what is read in full, terminals for tokens."""
    state = found.interactive_parser.parser_state if found.interactive_parser is not None else None
    stack = [] if state is None else state.value_stack[-2:]
    return [value.type if isinstance(value, Token) else str(value.data) for value in stack]


def _detail(kind: str, before: list[str], accepted: set[str]) -> str:
    last = before[-1] if before else ""
    if not before or ("_SET" in accepted and _END not in accepted):
        return "Expected data manipulation"
    if last == "_DOT":
        return "Invalid path dot component"
    if before == ["_DELETE", "_FROM"] or last in ("_UPDATE", "_INTO"):
        return "Expected identifier for simple path"
    if last == "_IS":
        return "Expected type name"
    if "STRING" in accepted and "PARAMETER" in accepted:
        return _no_term(kind, last)
    if _END in accepted or accepted == {"_VALUE"} or kind in _NO_KEYWORDS or kind == _END:
        return "Unexpected token after expression" if kind != _END or _END in accepted else "Unexpected term"
    return "Unexpected keyword"


def _no_term(kind: str, last: str) -> str:
    """What stands where a term should begin."""
    if kind in _OPERATORS:
        return "Unexpected operator"
    if kind == _END or kind in _NO_KEYWORDS:
        return "Missing right-hand side expression of infix operator" if last in _INFIX else "Unexpected term"
    return "Unexpected keyword"
