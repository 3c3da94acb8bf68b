"""Throughput, errors and leader changes of a run by second, with the faults marked: as JSON, and as a picture."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape

from tests.chaos.conftest import Report
from tests.chaos.load import Load
from tests.chaos.real_cluster import RealCluster
from trizone.data_directory import DataDirectory
from trizone.readiness import http_get

SAMPLE_S = 0.5
_WON = re.compile(rb"^trizone_storagenode_elections_won_total (\d+)", re.MULTILINE)

WIDTH, LEFT, PANEL, GAP = 1_000, 60, 110, 40
NAMES_MAX = 16
"""With more faults than this their names would cover each other."""


@dataclass(frozen=True)
class Marked:
    """One fault. `at` and `until` are monotonic seconds."""

    name: str
    at: float
    until: float


@dataclass
class LeaderWatch:
    """How often anybody began to lead, as the nodes count it. Times are monotonic seconds."""

    changes: list[float] = field(default_factory=list)
    _won: dict[str, int] = field(default_factory=dict)

    async def look(self, cluster: RealCluster) -> None:
        """Ask every node how many elections it has won since it started."""
        run = DataDirectory(cluster.data).run_file()
        nodes = [] if run is None else [process for process in run.processes if process.role == "storagenode"]
        pages = await asyncio.gather(*(http_get(node.metrics, "/metrics") for node in nodes))
        for node, page in zip(nodes, pages, strict=True):
            if (match := _WON.search(page or b"")) is None:
                continue
            won, before = int(match[1]), self._won.get(node.name)
            new = 0 if before is None else won - before if won >= before else won  # it began anew
            self.changes += [time.monotonic()] * new
            self._won[node.name] = won


@asynccontextmanager
async def watched_leaders(cluster: RealCluster) -> AsyncIterator[LeaderWatch]:
    """Watch for as long as the block runs."""
    watch = LeaderWatch()

    async def look_again() -> None:
        while True:
            await watch.look(cluster)
            await asyncio.sleep(SAMPLE_S)

    task = asyncio.create_task(look_again())
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.wait([task])


def by_second(times: Iterable[float], began: float, seconds: int) -> list[int]:
    """How many of the times lie in each second since `began`."""
    counts = [0] * seconds
    for at in times:
        if 0 <= at - began < seconds:
            counts[int(at - began)] += 1
    return counts


def write_timeline(
    report: Report, name: str, load: Load, watch: LeaderWatch, faults: Sequence[Marked], began: float, ended: float
) -> None:
    """`name`-timeline.json and `name`-timeline.svg."""
    seconds = int(ended - began) + 1
    rows = {
        "writes acknowledged": by_second((write.ended for write in load.acknowledged), began, seconds),
        "writes failed for good": by_second((failure.at for failure in load.failed), began, seconds),
        "leader changes": by_second(watch.changes, began, seconds),
    }
    marked = [Marked(fault.name, fault.at - began, fault.until - began) for fault in faults]
    content: dict[str, Any] = {
        "seconds": seconds,
        "by_second": rows,
        "faults": [{"name": m.name, "at": round(m.at, 3), "until": round(m.until, 3)} for m in marked],
    }
    report.write(f"{name}-timeline", content)
    report.draw(f"{name}-timeline", picture(rows, marked, seconds))


def picture(rows: dict[str, list[int]], faults: Sequence[Marked], seconds: int) -> str:
    """One panel for each row of numbers by second, above each other; faults are shaded across all of them. SVG."""
    scale = (WIDTH - LEFT) / seconds
    height = len(rows) * (PANEL + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 20} {height}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/>'
    ]
    for fault in faults:
        x, width = LEFT + fault.at * scale, max((fault.until - fault.at) * scale, 1.0)
        parts.append(
            f'<rect x="{x:.1f}" y="{GAP / 2}" width="{width:.1f}" height="{height - GAP}" fill="#d33" opacity="0.18">'
            f"<title>{escape(fault.name)}</title></rect>"
        )
        if len(faults) <= NAMES_MAX:
            parts.append(f'<text x="{x:.1f}" y="{GAP / 2 - 6}" font-size="8">{escape(fault.name)}</text>')
    for number, (name, values) in enumerate(rows.items()):
        parts += _panel(name, values, GAP + number * (PANEL + GAP), scale)
    parts += [
        f'<text x="{LEFT + second * scale:.1f}" y="{height - 8}" text-anchor="middle">{second} s</text>'
        for second in range(0, seconds + 1, max(1, seconds // 10))
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(name: str, values: Sequence[int], top: float, scale: float) -> list[str]:
    most = max([*values, 1])
    bars = [
        f'<rect x="{LEFT + second * scale:.1f}" y="{top + PANEL * (1 - value / most):.1f}" '
        f'width="{max(scale, 0.5):.2f}" height="{PANEL * value / most:.1f}"/>'
        for second, value in enumerate(values)
        if value
    ]
    return [
        f'<text x="{LEFT}" y="{top - 4}">{escape(name)} by second</text>',
        f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{most}</text>',
        f'<line x1="{LEFT}" y1="{top + PANEL}" x2="{WIDTH}" y2="{top + PANEL}" stroke="#888"/>',
        f'<g fill="#258">{"".join(bars)}</g>',
    ]
