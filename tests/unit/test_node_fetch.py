"""A follower's lane goes on, whatever became of reading the entries that it lacks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from replication.effects import Fetch
from replication.messages import NORMAL, Entry
from storagenode.hosted import HostedReplica
from storagenode.links import PeerLink
from storagenode.log.errors import LogCorrupt, LogTrimmed, LogUnreadable
from storagenode.node import READ_AGAIN_SECONDS, StorageNode

ENTRIES = (Entry(1, 25, b"x", NORMAL),)


class Node:
    """What `StorageNode._fetch` uses of its node, its link and its replica."""

    def __init__(self, outcome: object) -> None:
        self.outcome = outcome
        self.slept = 0.0
        self.handed: list[object] = []
        self.woken: list[int] = []
        self.snapshots = SimpleNamespace(let_go=lambda _: None)
        self.replica = SimpleNamespace(fetched=lambda _, entries: entries or None, has_for=lambda _: True)
        self.partition_id = 2

    async def read_log(self, *_: object) -> object:
        """Entries, or what is raised."""
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    async def sleep(self, seconds: float) -> None:
        """Count the time."""
        self.slept += seconds

    def fetched(self, _: object, append: object) -> None:
        """The link's."""
        self.handed.append(append)

    def wake(self, _: object, peer: int) -> None:
        """The link's."""
        self.woken.append(peer)


@pytest.mark.parametrize(
    ("outcome", "pause"),
    [
        (ENTRIES, 0.0),
        (LogTrimmed("gone"), 0.0),
        (LogUnreadable(1, 0, "the disk fails"), READ_AGAIN_SECONDS),
        (LogCorrupt(1, 0, "a flipped bit"), READ_AGAIN_SECONDS),
        (KeyError(2), READ_AGAIN_SECONDS),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_the_lane_is_woken_after_every_outcome(outcome: object, pause: float) -> None:
    node: Any = Node(outcome)
    await StorageNode._fetch(node, cast(PeerLink, node), cast(HostedReplica, node), Fetch(4, 25, 1_000))
    assert node.woken == [4]
    assert node.slept == pause
    assert node.handed == [ENTRIES if outcome is ENTRIES else None]
