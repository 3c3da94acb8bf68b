"""Tokens to a raw tree: the grammars of conditions, updates and projections.

    condition  := conjunction ("OR" conjunction)*
    conjunction:= negation ("AND" negation)*
    negation   := "NOT"* term
    term       := "(" condition ")" | call
                | operand ("=" | "<>" | "<" | "<=" | ">" | ">=") operand
                | operand "BETWEEN" operand "AND" operand
                | operand "IN" "(" operand ("," operand)* ")"
    operand    := "(" operand ")" | value | call | path
    call       := word "(" operand ("," operand)* ")"
    path       := step ("." step | "[" index "]")*

    update     := ("SET" set ("," set)* | "REMOVE" path ("," path)* | ("ADD" | "DELETE") path value ("," path value)*)+
    set        := path "=" sum
    sum        := operand (("+" | "-") operand)? | "(" sum ")"

    projection := path ("," path)*

A bracket may open a condition or an operand; what stands inside decides. Rules that can nest are generators that yield
the rules they need, and `_run` keeps them on a list: 4,096 bytes hold more brackets than Python's stack holds calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Literal, TypeAlias, cast

from dynamo.expressions.raw import (
    RawAction,
    RawArithmetic,
    RawBetween,
    RawCall,
    RawCompare,
    RawCondition,
    RawIn,
    RawLogical,
    RawNot,
    RawOperand,
    RawPath,
    RawProjection,
    RawUpdate,
    RawValue,
    Section,
)
from dynamo.expressions.tokens import syntax_error, tokenize

OPERATORS_MAX = 300

# How deep calls may nest: more than any correct expression of 4,096 bytes has. It bounds the passes that follow, which
# do recurse: a condition can hold 300 operators inside each other besides, an update one.
_CONDITION_CALLS_MAX = 8
_UPDATE_CALLS_MAX = 300

_COMPARATORS = frozenset(["=", "<>", "<", "<=", ">", ">="])
_CONDITION_KEYWORDS = frozenset(["AND", "OR", "NOT", "BETWEEN", "IN"])
_SECTIONS = frozenset(["SET", "REMOVE", "ADD", "DELETE"])
_OPERANDS = (RawPath, RawValue, RawCall)

_Rule: TypeAlias = Generator[Any, Any, Any]


class MalformedError(Exception):
    """The text is no expression; carries DynamoDB's text without the "Invalid …Expression: " in front."""


def parse_condition(text: str) -> RawCondition:
    """The raw tree of a condition, filter or key condition; raises `MalformedError`."""
    parser = _Parser(text, _CONDITION_KEYWORDS, _CONDITION_CALLS_MAX)
    return cast(RawCondition, parser.whole(parser.condition()))


def parse_update(text: str) -> RawUpdate:
    """The raw tree of an update; raises `MalformedError`."""
    parser = _Parser(text, _SECTIONS, _UPDATE_CALLS_MAX)
    return cast(RawUpdate, parser.whole(parser.update()))


def parse_projection(text: str) -> RawProjection:
    """The paths of a projection; raises `MalformedError`."""
    parser = _Parser(text, frozenset(), 0)
    return cast(RawProjection, parser.whole(parser.projection()))


def _run(rule: _Rule) -> Any:
    """Runs a rule and every rule it yields, without Python's own stack."""
    waiting = [rule]
    result: Any = None
    while waiting:
        try:
            waiting.append(waiting[-1].send(result))
            result = None
        except StopIteration as stop:
            waiting.pop()
            result = stop.value
    return result


class _Parser:
    """One reading of one text."""

    def __init__(self, text: str, keywords: frozenset[str], calls_max: int) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._position = 0
        self._keywords = keywords
        self._operators = 0
        self._calls = 0  # open around the current token
        self._calls_max = calls_max
        self._bracketed: object = None  # what the bracket just closed held

    def whole(self, rule: _Rule) -> Any:
        """What the rule makes of the whole text."""
        result = _run(rule)
        if self._token.kind != "end":
            raise self._unexpected()
        if self._operators > OPERATORS_MAX:
            # DynamoDB counts no further than the first one too many.
            raise MalformedError(f"The expression contains too many operators; operator count: {OPERATORS_MAX + 1}")
        return result

    # --- conditions ---

    def condition(self, bracket: bool = False) -> _Rule:
        """A condition; inside a bracket also a lone operand, which only a closing bracket may follow."""
        return self._chain("OR", self._conjunction, bracket)

    def _conjunction(self, bracket: bool) -> _Rule:
        return self._chain("AND", self._negation, bracket)

    def _chain(self, operator: Literal["AND", "OR"], rule: Callable[[bool], _Rule], bracket: bool) -> _Rule:
        terms = [(yield rule(bracket))]
        if self._lone_operand(terms[0]):
            return terms[0]
        while self._accept_keyword(operator):
            self._operators += 1
            terms.append((yield rule(False)))
        return _balanced(operator, terms)

    def _negation(self, bracket: bool) -> _Rule:
        negations = 0
        while self._accept_keyword("NOT"):
            negations += 1
        self._operators += negations
        condition = yield self._term(bracket and not negations)
        for _ in range(negations):
            condition = RawNot(condition)
        return condition

    def _term(self, bracket: bool) -> _Rule:
        if self._token.text == "(":
            first = yield self._bracket(lambda: self.condition(bracket=True))
            if not isinstance(first, _OPERANDS):
                return first
            first = self._longer_path(first)
        else:
            first = yield self._operand()
        comparison = yield self._comparison(first)
        if comparison is not None:
            return comparison
        if isinstance(first, RawCall) or (bracket and self._token.text == ")"):
            return first
        raise self._unexpected()

    def _comparison(self, first: RawOperand) -> _Rule:
        """The comparison that begins with this operand, or None where none follows."""
        symbol = self._token.text
        if symbol in _COMPARATORS:
            self._take()
            self._operators += 1
            return RawCompare(cast(Any, symbol), first, (yield self._operand()))
        if self._accept_keyword("BETWEEN"):
            self._operators += 1
            low = yield self._operand()
            if not self._accept_keyword("AND"):
                raise self._unexpected()
            return RawBetween(first, low, (yield self._operand()))
        if self._accept_keyword("IN"):
            self._operators += 1
            return RawIn(first, (yield self._operands()))
        return None

    def _lone_operand(self, node: object) -> bool:
        """Whether this is an operand in a bracket, to be compared with something outside of it."""
        return isinstance(node, (RawPath, RawValue))

    # --- updates ---

    def update(self) -> _Rule:
        actions: list[RawAction] = []
        sections: list[Section] = []
        while not sections or self._token.kind != "end":
            section = self._section()
            sections.append(section)
            while True:
                actions.append((yield self._action(section)))
                if not self._accept(","):
                    break
        return RawUpdate(tuple(actions), tuple(sections))

    def _section(self) -> Section:
        word = self._token.text.upper()
        if self._token.kind != "word" or word not in _SECTIONS:
            raise self._unexpected()
        self._take()
        return cast(Section, word)

    def _action(self, section: Section) -> _Rule:
        path = self._path()
        if section == "REMOVE":
            return RawAction(section, path, None)
        if section == "SET":
            self._expect("=")
            return RawAction(section, path, (yield self._sum()))
        if self._token.kind != "value":
            raise self._unexpected()
        return RawAction(section, path, RawValue(self._take()))

    def _sum(self) -> _Rule:
        if self._token.text == "(":
            left = yield self._bracket(self._sum)
            if isinstance(left, RawArithmetic):
                return left
        else:
            left = yield self._operand()
        operator = self._token.text
        if operator not in ("+", "-"):
            return left
        self._take()
        self._operators += 1
        return RawArithmetic(cast(Any, operator), left, (yield self._operand()))

    # --- projections ---

    def projection(self) -> _Rule:
        paths = [self._path()]
        while self._accept(","):
            paths.append(self._path())
        return tuple(paths)
        yield

    # --- operands ---

    def _operand(self) -> _Rule:
        token = self._token
        if token.text == "(":
            return self._longer_path((yield self._bracket(self._operand)))
        if token.kind == "value":
            return RawValue(self._take())
        if token.kind == "word" and self._tokens[self._position + 1].text == "(" and not self._at_keyword():
            return (yield self._call())
        return self._path()

    def _operands(self) -> _Rule:
        self._expect("(")
        operands = [(yield self._operand())]
        while self._accept(","):
            operands.append((yield self._operand()))
        self._expect(")")
        return tuple(operands)

    def _call(self) -> _Rule:
        name = self._take()
        self._calls += 1
        if self._calls > self._calls_max:
            raise MalformedError(f"The function is not allowed to be used this way in an expression; function: {name}")
        call = RawCall(name, (yield self._operands()))
        self._calls -= 1
        return call

    def _bracket(self, rule: Callable[[], _Rule]) -> _Rule:
        """What stands in the bracket that opens here. A bracket around a bracket is an error of its own."""
        self._expect("(")
        self._bracketed = None
        inner = yield rule()
        redundant = self._bracketed is not None and self._bracketed is inner
        self._expect(")")
        if redundant:
            raise MalformedError("The expression has redundant parentheses;")
        self._bracketed = inner
        return inner

    def _path(self) -> RawPath:
        return self._steps([self._step()])

    def _longer_path(self, head: Any) -> Any:
        """A path goes on behind a bracket: `(a).b`."""
        if isinstance(head, RawPath) and self._token.text in (".", "["):
            return self._steps(list(head.steps))
        return head

    def _steps(self, steps: list[str | int]) -> RawPath:
        while True:
            if self._accept("."):
                steps.append(self._step())
            elif self._accept("["):
                if self._token.kind != "index":
                    raise self._unexpected()
                steps.append(int(self._take()))
                self._expect("]")
            else:
                return RawPath(tuple(steps))

    def _step(self) -> str:
        if self._token.kind == "name" or (self._token.kind == "word" and not self._at_keyword()):
            return self._take()
        raise self._unexpected()

    # --- tokens ---

    @property
    def _token(self) -> Any:
        return self._tokens[self._position]

    def _at_keyword(self) -> bool:
        return self._token.text.upper() in self._keywords

    def _take(self) -> str:
        text = self._tokens[self._position].text
        self._position += 1
        return text

    def _accept(self, symbol: str) -> bool:
        if self._token.text != symbol:
            return False
        self._position += 1
        return True

    def _accept_keyword(self, word: str) -> bool:
        if self._token.kind != "word" or self._token.text.upper() != word:
            return False
        self._position += 1
        return True

    def _expect(self, symbol: str) -> None:
        if not self._accept(symbol):
            raise self._unexpected()

    def _unexpected(self) -> MalformedError:
        return MalformedError(syntax_error(self._text, self._tokens, self._position))


def _balanced(operator: Literal["AND", "OR"], terms: Sequence[RawCondition]) -> RawCondition:
    """The chain as a tree as low as can be; the terms keep their order, so what is evaluated first does not change."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return RawLogical(operator, _balanced(operator, terms[:middle]), _balanced(operator, terms[middle:]))
