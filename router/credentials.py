"""Who has which access key: users of the catalog, and those of the operator's file.

Secrets are opened when they are first needed, and held in memory only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from cluster.sealing import TOKEN_PREFIX, Keyring, SealError, Session, open_session
from cluster.topology import CatalogUser
from dynamo.errors import ApiError
from dynamo.policy import Statement, condition_keys, policy_of
from dynamo.user import User
from router.context import ACCOUNT_ID
from router.sigv4 import expired_token, unrecognized

SESSIONS_MAX = 1_024
APPLICABLE_MAX = 4_096

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KnownKey:
    """An access key of a user in a file, with its secret as it is."""

    user: User
    id: str
    secret: str

    def __repr__(self) -> str:
        return f"KnownKey({self.user.name}, {self.id})"


Applicable: TypeAlias = tuple[tuple[Statement, ...], frozenset[str]]


@dataclass(slots=True, eq=False)
class Account:
    """A user as requests are judged. `arn` is the user's; `context` what conditions know of the user."""

    name: str
    admin: bool
    statements: tuple[Statement, ...]
    arn: str = ""
    context: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sure: set[tuple[str, str, str | None]] = field(default_factory=set)
    """Operations on tables and indexes that policies allow whatever else a request says: see `check_access`."""
    _applicable: dict[tuple[str, str], Applicable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arn = f"arn:aws:iam::{ACCOUNT_ID}:user/{self.name}"
        self.context = {
            "aws:username": (self.name,),
            "aws:userid": (self.name,),
            "aws:principalarn": (self.arn,),
            "aws:principalaccount": (ACCOUNT_ID,),
            "aws:principaltype": ("User",),
        }
        self.statements = tuple(statement.bound(self.context) for statement in self.statements)

    def applicable(self, action: str, resource: str) -> Applicable:
        """The statements that speak of this action on this resource, and what their conditions look at; kept, as a user
        repeats a few."""
        found = self._applicable.get((action, resource))
        if found is None:
            if len(self._applicable) >= APPLICABLE_MAX:
                self._applicable.clear()
            statements = tuple(each for each in self.statements if each.applies(action, resource, self.context))
            found = (statements, condition_keys(statements))
            self._applicable[action, resource] = found
        return found


@dataclass(slots=True, eq=False)
class Key:
    """A secret and whose it is. `sealed` is how the catalog has it; `secret` is b"" until it is opened."""

    account: Account
    sealed: bytes
    secret: bytes
    disabled: bool = False


class Credentials:
    """Finds secrets and users by access key. `users` gives the catalog's users, the same object until one changes."""

    def __init__(
        self,
        users: Callable[[], Mapping[int, CatalogUser]],
        keyring: Keyring | None,
        known: Iterable[KnownKey],
        wall: Callable[[], float],
    ) -> None:
        self._users = users
        self._keyring = keyring
        self._known = tuple(known)
        self._wall = wall
        self._of: Mapping[int, CatalogUser] | None = None
        self._keys: dict[str, Key] = {}
        self._accounts: dict[str, Account] = {}
        self._sessions: dict[str, Session] = {}

    def find(self, access_key: str, token: str) -> Key:
        """The secret that requests with this key have to be signed with, and whose it is. Raises ApiError."""
        users = self._users()
        if users is not self._of:
            self._read(users)
            self._of = users
        if token:
            session = self._session(access_key, token)
            account = self._accounts.get(session.user)
            if account is None:
                raise unrecognized()
            return Key(account, b"", session.secret)
        key = self._keys.get(access_key)
        if key is None or key.disabled:
            raise unrecognized()
        if not key.secret:
            key.secret = self._opened(key.sealed, access_key)
        return key

    def _session(self, access_key: str, token: str) -> Session:
        session = self._sessions.get(f"{access_key} {token}")
        if session is None:
            if self._keyring is None or not token.startswith(TOKEN_PREFIX):
                raise unrecognized()
            try:
                session = open_session(token, access_key, self._keyring)
            except SealError:
                raise unrecognized() from None
            if len(self._sessions) >= SESSIONS_MAX:
                self._sessions.clear()
            self._sessions[f"{access_key} {token}"] = session
        if self._wall() >= session.expires:
            raise expired_token()
        return session

    def _opened(self, sealed: bytes, access_key: str) -> bytes:
        if self._keyring is None:
            _log.error("the access key %s cannot be used: this router has no key_file", access_key)
            raise unrecognized()
        try:
            return self._keyring.open(sealed, access_key)
        except SealError as error:
            _log.error("the access key %s cannot be used: %s", access_key, error)
            raise unrecognized() from None

    def _read(self, users: Mapping[int, CatalogUser]) -> None:
        """All users anew; what was opened stays so where key and sealed secret are the same."""
        before = self._keys
        self._accounts, self._keys = {}, {}
        for record in users.values():
            account = self._accounts[record.user.name] = _account(record.user)
            for key in record.user.keys:
                old = before.get(key.id)
                secret = old.secret if old is not None and old.sealed == key.secret else b""
                self._keys[key.id] = Key(account, key.secret, secret, key.disabled)
        for known in self._known:  # the operator's file wins
            account = _account(known.user)
            self._accounts[known.user.name] = account
            self._keys[known.id] = Key(account, b"", known.secret.encode())


def _account(user: User) -> Account:
    """The user with compiled policies. One that cannot be read, of a newer version perhaps, denies everything: it may
    hold a Deny."""
    statements: list[Statement] = []
    try:
        for document in user.policies.values():
            statements += policy_of(document)
    except ApiError as error:
        _log.error("user %s may do nothing: %s", user.name, error.message)
        statements = []
    return Account(user.name, user.admin, tuple(statements))
