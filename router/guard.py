"""The guard at the gate: who sends a request, and whether it may do what it asks for.

`enforce` refuses, in DynamoDB's words. `warn` lets everything pass, and counts and logs what would have been refused.
With `off` there is no guard.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dynamo.errors import ApiError
from router.access import Circumstances, UnknownTable, check_access, is_sure
from router.credentials import Account, Credentials
from router.sigv4 import Request, Verifier

if TYPE_CHECKING:
    from cluster.topology import Topology

WARN_SECONDS = 60.0
WARNED_MAX = 1_000


class Caller(NamedTuple):
    """Who sent a request: `account` is None where nobody was made out, which only `warn` lets pass."""

    access_key: str
    account: Account | None
    circumstances: Circumstances


_log = logging.getLogger(__name__)


class Guard:
    """Verifies and judges. `wall` is the time in seconds since the epoch."""

    def __init__(
        self,
        mode: Literal["warn", "enforce"],
        credentials: Credentials,
        region: str,
        wall: Callable[[], float],
        topology: Callable[[], Topology],
    ) -> None:
        self.refusals: dict[str, int] = {}
        self._enforces = mode == "enforce"
        self._verifier = Verifier(region, credentials.find)
        self._region = region
        self._wall = wall
        self._topology = topology
        self._warned: dict[tuple[str, str], float] = {}

    def authenticate(self, request: Request, address: str, secure: bool) -> Caller:
        """Who signed the request. Raises ApiError."""
        now = self._wall()
        circumstances = Circumstances(address, secure, now)
        try:
            access_key, key = self._verifier.verify(request, now)
        except ApiError as error:
            self._refuse(error, address, "")
            return Caller("", None, circumstances)
        return Caller(access_key, key.account, circumstances)

    def authorize(self, caller: Caller, operation: str, body: dict[str, Any], *, final: bool = False) -> None:
        """Whether the caller may do it. Raises ApiError, and UnknownTable unless `final`: see `check_access`."""
        account = caller.account
        if account is None or account.admin:
            return
        topology = self._topology()
        if is_sure(account, operation, body, topology):
            return
        try:
            check_access(account, operation, body, topology, caller.circumstances, self._region, final=final)
        except UnknownTable:
            if self._enforces:
                raise
        except ApiError as error:
            if error.type != "AccessDeniedException":
                raise  # the request cannot be understood, whoever sent it
            self._refuse(error, caller.circumstances.address, account.name)

    def _refuse(self, error: ApiError, address: str, user: str) -> None:
        self.refusals[error.type] = self.refusals.get(error.type, 0) + 1
        if self._enforces:
            raise error
        now = self._wall()
        place = (error.type, user or address)
        if now - self._warned.get(place, -WARN_SECONDS) >= WARN_SECONDS:
            if len(self._warned) >= WARNED_MAX:
                self._warned.clear()
            self._warned[place] = now
            _log.warning("would be refused if auth were enforced: %s (from %s)", error, address or "an unknown address")
