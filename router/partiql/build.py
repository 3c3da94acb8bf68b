"""From the syntax tree to a statement, from the leaves up and without recursion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from lark import Token, Tree
from lark.exceptions import VisitError
from lark.visitors import Transformer_NonRecursive

from dynamo.errors import ApiError, validation
from dynamo.expressions import tree
from router.partiql import statements
from router.partiql.conditions import Conditions, checked
from router.partiql.faults import at, malformed
from router.partiql.slots import Slots
from router.partiql.terms import Attribute, Call, Collection, Missing, Placeholder, Scalar, Sum, Term, Test, Tuple
from router.partiql.updates import Updates, check_paths

OPERATORS_MAX = 300
"""As in an expression. It bounds how deep the trees are that evaluators walk."""

_Children: TypeAlias = list[Any]


def build(syntax: Tree[Token], slots: Slots) -> tuple[statements.Statement, int]:
    """The statement and its number of parameters; values go to `slots`. Raises ValidationException."""
    builder = _Builder(slots)
    try:
        statement = builder.transform(syntax)
    except VisitError as error:
        if isinstance(error.orig_exc, ApiError):
            raise error.orig_exc from None
        raise
    return cast(statements.Statement, statement), builder.parameters


class _Builder(Transformer_NonRecursive[Token, Any]):
    """One method per rule of the grammar, which gets what its parts came to."""

    def __init__(self, slots: Slots) -> None:
        super().__init__(visit_tokens=False)
        self._slots = slots
        self._conditions = Conditions(slots)
        self._updates = Updates(slots)
        self._operators = 0
        self.parameters = 0

    # --- statements ---

    def start(self, parts: _Children) -> statements.Statement:
        return cast(statements.Statement, parts[0])

    def select(self, parts: _Children) -> statements.Select:
        projected, source, alias, where, order = parts
        _check_alias(alias)
        projection, names = projected or (None, ())
        return statements.Select(_source(source), projection, names, where, order or ())

    def insert(self, parts: _Children) -> statements.Insert:
        source, item, returning = parts
        if len(source) > 1:
            raise validation(
                f"FROM clause may only contain a single table name in data manipulation statements at {at(source[0])}"
            )
        if returning is not None:
            raise validation("RETURNING is not supported in INSERT")
        return statements.Insert(_source(source), self._slots.item(item).slot)

    def update(self, parts: _Children) -> statements.Update:
        source, alias, actions, where, returning = parts
        return self.update_from([source, alias, where, actions, returning])

    def update_from(self, parts: _Children) -> statements.Update:
        source, alias, where, actions, returning = parts
        _check_alias(alias)
        return statements.Update(_source(source, write=True), actions, where, returning)

    def delete(self, parts: _Children) -> statements.Delete:
        source, alias, where, returning = parts
        _check_alias(alias)
        if returning not in (None, "ALL_OLD"):
            clause = returning.replace("UPDATED", "MODIFIED").replace("_", " ")
            raise validation(
                f"Invalid returning clause: RETURNING {clause} *. "
                "Only RETURNING ALL OLD * is allowed in DELETE statements."
            )
        return statements.Delete(_source(source, write=True), where, returning)

    def exists(self, parts: _Children) -> statements.Exists:
        return statements.Exists(parts[1])

    # --- clauses ---

    def everything(self, _: _Children) -> None:
        return None

    def projection(self, parts: _Children) -> tuple[tree.Projection, tuple[str, ...]]:
        paths: list[tree.Path] = []
        for term in parts:
            if not isinstance(term, Attribute):
                raise validation(f"Unexpected path component at {at(term.token)}")
            paths.append(checked(term.path))
        return tuple(paths), tuple([_column(path, number) for number, path in enumerate(paths, 1)])

    def projected(self, parts: _Children) -> Term:
        _check_alias(parts[1])
        return cast(Term, parts[0])

    def source(self, parts: _Children) -> list[Token]:
        return parts

    def alias(self, _: _Children) -> bool:
        return True

    def where(self, parts: _Children) -> tree.Condition:
        return self._conditions.condition(parts[0])

    def order(self, parts: _Children) -> tuple[statements.OrderKey, ...]:
        return tuple(parts)

    def order_key(self, parts: _Children) -> statements.OrderKey:
        term, direction = parts
        if not isinstance(term, Attribute) or len(term.path.steps) > 1:
            raise validation(f"Unexpected path component at {at(term.token)}")
        return statements.OrderKey(str(term.path.steps[0]), direction is not None and direction.lower() == "desc")

    def returning(self, parts: _Children) -> statements.Returning:
        extent, age = parts
        prefix = "ALL" if extent.upper() == "ALL" else "UPDATED"
        return cast(statements.Returning, f"{prefix}_{age.upper()}")

    def changes(self, parts: _Children) -> tree.Update:
        check_paths(parts)
        return tuple(parts)

    def assignment(self, parts: _Children) -> tree.Action:
        return self._updates.assignment(parts[0], parts[2])

    def removal(self, parts: _Children) -> tree.Action:
        return self._updates.removal(parts[0])

    # --- conditions ---

    def either(self, parts: _Children) -> Test:
        return self._logical(tree.Or, parts)

    def both(self, parts: _Children) -> Test:
        return self._logical(tree.And, parts)

    def negated(self, parts: _Children) -> Test:
        return self._test(parts[0], tree.Not(self._conditions.condition(parts[0])))

    def compare(self, parts: _Children) -> Test:
        left, operator, right = parts
        return self._test(left, self._conditions.compare(str(operator), left, right))

    def between(self, parts: _Children) -> Test:
        return self._test(parts[0], self._conditions.between(*parts))

    def not_between(self, parts: _Children) -> Test:
        return self.negated([self.between(parts)])

    def among(self, parts: _Children) -> Test:
        return self._test(parts[0], self._conditions.is_in(*parts))

    def not_among(self, parts: _Children) -> Test:
        return self.negated([self.among(parts)])

    def of_type(self, parts: _Children) -> Test:
        return self._test(parts[0], self._conditions.is_type(parts[0], parts[1]))

    def not_of_type(self, parts: _Children) -> Test:
        return self.negated([self.of_type(parts)])

    def type(self, parts: _Children) -> str:
        return " ".join(word.upper() for word in parts)

    def _logical(self, kind: Callable[[tree.Condition, tree.Condition], tree.Condition], parts: _Children) -> Test:
        left, right = [self._conditions.condition(part) for part in parts]
        return self._test(parts[0], kind(left, right))

    def _test(self, first: Term, condition: tree.Condition) -> Test:
        self._count()
        return Test(condition, first.token)

    def _count(self) -> None:
        self._operators += 1
        if self._operators > OPERATORS_MAX:
            raise validation(f"The expression contains too many operators; operator count: {self._operators}")

    # --- terms ---

    def arithmetic(self, parts: _Children) -> Term:
        left, operator, right = parts
        self._count()
        return Sum(cast(Any, str(operator)), left, right, left.token)

    def signed(self, parts: _Children) -> Term:
        sign, term = parts
        if not isinstance(term, Scalar) or term.kind != "N" or str(term.content).startswith("-"):
            raise malformed("Unexpected operator")
        return Scalar("N", f"-{term.content}", sign) if sign == "-" else term

    def string(self, parts: _Children) -> Term:
        return Scalar("S", _unquoted(parts[0]), parts[0])

    def number(self, parts: _Children) -> Term:
        return Scalar("N", str(parts[0]), parts[0])

    def truth(self, parts: _Children) -> Term:
        return Scalar("BOOL", parts[0].lower() == "true", parts[0])

    def null(self, parts: _Children) -> Term:
        return Scalar("NULL", True, parts[0])

    def missing(self, parts: _Children) -> Term:
        return Missing(parts[0])

    def parameter(self, parts: _Children) -> Term:
        self.parameters += 1
        return Placeholder(self.parameters - 1, parts[0])

    def sequence(self, parts: _Children) -> Term:
        return _collection("list", parts)

    def bag(self, parts: _Children) -> Term:
        return _collection("bag", parts)

    def record(self, parts: _Children) -> Term:
        token, *pairs = parts
        return Tuple(tuple([pair for pair in pairs if pair is not None]), token)

    def pair(self, parts: _Children) -> tuple[str, Term]:
        return _unquoted(parts[0]), parts[1]

    def call(self, parts: _Children) -> Term:
        token, *arguments = parts
        self._count()
        return Call(token.lower(), tuple([argument for argument in arguments if argument is not None]), token)

    # --- paths ---

    def path(self, parts: _Children) -> Attribute:
        steps = [part for part in parts if not isinstance(part, Token) or part.type != "OPEN_LIST"]
        return Attribute(tree.Path(tuple([_unquoted(s) if isinstance(s, Token) else s for s in steps])), parts[0])

    def index(self, parts: _Children) -> int:
        if not parts[0].isdigit() or len(parts[0]) > _INDEX_DIGITS_MAX:
            raise malformed("Unexpected term")
        return int(parts[0])

    def key(self, parts: _Children) -> str:
        return _unquoted(parts[0])

    def name(self, parts: _Children) -> Token:
        return cast(Token, parts[0])


_INDEX_DIGITS_MAX = 9


def _collection(kind: Any, parts: _Children) -> Term:
    opening = [part for part in parts if isinstance(part, Token)]
    members = tuple([part for part in parts if not isinstance(part, Token)])
    return Collection(kind, members, opening[0] if opening else members[0].token)


def _unquoted(token: Token) -> str:
    """The text of a string or name, without its quotes; doubled ones inside stand for one."""
    quote = token[0]
    if quote in "'\"":
        return token[1:-1].replace(quote * 2, quote)
    return str(token)


def _column(path: tree.Path, number: int) -> str:
    """What a projected path is called in the answer: as its last step, or by its number if that is an index."""
    last = path.steps[-1]
    return last if isinstance(last, str) else f"_{number}"


def _source(names: Sequence[Token], write: bool = False) -> statements.Source:
    parts = [_unquoted(name) for name in names]
    if len(parts) > 2:
        raise validation("A path may contain at most 2 components in the FROM clause")
    if not all(parts):
        raise validation("Path component cannot be an empty string")
    if write and len(parts) > 1:
        raise validation("This operation is not supported on an index")
    return statements.Source(*parts)


def _check_alias(alias: bool | None) -> None:
    if alias:
        raise validation("Aliasing is not supported")
