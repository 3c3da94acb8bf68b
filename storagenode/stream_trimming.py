"""Lets stream records go when they are old. The leader looks now and then; an entry of the log says what is gone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Protocol

from cluster.clock import Clock
from dynamo.codec import CorruptItem
from storagenode.hosted import HostedReplica
from storagenode.index_commands import encode_read
from storagenode.stream_ranges import stream_reader
from storagenode.streams import trimmed_before

LOOKS_PER_RETENTION = 4
LOOK_SECONDS_MAX = 60.0

_log = logging.getLogger(__name__)


class TrimmingHost(Protocol):
    """What trimming needs of its node."""

    clock: Clock

    def hosted_all(self) -> Iterator[HostedReplica]:
        """Every replica on this node."""
        ...

    async def breathe(self) -> None:
        """Let others run."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class StreamTrimming:
    """Trims the streams of the partitions that this node leads. `retention` in seconds."""

    def __init__(self, host: TrimmingHost, retention: float) -> None:
        self._host = host
        self._retention = retention

    async def run(self) -> None:
        """Trim until cancelled."""
        while True:
            await self._host.sleep(min(LOOK_SECONDS_MAX, self._retention / LOOKS_PER_RETENTION))
            for hosted in list(self._host.hosted_all()):
                if hosted.serving and hosted.partition.readers.streams:
                    self.trim(hosted)
                    await self._host.breathe()

    def trim(self, hosted: HostedReplica) -> None:
        """Trim one partition's streams of what is too old now."""
        before_ms = int((self._host.clock.wall() - self._retention) * 1000)
        news = {}
        for label, known in hosted.partition.readers.streams.items():
            try:
                position = trimmed_before(hosted.store, known, before_ms)
            except CorruptItem as error:
                _log.error("partition %d: stream %s cannot be trimmed: %s", hosted.partition_id, label, error)
                continue
            if position:
                news[stream_reader(label)] = position
        if news:
            hosted.propose(encode_read(news))
