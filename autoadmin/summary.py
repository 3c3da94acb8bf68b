"""How the cluster's partitions fare, in numbers. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from autoadmin.plans.situation import VOTERS, Situation


@dataclass(frozen=True)
class Summary:
    """Numbers of partitions and nodes.

    `degraded`: partitions with too few voters, or a wanted one that is a log replica or on a node that does not report;
    `sharing_zone`: with two voters in one zone; `changing`: whose members are being changed.
    """

    degraded: int
    sharing_zone: int
    changing: int
    nodes_silent: int
    nodes_lost: int
    nodes_draining: int


def summary(situation: Situation) -> Summary:
    """The numbers of now."""
    degraded = sharing = changing = 0
    for partition in situation.active:
        wanted = partition.wanted_voters
        degraded += len(wanted) < VOTERS or any(
            place.log_only or place.node not in situation.health.live for place in wanted
        )
        sharing += len({place.zone for place in wanted}) < len(wanted)
        changing += bool(partition.leaving)
    health = situation.health
    return Summary(degraded, sharing, changing, len(health.silent), len(health.lost), len(health.draining))
