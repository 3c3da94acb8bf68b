"""Whether a user may do what a request asks for.

A request comes to one or more `Ask`s (router/asks.py): an action on a resource. Each is judged by the user's policies
and by the table's own, as IAM does within one account: a Deny anywhere denies, else an Allow anywhere allows, else it
is denied. What conditions speak of is only gathered when a policy that applies has any.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from cluster.topology import Topology
from dynamo.errors import ApiError, resource_not_found
from dynamo.policy import Statement, Verdict, condition_keys, policy_of, verdict
from dynamo.policy_conditions import Context
from router.asks import Ask, asks_of
from router.context import ACCOUNT_ID
from router.credentials import Account

RESOURCE_STATEMENTS_MAX = 4_096
SURE_MAX = 4_096
SINGLE_TABLE = frozenset({"GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan"})


class UnknownTable(Exception):  # noqa: N818 - a question, not a fault
    """A request names a table that this catalog does not have: a newer one may, with a policy of its own."""


class Circumstances(NamedTuple):
    """What conditions may ask about a request beside its content: the client's address, whether it came by HTTPS, and
    when, in seconds since the epoch."""

    address: str
    secure: bool
    now: float

    def context(self, region: str, wanted: AbstractSet[str]) -> dict[str, tuple[str, ...]]:
        """By condition keys."""
        known: dict[str, tuple[str, ...]] = {
            "aws:securetransport": ("true" if self.secure else "false",),
            "aws:requestedregion": (region,),
        }
        if "aws:epochtime" in wanted:
            known["aws:epochtime"] = (str(int(self.now)),)
        if "aws:currenttime" in wanted:
            known["aws:currenttime"] = (datetime.fromtimestamp(int(self.now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),)
        if self.address:
            known["aws:sourceip"] = (self.address,)
        return known


def check_access(
    account: Account,
    operation: str,
    body: dict[str, Any],
    topology: Topology,
    circumstances: Circumstances,
    region: str,
    *,
    final: bool = False,
) -> None:
    """Returns if the user may do all of it. Raises ApiError (`AccessDeniedException`); UnknownTable when a newer
    catalog has to be asked first, unless `final` says that it was."""
    if account.admin:
        return
    asked = list(asks_of(operation, body, region))
    for ask in asked:
        _check(account, ask, topology, circumstances, region, final)
    _keep_if_sure(account, operation, body, asked)


def is_sure(account: Account, operation: str, body: dict[str, Any], topology: Topology) -> bool:
    """Whether the same was asked before, and allowed by policies that look at nothing else. The short way for most
    requests; it leaves out what a table's own policy could say."""
    name = body.get("TableName")
    if name is None or (operation, name, body.get("IndexName")) not in account.sure:
        return False
    table = topology.table_named(name)
    return table is not None and not table.resource_policy


def _keep_if_sure(account: Account, operation: str, body: dict[str, Any], asks: list[Ask]) -> None:
    """Keep what one statement allows and no statement that applies has conditions for."""
    if operation not in SINGLE_TABLE or len(asks) != 1:
        return
    own, wanted = account.applicable(asks[0].action, asks[0].resource)
    if own and not wanted and not any(each.deny for each in own):
        if len(account.sure) >= SURE_MAX:
            account.sure.clear()
        account.sure.add((operation, body["TableName"], body.get("IndexName")))


def _check(
    account: Account, ask: Ask, topology: Topology, circumstances: Circumstances, region: str, final: bool
) -> None:
    own, wanted = account.applicable(ask.action, ask.resource)
    table = topology.table_named(ask.table) if ask.table else None
    if table is None and ask.table and ask.exists and not final:
        if any(each.deny and not each.conditions for each in own):
            raise denied(account.arn, ask, "with an explicit deny in an identity-based policy")
        raise UnknownTable
    of_table = (
        _resource_statements(table.resource_policy, account.arn, ask.action, ask.resource)
        if table is not None and table.resource_policy
        else ()
    )
    wanted |= condition_keys(of_table)
    context: Context = {}
    if wanted:
        context = {**account.context, **circumstances.context(region, wanted), **ask.details(table, wanted)}
    by_user, by_table = verdict(own, context), verdict(of_table, context)
    if by_user is Verdict.DENY:
        raise denied(account.arn, ask, "with an explicit deny in an identity-based policy")
    if by_table is Verdict.DENY:
        raise denied(account.arn, ask, "with an explicit deny in a resource-based policy")
    if by_user is Verdict.NOTHING and by_table is Verdict.NOTHING:
        raise denied(account.arn, ask, f"because no identity-based policy allows the {ask.action} action")
    if table is None and ask.table and ask.exists and wanted:
        raise resource_not_found()  # at once: a table made this moment would be used without its keys being judged


@lru_cache(maxsize=RESOURCE_STATEMENTS_MAX)
def _resource_statements(document: str, arn: str, action: str, resource: str) -> tuple[Statement, ...]:
    """The statements of a table's policy that speak of this user doing this."""
    try:
        policy = policy_of(document, of_resource=True)
    except ApiError:  # of a newer version: it may deny
        return policy_of(_NOBODY, of_resource=True)
    return tuple(each for each in policy if each.names(arn, ACCOUNT_ID) and each.applies(action, resource, {}))


_NOBODY = '{"Statement": {"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"}}'


def denied(arn: str, ask: Ask, reason: str) -> ApiError:
    """`AccessDeniedException` as DynamoDB words it."""
    return ApiError(
        "AccessDeniedException",
        f"User: {arn} is not authorized to perform: {ask.action} on resource: {ask.resource} {reason}",
    )
