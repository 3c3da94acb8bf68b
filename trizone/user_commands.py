"""`trizone user`: users of a running cluster, their access keys and policies."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trizone.errors import CommandError

if TYPE_CHECKING:
    from dynamo.user import AccessKey, User
    from trizone.users import NewKey, Users, Work

SESSION_HOURS_MAX = 36

Parser = TypeVar("Parser", bound=argparse.ArgumentParser)


def add_user_commands(
    commands: argparse._SubParsersAction[Parser], parser_class: type[Parser], data_default: Path
) -> None:
    """Add `trizone user …` to the command line."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--data", type=Path, metavar="DIR", default=data_default, help="of trizone up (./data); or:")
    shared.add_argument("--config", metavar="FILE", action="append", default=[], help="a router's settings (TOML)")
    shared.add_argument("--key-file", type=Path, metavar="FILE", help="the key that seals secrets")
    shared.add_argument("--json", action="store_true", help="for programs")

    user = commands.add_parser("user", help="create, change and list users, their access keys and policies")
    actions = user.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=parser_class)

    def command(place: Any, name: str, run: Callable[[argparse.Namespace], int], text: str, *arguments: str) -> Any:
        made = place.add_parser(name, help=text, parents=[shared])
        for argument in arguments:
            made.add_argument(argument, metavar=argument.upper())
        made.set_defaults(run=run)
        return made

    create = command(actions, "create", _create, "make a user, with an access key that is shown once", "name")
    create.add_argument("--admin", action="store_true", help="who may do everything")
    create.add_argument("--no-key", action="store_true", help="without an access key")
    command(actions, "list", _list, "show users, access keys and names of policies")
    command(actions, "delete", _delete, "delete a user", "name")
    session = command(actions, "session", _session, "make temporary credentials of a user", "name")
    session.add_argument("--hours", type=_hours, default=1.0, metavar="N", help="how long they are good (1)")

    key = actions.add_parser("key", help="access keys")
    keys = key.add_subparsers(dest="what", required=True, metavar="ACTION", parser_class=parser_class)
    command(keys, "create", _key_create, "make one more access key, which is shown once", "name")
    command(keys, "disable", _key_disable, "let it sign nothing until it is enabled", "name", "id")
    command(keys, "enable", _key_enable, "let it sign again", "name", "id")
    command(keys, "delete", _key_delete, "delete it", "name", "id")

    policy = actions.add_parser("policy", help="what a user may do")
    policies = policy.add_subparsers(dest="what", required=True, metavar="ACTION", parser_class=parser_class)
    put = command(policies, "put", _policy_put, "give a user a policy, or change it", "name", "policy")
    put.add_argument("file", metavar="FILE", help="the policy's document (JSON); - for standard input")
    command(policies, "show", _policy_show, "print a policy's document", "name", "policy")
    command(policies, "delete", _policy_delete, "take a policy away", "name", "policy")


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 < hours <= SESSION_HOURS_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {SESSION_HOURS_MAX}")
    return hours


# --- users ---


def _create(arguments: argparse.Namespace) -> int:
    from cluster.random_source import SystemRandom
    from dynamo.errors import ApiError
    from dynamo.user import User, check_user
    from trizone.users import new_key

    now = time.time()
    keys: tuple[AccessKey, ...] = ()
    shown: NewKey | None = None
    if not arguments.no_key:
        shown, kept = new_key(_keyring(arguments), SystemRandom(), now)
        keys = (kept,)
    user = User(arguments.name, round(now, 3), arguments.admin, keys)
    try:
        check_user(user)
    except ApiError as error:
        raise CommandError(f"{error.message}.") from None

    async def work(users: Users) -> None:
        await users.create(user)

    _with_users(arguments, work)
    _show_key(arguments, arguments.name, shown)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    async def work(users: Users) -> None:
        shown = [_shown(user) for user, _ in (await users.all()).values()]
        if arguments.json:
            print(json.dumps(shown, indent=2))
            return
        for user in shown:
            print(f"{user['name']}{'  (admin)' if user['admin'] else ''}")
            for key in user["keys"]:
                print(f"    key     {key['id']}{'  disabled' if key['disabled'] else ''}")
            for name in user["policies"]:
                print(f"    policy  {name}")
        if not shown:
            print("There is no user yet: trizone user create root --admin makes one who may do everything.")

    return _with_users(arguments, work)


def _shown(user: User) -> dict[str, Any]:
    """A user without anything secret."""
    keys = [{"id": key.id, "created": _moment(key.created), "disabled": key.disabled} for key in user.keys]
    return {
        "name": user.name,
        "admin": user.admin,
        "created": _moment(user.created),
        "keys": keys,
        "policies": sorted(user.policies),
    }


def _delete(arguments: argparse.Namespace) -> int:
    async def work(users: Users) -> None:
        await users.delete(arguments.name)

    return _with_users(arguments, work)


def _session(arguments: argparse.Namespace) -> int:
    from cluster.random_source import SystemRandom
    from trizone.users import new_session

    keyring = _keyring(arguments)

    async def work(users: Users) -> None:
        if arguments.name not in await users.all():
            raise CommandError(f"There is no user {arguments.name}.", code=1)

    _with_users(arguments, work)
    seconds = max(1, int(arguments.hours * 3600))
    _show_key(arguments, arguments.name, new_session(arguments.name, seconds, keyring, SystemRandom(), time.time()))
    return 0


# --- keys ---


def _key_create(arguments: argparse.Namespace) -> int:
    from trizone.users import add_key

    keyring = _keyring(arguments)
    made: list[NewKey] = []

    async def work(users: Users) -> None:
        made.append(await add_key(users, arguments.name, keyring))

    _with_users(arguments, work)
    _show_key(arguments, arguments.name, made[0])
    return 0


def _key_disable(arguments: argparse.Namespace) -> int:
    from dynamo.user import with_key_disabled

    return _change(arguments, lambda user: with_key_disabled(user, arguments.id, True))


def _key_enable(arguments: argparse.Namespace) -> int:
    from dynamo.user import with_key_disabled

    return _change(arguments, lambda user: with_key_disabled(user, arguments.id, False))


def _key_delete(arguments: argparse.Namespace) -> int:
    from dynamo.user import without_key

    return _change(arguments, lambda user: without_key(user, arguments.id))


# --- policies ---


def _policy_put(arguments: argparse.Namespace) -> int:
    from dynamo.user import with_policy

    document = _content(arguments.file)
    return _change(arguments, lambda user: with_policy(user, arguments.policy, document))


def _content(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CommandError(f"The policy {file} cannot be read: {reason}.") from None


def _policy_show(arguments: argparse.Namespace) -> int:
    async def work(users: Users) -> None:
        found = (await users.all()).get(arguments.name)
        document = found[0].policies.get(arguments.policy) if found else None
        if document is None:
            raise CommandError(f"The user {arguments.name} has no policy {arguments.policy}.", code=1)
        print(document)

    return _with_users(arguments, work)


def _policy_delete(arguments: argparse.Namespace) -> int:
    from dynamo.user import without_policy

    return _change(arguments, lambda user: without_policy(user, arguments.policy))


# --- parts ---


def _change(arguments: argparse.Namespace, change: Callable[[User], User]) -> int:
    async def work(users: Users) -> None:
        await users.change(arguments.name, change)

    return _with_users(arguments, work)


def _with_users(arguments: argparse.Namespace, work: Work) -> int:
    from trizone.users import settings_of, with_users

    asyncio.run(with_users(settings_of(arguments.data, arguments.config), work))
    return 0


def _keyring(arguments: argparse.Namespace) -> Any:
    from cluster.random_source import SystemRandom
    from trizone.users import key_file_of, keyring_at, settings_of

    settings = settings_of(arguments.data, arguments.config)
    return keyring_at(key_file_of(settings, arguments.key_file), SystemRandom())


def _show_key(arguments: argparse.Namespace, user: str, key: NewKey | None) -> None:
    """To standard output, and nowhere else."""
    if arguments.json:
        shown = {"user": user}
        if key is not None:
            shown |= {"access_key": key.access_key, "secret": key.secret}
            shown |= {"session_token": key.token, "expires": _moment(key.expires)} if key.token else {}
        print(json.dumps(shown, indent=2))
    elif key is not None:
        print(f"AWS_ACCESS_KEY_ID={key.access_key}\nAWS_SECRET_ACCESS_KEY={key.secret}")
        if key.token:
            print(f"AWS_SESSION_TOKEN={key.token}\n# good until {_moment(key.expires)}")
        else:
            print("# The secret is shown this once.", file=sys.stderr)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
