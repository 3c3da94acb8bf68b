"""Users of a running cluster: read from auto-admin's catalog, changed, and put back. Secrets are sealed here."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.configuration import read_settings
from cluster.grpc_transport import GrpcTransport
from cluster.random_source import RandomSource, SystemRandom
from cluster.sealing import Keyring, SealError, Session, make_key_file, read_keyring, session_token
from cluster.settings import RouterSettings, SettingsError
from cluster.transport import Transport, TransportError
from cluster.wire import admin_pb2, common_pb2
from dynamo.errors import ApiError
from dynamo.user import AccessKey, User, decode_user, encode_user, user_not_found, with_key
from trizone.data_directory import DataDirectory
from trizone.errors import CommandError
from trizone.operator_access import operator_security

ANSWER_S = 10.0
TRIES = 5
KEY_ID_BYTES = 10
SECRET_BYTES = 30
KEY_VARIABLE = "TRIZONE_KEY_FILE"


@dataclass(frozen=True)
class NewKey:
    """An access key as it is shown, once. `token` and `expires` (seconds since the epoch) are a session's."""

    access_key: str
    secret: str
    token: str = ""
    expires: int = 0


def default_key_file(cluster_id: str) -> Path:
    """Where the key of a cluster on this machine lies unless one says: beside the user's other settings, so that it is
    never in a data directory."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "trizone" / f"{cluster_id}.key"


def settings_of(data: Path, files: Sequence[str]) -> RouterSettings:
    """What a router of the cluster is told: its settings files, or those that `trizone up` wrote into `data`. Raises
    CommandError."""
    environment: Mapping[str, str] = os.environ
    if not files:
        directory = DataDirectory(data)
        if directory.cluster() is None:
            raise CommandError(f"There is no cluster in {directory}; name its folder with --data.")
        if not directory.in_use():
            raise CommandError(f"The cluster in {directory} is not running.", code=1)
        files, environment = [str(directory.config / "router-1.toml")], {}
    try:
        return read_settings(RouterSettings, files, environment)
    except SettingsError as error:
        raise CommandError(str(error)) from None


def key_file_of(settings: RouterSettings, given: Path | None) -> Path:
    """The cluster's key file: the one given, the settings', the environment's, or the default."""
    named = str(given or "") or settings.key_file or os.environ.get(KEY_VARIABLE, "")
    return Path(named) if named else default_key_file(settings.cluster_id)


def keyring_at(path: Path, random: RandomSource) -> Keyring:
    """The keys in the file, which is made if there is none. Raises CommandError."""
    try:
        if not path.exists():
            make_key_file(path, random)
        return read_keyring(path)
    except SealError as error:
        raise CommandError(str(error)) from None


class Users:
    """Calls to auto-admin. All raise CommandError."""

    def __init__(self, settings: RouterSettings, transport: Transport) -> None:
        self._settings = settings
        self._transport = transport

    async def all(self) -> dict[str, tuple[User, int]]:
        """Users by name, with the versions of their records."""
        request = admin_pb2.WatchRequest(cluster_id=self._settings.cluster_id).SerializeToString()
        for address in self._settings.auto_admins:
            try:
                answer = await self._transport.call(address, "Admin/Refresh", request, ANSWER_S)
            except (TransportError, OSError):
                continue
            update = common_pb2.CatalogUpdate.FromString(answer)
            if update.version:
                users = ((decode_user(record.definition), record.version) for record in update.users)
                return {user.name: (user, version) for user, version in sorted(users, key=lambda pair: pair[0].name)}
        raise CommandError("No auto-admin answers.", code=1)

    async def create(self, user: User) -> None:
        """A new user."""
        await self._call("Admin/PutUser", admin_pb2.UserRequest(name=user.name, definition=encode_user(user)))

    async def change(self, name: str, change: Callable[[User], User]) -> User:
        """The user after `change`, which is made again if somebody else was faster."""
        for _ in range(TRIES):
            known = (await self.all()).get(name)
            if known is None:
                raise CommandError(user_not_found(name).message + ".", code=1)
            try:
                user = change(known[0])
            except ApiError as error:
                raise CommandError(_sentence(error.message), code=1) from None
            request = admin_pb2.UserRequest(name=name, definition=encode_user(user), user_version=known[1])
            if await self._call("Admin/PutUser", request):
                return user
        raise CommandError(f"The user {name} is being changed by others; try again.", code=1)

    async def delete(self, name: str) -> None:
        """The user, keys and policies gone."""
        await self._call("Admin/DeleteUser", admin_pb2.UserRequest(name=name))

    async def _call(self, method: str, request: admin_pb2.UserRequest) -> bool:
        """True when it is done, False when the record has moved meanwhile."""
        request.cluster_id = self._settings.cluster_id
        for address in self._settings.auto_admins:
            try:
                answer = await self._transport.call(address, method, request.SerializeToString(), ANSWER_S)
            except (TransportError, OSError):
                continue
            reply = admin_pb2.UserReply.FromString(answer)
            if reply.in_doubt:
                raise CommandError("Auto-admin lost its leader meanwhile: see whether it was done.", code=1)
            if reply.not_leader:
                continue
            if reply.error_type == "Conflict":
                return False
            if reply.error_type:
                raise CommandError(_sentence(reply.error_message), code=1)
            return True
        raise CommandError("No auto-admin answers: users cannot be changed now.", code=1)


Work = Callable[[Users], Awaitable[None]]


async def with_users(settings: RouterSettings, work: Work) -> None:
    """Do something with a cluster's users. Raises CommandError."""
    transport = GrpcTransport(operator_security(settings))
    try:
        await work(Users(settings, transport))
    finally:
        await transport.close()


# --- credentials ---


def new_key(keyring: Keyring, random: RandomSource, now: float) -> tuple[NewKey, AccessKey]:
    """An access key to be shown, and as the catalog keeps it."""
    access_key = "TRIZ" + base64.b32encode(random.bytes(KEY_ID_BYTES)).decode()
    secret = base64.b64encode(random.bytes(SECRET_BYTES)).decode()
    sealed = keyring.seal(secret.encode(), access_key, random)
    return NewKey(access_key, secret), AccessKey(access_key, sealed, round(now, 3))


def new_session(user: str, seconds: int, keyring: Keyring, random: RandomSource, now: float) -> NewKey:
    """Temporary credentials of a user."""
    access_key = "TZST" + base64.b32encode(random.bytes(KEY_ID_BYTES)).decode()
    secret = base64.b64encode(random.bytes(SECRET_BYTES)).decode()
    expires = int(now) + seconds
    token = session_token(Session(user, secret.encode(), expires), access_key, keyring, random)
    return NewKey(access_key, secret, token, expires)


async def add_key(users: Users, name: str, keyring: Keyring) -> NewKey:
    """One more access key of the user."""
    shown, kept = new_key(keyring, SystemRandom(), time.time())
    await users.change(name, lambda user: with_key(user, kept))
    return shown


def _sentence(message: str) -> str:
    return message if message.endswith(".") else f"{message}."
