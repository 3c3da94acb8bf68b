"""A replica that leads lets the preferred one lead, when that can take over at once."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from replication.membership import Member, Membership
from replication.timing import Timing
from storagenode.elections import HAND_OVER_ENTRIES, SETTLED_SECONDS, Elections

TIMING = Timing()
MEMBERS = Membership((1, 2, 3), 1, (Member(1, 11), Member(2, 12), Member(3, 13, log_only=True)))


class Host:
    """A node with replicas that lead, whose catalog prefers replica 2 of each."""

    def __init__(self, partitions: int = 1) -> None:
        self.now = 100.0
        self.clock = self
        self.flusher = SimpleNamespace(hanging_for=lambda: 0.0)
        self.leads = {12: SimpleNamespace(last_answer_at=self.now), 13: SimpleNamespace(last_answer_at=self.now)}
        self.preferred = 2
        self.matched = 50
        self.handed: list[tuple[int, int]] = []
        self.replicas = [self._replica(number) for number in range(1, partitions + 1)]
        peers: Any = SimpleNamespace(leads=self.leads)
        host: Any = self
        self.elections = Elections(host, peers, TIMING)

    def _replica(self, partition: int) -> Any:
        replica = SimpleNamespace(
            replica=1,
            role="leader",
            epoch=4,
            membership=MEMBERS,
            last_position=50,
            installing_peers=(),
            match_of=lambda _: self.matched,
            check_quorum=lambda _: None,
        )
        return SimpleNamespace(
            partition_id=partition,
            serving=True,
            replica=replica,
            nodes={1: 11, 2: 12, 3: 13},
            node_of=lambda replica: {1: 11, 2: 12, 3: 13}[replica],
            perform=lambda _: None,
        )

    def boottime(self) -> float:
        return self.now

    def hosted_all(self) -> Iterator[Any]:
        return iter(self.replicas)

    def preferred_leader(self, _: int) -> int:
        return self.preferred

    def hand_over(self, _: Any) -> int:
        return 0

    def hand_over_to(self, hosted: Any, to: int) -> None:
        self.handed.append((hosted.partition_id, to))
        hosted.serving = False

    def look(self, seconds: float = 0.0) -> list[tuple[int, int]]:
        """What is handed over when beats are due so much later."""
        self.now += seconds
        for beats in self.leads.values():
            beats.last_answer_at += seconds
        self.handed.clear()
        self.elections._check_leaders()
        return list(self.handed)


def test_the_preferred_leader_gets_what_has_been_led_for_a_while() -> None:
    host = Host()
    assert host.look() == []
    assert host.look(SETTLED_SECONDS - 0.1) == []
    assert host.look(0.2) == [(1, 2)]


def test_one_partition_at_a_time() -> None:
    host = Host(3)
    host.look()
    assert host.look(SETTLED_SECONDS) == [(1, 2)]
    assert host.look() == [(2, 2)]
    assert host.look() == [(3, 2)]
    assert host.look() == []


def test_a_leader_that_was_just_elected_waits() -> None:
    host = Host()
    host.look()
    host.replicas[0].replica.epoch = 5
    assert host.look(SETTLED_SECONDS) == []
    assert host.look(SETTLED_SECONDS) == [(1, 2)]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda host: setattr(host, "preferred", 0),
        lambda host: setattr(host, "preferred", 1),
        lambda host: setattr(host, "preferred", 3),
        lambda host: setattr(host, "preferred", 9),
        lambda host: setattr(host, "matched", 50 - HAND_OVER_ENTRIES - 1),
        lambda host: setattr(host, "matched", None),
        lambda host: setattr(host.replicas[0].replica, "installing_peers", (2,)),
        lambda host: setattr(host.leads[12], "last_answer_at", 0.0),
        lambda host: setattr(host.replicas[0], "serving", False),
    ],
    ids=["any", "itself", "log only", "no member", "behind", "unknown", "no state", "silent", "serves not"],
)
def test_nobody_gets_it_who_could_not_serve_at_once(spoil: Any) -> None:
    host = Host()
    host.look()
    spoil(host)
    assert host.look(SETTLED_SECONDS) == []
