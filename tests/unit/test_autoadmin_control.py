"""What a leader may answer from its catalog alone, and what it may not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from autoadmin.catalog import Catalog, Change, first_change
from autoadmin.executor import Control
from autoadmin.member import LeadershipLost, Member, NotLeader
from dynamo.errors import ApiError, resource_in_use
from tests.integration.autoadmin_world import ManualClock
from tests.unit.autoadmin_samples import CLUSTER


class FakeMember:
    """Commits at once, or loses leadership first."""

    def __init__(self, control: Control) -> None:
        self.serving = self.may_read = True
        self.loses = False
        self._control = control

    def propose(self, change: Change) -> asyncio.Future[bool]:
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self.loses:
            done.set_exception(LeadershipLost())
        else:
            done.set_result(self._control.apply(change))
        return done


@pytest.fixture
async def control() -> Control:
    made = Control(CLUSTER, ManualClock())
    made.replicate_by(cast(Member, FakeMember(made)))
    return made


def member_of(control: Control) -> FakeMember:
    return cast(FakeMember, control._member)


def _refuses(_: Catalog) -> Change | None:
    raise resource_in_use("Table already exists: t")


def _first(catalog: Catalog) -> Change | None:
    return None if catalog.topology.version else first_change(CLUSTER)


async def test_a_change_is_known_once_it_is_committed(control: Control) -> None:
    assert (await control.change(_first)).at == (1, 1)
    assert (await control.change(_first)).at == (1, 1)


async def test_a_member_that_does_not_lead_changes_nothing(control: Control) -> None:
    member_of(control).serving = False
    with pytest.raises(NotLeader):
        await control.change(_first)
    assert control.topology.at == (0, 0)


async def test_a_change_whose_leader_was_lost_is_in_doubt(control: Control) -> None:
    member_of(control).loses = True
    with pytest.raises(LeadershipLost):
        await control.change(_first)


@pytest.mark.parametrize("make", [_refuses, lambda _: None])
async def test_without_a_lease_nothing_is_said_that_rests_on_the_catalog_alone(
    control: Control, make: Callable[[Catalog], Change | None]
) -> None:
    member_of(control).may_read = False
    with pytest.raises(NotLeader):
        await control.change(make)


async def test_with_a_lease_a_refusal_is_the_callers(control: Control) -> None:
    with pytest.raises(ApiError, match="Table already exists"):
        await control.change(_refuses)


async def test_a_change_that_does_not_fit_is_void_on_every_member(control: Control) -> None:
    await control.change(_first)
    before = control.catalog
    assert not control.apply(first_change(CLUSTER))
    assert control.catalog is before
