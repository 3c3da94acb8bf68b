"""Users in a file of the operator's (TOML), for clusters whose users come from a secret store or a deployment:

[users.app]
admin = false
keys = { TRIZEXAMPLEEXAMPLE01 = "the secret" }
policies = { read = '{"Version": "2012-10-17", "Statement": [...]}' }
"""

from __future__ import annotations

import os
import tomllib

import msgspec

from cluster.sealing import SealError, check_private
from dynamo.errors import ApiError
from dynamo.user import AccessKey, User, check_user
from router.credentials import KnownKey


class _FileUser(msgspec.Struct, forbid_unknown_fields=True):
    admin: bool = False
    keys: dict[str, str] = msgspec.field(default_factory=dict)
    policies: dict[str, str] = msgspec.field(default_factory=dict)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    users: dict[str, _FileUser]


def read_credentials(path: str) -> list[KnownKey]:
    """The access keys in the file. Raises SealError, with one plain sentence that tells no secret."""
    try:
        with open(path, "rb") as file:
            mode, content = os.fstat(file.fileno()).st_mode, file.read()
    except OSError as error:
        raise SealError(f"The credentials file {path} cannot be read: {error.strerror}.") from None
    check_private(path, mode)
    try:
        read = msgspec.convert(tomllib.loads(content.decode()), _File)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise SealError(f"The credentials file {path} is not a TOML file.") from None
    except msgspec.ValidationError as error:
        raise SealError(f"The credentials file {path} does not fit: {str(error).replace('`', '')}.") from None
    known = [each for name, user in read.users.items() for each in _keys(name, user, path)]
    ids = [each.id for each in known]
    if len(set(ids)) < len(ids):
        raise SealError(f"The credentials file {path} has an access key twice.")
    return known


def _keys(name: str, given: _FileUser, path: str) -> list[KnownKey]:
    keys = tuple(AccessKey(id, b"-", 0.0) for id in given.keys)  # noqa: A001
    user = User(name, 0.0, given.admin, keys, given.policies)
    try:
        check_user(user)
    except ApiError as error:
        raise SealError(f"The credentials file {path} does not fit: {error.message}.") from None
    if not all(given.keys.values()):
        raise SealError(f"The credentials file {path} has an empty secret for the user {name}.")
    return [KnownKey(user, id, secret) for id, secret in given.keys.items()]  # noqa: A001
