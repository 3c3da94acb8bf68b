"""Users in the catalog: what auto-admin takes, what moves to routers and nodes, what survives a restart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from autoadmin.catalog import Catalog, Counters, first_change, with_user, without_user
from cluster.convert import update_from_wire, update_to_wire
from cluster.topology import Topology
from dynamo import user as users
from dynamo.errors import ApiError
from dynamo.user import AccessKey, User, decode_user, encode_user

ALLOW = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"dynamodb:*","Resource":"*"}]}'
KEY = AccessKey("TRIZAAAAAAAAAAAAAAAA", b"sealed", 1.0)


def empty() -> Catalog:
    change = first_change("c1")
    return Catalog(Topology().with_update(change.update), Counters())


def with_users(*several: User) -> Catalog:
    catalog = empty()
    for each in several:
        catalog = catalog.after(with_user(catalog, each, 0))
    return catalog


def named(catalog: Catalog, name: str) -> tuple[User, int]:
    (record,) = (record for record in catalog.topology.users.values() if record.user.name == name)
    return record.user, record.version


def test_a_user_travels_and_comes_back_the_same() -> None:
    ada = User("ada", 1.0, keys=(KEY,), policies={"all": ALLOW})
    assert decode_user(encode_user(ada)) == ada
    catalog = with_users(ada)
    update = update_from_wire(update_to_wire(catalog.topology.full()))
    assert Topology().with_update(update).users == catalog.topology.users


def test_a_difference_has_changed_users_and_removed_ones_only() -> None:
    catalog = with_users(User("ada", 1.0), User("bob", 1.0))
    since = catalog.topology.version
    follower = Topology().with_update(catalog.topology.full())
    catalog = catalog.after(with_user(catalog, User("eve", 1.0), 0))
    catalog = catalog.after(without_user(catalog, "ada"))
    difference = catalog.topology.difference(1, since)
    assert [record.user.name for record in difference.users] == ["eve"]
    assert difference.removed_users == (User("ada", 1.0).id,)
    assert follower.with_update(difference).users == catalog.topology.users


def test_users_stay_the_same_object_while_none_changes() -> None:
    catalog = with_users(User("ada", 1.0))
    step = with_user(with_users(), User("x", 1.0), 0).update
    nothing = type(step)("c1", 1, catalog.topology.version, catalog.topology.version + 1)
    assert catalog.topology.with_update(nothing).users is catalog.topology.users


def test_a_change_that_was_computed_from_an_older_record_is_refused() -> None:
    catalog = with_users(User("ada", 1.0))
    ada, version = named(catalog, "ada")
    catalog = catalog.after(with_user(catalog, users.with_policy(ada, "all", ALLOW), version))
    with pytest.raises(ApiError, match="Conflict"):
        with_user(catalog, users.with_key(ada, KEY), version)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda catalog: with_user(catalog, User("ada", 2.0), 0), "There is a user ada already"),
        (lambda catalog: with_user(catalog, User("eve", 2.0), 7), "There is no user eve"),
        (lambda catalog: with_user(catalog, User("eve", 2.0, keys=(KEY,)), 0), "is that of another user"),
        (lambda catalog: with_user(catalog, User("a b", 2.0), 0), "A user's name has 1 to 64"),
        (lambda catalog: with_user(catalog, User("", 2.0), 0), "A user's name has 1 to 64"),
        (lambda catalog: with_user(catalog, User("eve", 2.0, policies={"p": "{"}), 0), "it is not JSON"),
        (lambda catalog: with_user(catalog, User("eve", 2.0, keys=(KEY, KEY, KEY)), 0), "more than 2 access keys"),
        (lambda catalog: without_user(catalog, "eve"), "There is no user eve"),
    ],
)
def test_what_the_catalog_does_not_take(change: object, text: str) -> None:
    catalog = with_users(User("ada", 1.0, keys=(KEY,)))
    with pytest.raises(ApiError, match=text):
        change(catalog)  # type: ignore[operator]


def test_keys_and_policies_come_and_go() -> None:
    ada = users.with_key(User("ada", 1.0), KEY)
    disabled = users.with_key_disabled(ada, KEY.id, True)
    assert disabled.keys[0].disabled
    assert users.with_key_disabled(disabled, KEY.id, False) == ada
    assert users.without_key(ada, KEY.id).keys == ()
    assert users.without_policy(users.with_policy(ada, "all", ALLOW), "all") == ada
    changes: tuple[Callable[[], object], ...] = (
        lambda: users.without_key(ada, "none"),
        lambda: users.with_key_disabled(ada, "none", True),
        lambda: users.without_policy(ada, "none"),
        lambda: users.with_key(users.with_key(ada, KEY), KEY),
    )
    for change in changes:
        with pytest.raises(ApiError):
            change()
