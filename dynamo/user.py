"""Users of a cluster: their access keys, whose secrets are sealed, and their policies. Every change of one is here."""

from __future__ import annotations

import re
from hashlib import blake2b

import msgspec

from dynamo.errors import ApiError, resource_in_use, resource_not_found, validation
from dynamo.policy import policy_of
from dynamo.table import Base

NAME_SIZE_MAX = 64
KEYS_MAX = 2
"""So that one can take the other's place without a gap."""
POLICIES_MAX = 10
USERS_MAX = 1_000

_NAME = re.compile(rf"[A-Za-z0-9+=,.@_-]{{1,{NAME_SIZE_MAX}}}")
_KEY_ID = re.compile(r"[A-Za-z0-9_]{16,128}")


class AccessKey(Base, frozen=True):
    """`secret` is sealed with the cluster's key, see `cluster.sealing`; `created` in seconds since the epoch."""

    id: str
    secret: bytes
    created: float
    disabled: bool = False


class User(Base, frozen=True):
    """A user. An `admin` may do everything; what another one may do, `policies` say: documents by name."""

    name: str
    created: float
    admin: bool = False
    keys: tuple[AccessKey, ...] = ()
    policies: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def id(self) -> int:
        """The same for the same name, so that none has to be given out."""
        return int.from_bytes(blake2b(self.name.encode(), digest_size=8).digest(), "big")

    def key(self, id: str) -> AccessKey | None:  # noqa: A002
        """The access key of this id."""
        return next((key for key in self.keys if key.id == id), None)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(User)


def encode_user(user: User) -> bytes:
    """The user as JSON, for catalog and wire."""
    return _encoder.encode(user)


def decode_user(data: bytes) -> User:
    """The user that `encode_user` wrote. Unknown members (of a newer version) are ignored."""
    return _decoder.decode(data)


def check_user(user: User) -> None:
    """Whether the catalog may hold it. Raises ValidationException."""
    check_name("user", user.name)
    if len(user.keys) > KEYS_MAX:
        raise validation(f"The user {user.name} would have more than {KEYS_MAX} access keys")
    if len(user.policies) > POLICIES_MAX:
        raise validation(f"The user {user.name} would have more than {POLICIES_MAX} policies")
    for key in user.keys:
        if _KEY_ID.fullmatch(key.id) is None or not key.secret:
            raise validation(f"An access key of the user {user.name} is none: it has 16 to 128 letters and digits")
    for name, document in user.policies.items():
        check_name("policy", name)
        policy_of(document)


def check_name(kind: str, name: str) -> None:
    """Raises ValidationException for a name that none may have."""
    if _NAME.fullmatch(name) is None:
        raise validation(f"A {kind}'s name has 1 to {NAME_SIZE_MAX} of the characters A-Z a-z 0-9 + = , . @ _ -")


def user_not_found(name: str) -> ApiError:
    """For a user that does not exist."""
    return resource_not_found(f"There is no user {name}")


def with_key(user: User, key: AccessKey) -> User:
    """The user with one more access key. Raises ApiError."""
    if len(user.keys) >= KEYS_MAX:
        raise validation(f"The user {user.name} has {KEYS_MAX} access keys already; delete one first")
    return msgspec.structs.replace(user, keys=(*user.keys, key))


def without_key(user: User, id: str) -> User:  # noqa: A002
    """The user without that access key. Raises ApiError."""
    _existing(user, id)
    return msgspec.structs.replace(user, keys=tuple(key for key in user.keys if key.id != id))


def with_key_disabled(user: User, id: str, disabled: bool) -> User:  # noqa: A002
    """The user with that access key disabled, or enabled again. Raises ApiError."""
    _existing(user, id)
    keys = (msgspec.structs.replace(key, disabled=disabled) if key.id == id else key for key in user.keys)
    return msgspec.structs.replace(user, keys=tuple(keys))


def with_policy(user: User, name: str, document: str) -> User:
    """The user with this policy, in place of one of the same name. Raises ApiError."""
    changed = msgspec.structs.replace(user, policies={**user.policies, name: document})
    check_user(changed)
    return changed


def without_policy(user: User, name: str) -> User:
    """The user without this policy. Raises ApiError."""
    if name not in user.policies:
        raise resource_not_found(f"The user {user.name} has no policy {name}")
    left = {other: document for other, document in user.policies.items() if other != name}
    return msgspec.structs.replace(user, policies=left)


def user_exists(name: str) -> ApiError:
    """For a user that is to be created and exists."""
    return resource_in_use(f"There is a user {name} already")


def _existing(user: User, id: str) -> AccessKey:  # noqa: A002
    key = user.key(id)
    if key is None:
        raise resource_not_found(f"The user {user.name} has no access key {id}")
    return key
