"""Policies: who may do what to which tables. Documents in IAM's language, and how a request is judged by them.

A policy of a user says what that user may do; one of a table also says who. What no policy allows is denied, and what
any policy denies stays denied. Source: IAM's reference of JSON policy elements and of its evaluation logic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any

import orjson

from dynamo.errors import ApiError, validation
from dynamo.policy_conditions import Condition, ConditionError, Context, conditions_of
from dynamo.wildcards import filled, glob, variables

POLICY_SIZE_MAX = 20 * 1024
"""Bytes of UTF-8, blanks included."""
PATTERN_SIZE_MAX = 2_048
STATEMENTS_MAX = 100
VERSIONS = ("2012-10-17", "2008-10-17")
PRINCIPAL_VARIABLES = ("aws:username", "aws:userid", "aws:principalarn", "aws:principalaccount")
"""What may stand in a Resource: it is the same for all requests of a user."""

_MEMBERS = frozenset({"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Principal", "Condition"})
_ACTION = re.compile(r"\*|[a-zA-Z0-9*?-]+:[a-zA-Z0-9*?]+")
_PRINCIPAL = re.compile(r"\*|\d{12}|arn:aws[a-z-]*:iam::\d{12}:(root|user/[\w+=,.@*?/-]+)")


class Verdict(Enum):
    """What policies say of a request."""

    NOTHING = "no policy allows it"
    ALLOW = "allowed"
    DENY = "denied"


@dataclass(frozen=True, slots=True)
class Patterns:
    """Any of `texts`, or with `inverted` anything else."""

    texts: tuple[str, ...]
    inverted: bool = False

    def match(self, value: str, context: Context) -> bool:
        """Whether `value` is meant; variables get their values from `context`."""
        found = any(
            text is not None and glob(text).matches(value) for text in (filled(each, context) for each in self.texts)
        )
        return found != self.inverted


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement. `actions` are in lower case; `principals` is None in the policy of a user."""

    deny: bool
    actions: Patterns
    resources: Patterns
    conditions: tuple[Condition, ...] = ()
    principals: tuple[str, ...] | None = None

    def applies(self, action: str, resource: str, principal: Context) -> bool:
        """Whether it speaks of this action on this resource, conditions aside."""
        return self.actions.match(action.lower(), principal) and self.resources.match(resource, principal)

    def names(self, arn: str, account: str) -> bool:
        """Whether a table's policy speaks of the user with this ARN. An Allow for the whole account does not: it leaves
        it to the users' own policies, as IAM does."""
        for principal in self.principals or ():
            if principal == "*" or glob(principal).matches(arn):
                return True
            if self.deny and principal in (account, f"arn:aws:iam::{account}:root"):
                return True
        return False

    def bound(self, principal: Context) -> Statement:
        """The statement with the values of variables that say who asks."""
        return replace(self, conditions=tuple(condition.bound(principal) for condition in self.conditions))

    def holds(self, context: Context) -> bool:
        """Whether the request fulfils the conditions."""
        return all(condition.holds(context, strict=not self.deny) for condition in self.conditions)


Policy = tuple[Statement, ...]


def condition_keys(statements: Iterable[Statement]) -> frozenset[str]:
    """What the conditions of statements look at, in lower case."""
    return frozenset(condition.key for statement in statements for condition in statement.conditions)


def verdict(statements: Iterable[Statement], context: Context) -> Verdict:
    """What statements that apply to a request say of it."""
    found = Verdict.NOTHING
    for statement in statements:
        if statement.holds(context):
            if statement.deny:
                return Verdict.DENY
            found = Verdict.ALLOW
    return found


# --- documents ---


@lru_cache(maxsize=1_024)
def policy_of(document: str, *, of_resource: bool = False) -> Policy:
    """The policy that a document says; `of_resource`: of a table, with principals. Raises ValidationException, whose
    text says what is wrong."""
    if len(document.encode()) > POLICY_SIZE_MAX:
        kind = "Resource-based policy document" if of_resource else "The policy document"
        raise validation(f"{kind} is larger than {POLICY_SIZE_MAX} bytes")
    try:
        content = orjson.loads(document)
    except orjson.JSONDecodeError:
        raise _invalid("it is not JSON") from None
    if not isinstance(content, dict) or not isinstance(content.get("Statement"), list | dict):
        raise _invalid("it has no Statement")
    unknown = sorted(set(content) - {"Version", "Id", "Statement"})
    if unknown:
        raise _invalid(f"it has a member that is not known: {unknown[0]}")
    if content.get("Version", VERSIONS[0]) not in VERSIONS:
        raise _invalid(f"its Version is not {VERSIONS[0]}")
    statements = content["Statement"]
    statements = [statements] if isinstance(statements, dict) else statements
    if len(statements) > STATEMENTS_MAX:
        raise _invalid(f"it has more than {STATEMENTS_MAX} statements")
    return tuple(_statement(each, f"statement {number}", of_resource) for number, each in enumerate(statements, 1))


def _statement(content: Any, place: str, of_resource: bool) -> Statement:
    if not isinstance(content, dict):
        raise _invalid(f"{place} is not an object")
    unknown = sorted(set(content) - _MEMBERS)
    if unknown:
        raise _invalid(f"{place} has a member that is not known: {unknown[0]}")
    if content.get("Effect") not in ("Allow", "Deny"):
        raise _invalid(f"the Effect of {place} is neither Allow nor Deny")
    actions = _patterns(content, "Action", place)
    for text in actions.texts:
        if _ACTION.fullmatch(text) is None:
            raise _invalid(f"{place} has an Action that is none: {text!r}")
    resources = _patterns(content, "Resource", place)
    for text in resources.texts:
        _check_resource(text, place)
    try:
        conditions = conditions_of(content.get("Condition", {}))
    except ConditionError as error:
        raise _invalid(f"in {place}, {error}") from None
    return Statement(
        content["Effect"] == "Deny",
        Patterns(tuple(text.lower() for text in actions.texts), actions.inverted),
        resources,
        conditions,
        _principals(content, place, of_resource),
    )


def _patterns(content: dict[str, Any], name: str, place: str) -> Patterns:
    given = [each for each in (name, f"Not{name}") if each in content]
    if len(given) != 1:
        raise _invalid(f"{place} must have either {name} or Not{name}")
    texts = _texts(content[given[0]])
    if not texts or any(len(text) > PATTERN_SIZE_MAX for text in texts):
        raise _invalid(f"the {given[0]} of {place} is no text or list of texts of up to {PATTERN_SIZE_MAX} characters")
    return Patterns(texts, inverted=given[0] != name)


def _check_resource(text: str, place: str) -> None:
    if text != "*" and not text.startswith("arn:") and not text.startswith("*"):
        raise _invalid(f"{place} has a Resource that is no ARN: {text!r}")
    odd = [name for name in variables(text) if name not in PRINCIPAL_VARIABLES]
    if odd:
        raise _invalid(f"{place} has a variable in a Resource that cannot stand there: {odd[0]}")


def _principals(content: dict[str, Any], place: str, of_resource: bool) -> tuple[str, ...] | None:
    if not of_resource:
        if "Principal" in content:
            raise _invalid(f"{place} has a Principal, which only a table's policy has")
        return None
    principal = content.get("Principal")
    if isinstance(principal, dict) and set(principal) == {"AWS"}:
        principal = principal["AWS"]
    elif principal != "*":
        principal = None
    texts = _texts(principal)
    for text in texts:
        if _PRINCIPAL.fullmatch(text) is None:
            raise _invalid(f"{place} has a Principal that is no user, account or *: {text!r}")
    if not texts:
        raise _invalid(f'the Principal of {place} must be "*" or {{"AWS": …}}')
    return texts


def _texts(value: Any) -> tuple[str, ...]:
    """A text or a list of texts; empty for anything else."""
    several: Sequence[Any] = value if isinstance(value, list) else [value]
    return tuple(several) if all(isinstance(each, str) and each for each in several) else ()


def _invalid(detail: str) -> ApiError:
    return validation(f"Invalid policy document: {detail}")
