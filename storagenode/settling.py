"""Brings to an end what coordinators of transactions have left behind: marks on items, and rows of the ledger.

A leader looks at the marks of its partition and, if the partition is the ledger's, at its rows. What is old enough that
its coordinator has probably died is settled through the ledger (`cluster.settlement`), which is right even if the
coordinator lives: then only one of the two decides. So ages are a matter of haste, not of safety.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from cluster import ledger
from cluster.clock import Clock
from cluster.ledger import Place, Row, ledger_call, row_of
from cluster.requests.executor import Executor as RequestExecutor
from cluster.settlement import finish, settle
from cluster.topology import Topology
from dynamo import codec
from dynamo.errors import ApiError
from dynamo.keys import next_key
from dynamo.table import Table
from storagenode.hosted import HostedReplica

SWEEP_SECONDS = 0.25
MARK_SECONDS = 2.0
"""A mark is settled once this node, leading, has seen it for so long: longer than a new leader takes to serve, as a
rule, which a coordinator may be waiting for. Calendars play no part, as those of two leaders may differ."""
SLICE_ROWS = 256
"""Rows of the ledger looked at in one sweep."""
WALK_SECONDS = 2.0
"""Between the end of a walk through all rows and the next."""
UNDER_WAY_MAX = 64
"""Attempts that are settled at the same time."""

_log = logging.getLogger(__name__)


class SettlingHost(Protocol):
    """What settling needs of its node."""

    clock: Clock

    @property
    def topology(self) -> Topology:
        """The newest view of catalog and map."""
        ...

    def hosted_all(self) -> Iterator[HostedReplica]:
        """Every replica on this node."""
        ...

    def start_work(self, work: Coroutine[Any, Any, None]) -> object:
        """Run `work` beside everything else; its failure stops the node."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


@dataclass(slots=True)
class _Walk:
    """A walk through the rows of a ledger partition: where it goes on, and not before when."""

    start: bytes = b""
    not_before: float = 0.0


class Settling:
    """All that a node settles."""

    def __init__(self, host: SettlingHost, requests: RequestExecutor) -> None:
        self._host = host
        self._requests = requests
        self._under_way: set[tuple[int, bytes]] = set()  # (partition, attempt, or transaction of a row)
        self._seen: dict[int, dict[bytes, float]] = {}  # partition → attempt → since when
        self._walks: dict[int, _Walk] = {}  # by ledger partition
        self.settled = 0

    async def run(self) -> None:
        """Look at marks and rows again and again, until cancelled."""
        while True:
            await self._host.sleep(SWEEP_SECONDS)
            self.sweep()

    def sweep(self) -> None:
        """One look at every partition that is led here."""
        now_ms = self._now_ms()
        for hosted in self._host.hosted_all():
            if not hosted.serving:
                self._walks.pop(hosted.partition_id, None)
                self._seen.pop(hosted.partition_id, None)
                continue
            self._sweep_marks(hosted)
            table = self._host.topology.table(hosted.table_id)
            if table is not None and table.internal == ledger.PURPOSE:
                self._sweep_rows(hosted, now_ms)

    def _start(self, hosted: HostedReplica, what: bytes, work: Coroutine[Any, Any, None]) -> None:
        """Do this in the background, unless it is under way already or too much else is."""
        key = (hosted.partition_id, what)
        if key in self._under_way or len(self._under_way) >= UNDER_WAY_MAX:
            work.close()
            return
        self._under_way.add(key)
        self._host.start_work(self._guarded(key, work))

    async def _guarded(self, key: tuple[int, bytes], work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
            self.settled += 1
        except ApiError as error:  # the next sweep tries again
            _log.debug("a transaction in partition %d is not settled yet: %s", key[0], error)
        finally:
            self._under_way.discard(key)

    # --- marks ---

    def _sweep_marks(self, hosted: HostedReplica) -> None:
        attempts: dict[bytes, tuple[bytes, list[Place]]] = {}
        for key, mark in hosted.partition.marks.items():
            _, items = attempts.setdefault(mark.attempt, (mark.transaction, []))
            items.append(Place(hosted.table_id, key))
        now = self._host.clock.boottime()
        before = self._seen.get(hosted.partition_id, {})
        self._seen[hosted.partition_id] = {attempt: before.get(attempt, now) for attempt in attempts}
        for attempt, since in self._seen[hosted.partition_id].items():
            if now - since >= MARK_SECONDS:
                transaction, items = attempts[attempt]
                self._start(hosted, attempt, self._settle(transaction, attempt, items))

    async def _settle(self, transaction: bytes, attempt: bytes, items: list[Place]) -> None:
        committed = await settle(self._requests, self._host.topology, transaction, attempt, self._now_ms())
        await finish(self._requests, self._host.topology, attempt, items, commit=committed)
        _log.info("marks of a transaction that was left are %s", "committed" if committed else "cancelled")

    # --- rows of the ledger ---

    def _sweep_rows(self, hosted: HostedReplica, now_ms: int) -> None:
        walk = self._walks.setdefault(hosted.partition_id, _Walk())
        now = self._host.clock.boottime()
        if now < walk.not_before:
            return
        with closing(hosted.store.scan(walk.start, b"")) as found:
            rows = list(islice(found, SLICE_ROWS))
        if len(rows) == SLICE_ROWS:
            walk.start = next_key(rows[-1][0])
        else:
            walk.start, walk.not_before = b"", now + WALK_SECONDS
        for _, stored in rows:
            age_ms = now_ms - codec.stamp_milliseconds(codec.header_of(stored).stamp)
            if age_ms > ledger.ROW_MS and (row := row_of(codec.body_of(stored))) is not None:
                self._start(hosted, row.transaction, self._forget(row))

    async def _forget(self, row: Row) -> None:
        """Take a row away whose time is over. Nobody may hold marks any more of what it says was committed."""
        if row.attempt:
            await finish(self._requests, self._host.topology, row.attempt, row.items, commit=True)
        await self._requests.call(ledger_call(self._ledger(), ledger.forget(row)))

    def _ledger(self) -> Table:
        table = self._host.topology.internal_table(ledger.PURPOSE)
        assert table is not None, "the row was read from it"
        return table

    def _now_ms(self) -> int:
        return int(self._host.clock.wall() * 1000)
