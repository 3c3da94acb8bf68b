"""Links between zones are cut one way and both ways, lose packets and are slow: nothing is lost, nothing invented."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.chaos.conftest import Report
from tests.chaos.trial import Trial
from tests.chaos.zoned_cluster import REGION, ZonedCluster, zone_of, zoned_cluster
from trizone.composition import zones_of

SEED = 20_265
CUT_S = 3.0
"""Longer than a lease, an election, and the time after which routers give a silent node up."""
LONG_S = 15.0
LOSS_PERCENT = 10
DELAY_S = 0.1
Harm: TypeAlias = Callable[[ZonedCluster, str], None]


def deaf_to_zones(cluster: ZonedCluster, zone: str) -> None:
    """Clients reach the zone, and it reaches the others, but their answers do not reach it."""
    cluster.zones.deafen(zone, *others(zone))


def mute_to_zones(cluster: ZonedCluster, zone: str) -> None:
    """The other zones' messages arrive, the answers do not."""
    cluster.zones.mute(zone, *others(zone))


def deaf_to_one(cluster: ZonedCluster, zone: str) -> None:
    """One of two followers is not heard."""
    cluster.zones.deafen(zone, others(zone)[0])


def cut_off(cluster: ZonedCluster, zone: str) -> None:
    """Nothing enters or leaves."""
    cluster.zones.partition(zone)


def lossy(cluster: ZonedCluster, zone: str) -> None:
    """Packets get lost both ways."""
    cluster.zones.lose(zone, LOSS_PERCENT)


def others(zone: str) -> list[str]:
    """The other zones."""
    return [other for other in zones_of(REGION) if other != zone]


def harmed(cluster: ZonedCluster, zone: str, harm: Harm, seconds: float) -> Callable[[], Awaitable[None]]:
    """The harm, for so long."""

    async def during() -> None:
        harm(cluster, zone)
        await asyncio.sleep(seconds)
        cluster.zones.heal(zone)

    return during


async def cut_links(data: Path, harms: Sequence[Harm], seconds: float, report: Report) -> None:
    """One harm after the other, each to the zone that leads most just then."""
    async with zoned_cluster(data) as cluster:
        trial = Trial(cluster, SEED)
        async with trial.working():
            for harm in harms:
                zone = zone_of(trial.leader())
                name = f"zone {zone} {harm.__name__.replace('_', ' ')}"
                report.say(f"zones: {await trial.fault(name, harmed(cluster, zone, harm, seconds))}")
    trial.write(report, "zones")
    assert list(trial.faults_found()) == []
    assert trial.load.failed == [], "two zones could serve all the time"


@pytest.mark.timeout(240)
async def test_a_zone_that_hears_nobody_and_one_that_is_cut_off_cost_nothing(tmp_path: Path, report: Report) -> None:
    await cut_links(tmp_path / "data", [deaf_to_zones, cut_off], CUT_S, report)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_links_of_every_kind_are_cut_and_lose_packets(tmp_path: Path, report: Report) -> None:
    harms = [mute_to_zones, lossy, deaf_to_one, cut_off, deaf_to_zones, lossy, cut_off, mute_to_zones]
    await cut_links(tmp_path / "data", harms, LONG_S, report)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_slow_link_slows_its_own_zone_only(tmp_path: Path, report: Report) -> None:
    node = f"{zones_of(REGION)[0]}-1"
    async with zoned_cluster(tmp_path / "data", slow=(node,)) as cluster:
        trial = Trial(cluster, SEED)
        relay = cluster.relays[node]

        async def slow() -> None:
            relay.delay = DELAY_S
            await asyncio.sleep(LONG_S)
            relay.delay = 0.0

        async with trial.working():
            report.say(f"zones: {await trial.fault(f'the link to {node} takes {DELAY_S * 1000:g} ms more', slow)}")
    assert list(trial.faults_found()) == []
    assert trial.load.failed == [], "the others could serve all the time"
