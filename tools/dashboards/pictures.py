"""Draws every dashboard from a running Prometheus, for who has no Grafana at hand. Needs matplotlib.

python -m tools.dashboards.pictures http://127.0.0.1:9090 docs/images --minutes 5
"""

from __future__ import annotations

import argparse
import json
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from tools.dashboards.__main__ import BOARDS
from tools.dashboards.model import Board, Panel, Query

STEP_SECONDS = 5
RATE_INTERVAL = "30s"
COLUMNS = 3


def series_of(prometheus: str, query: Query, minutes: float) -> list[tuple[str, list[float], list[float]]]:
    """(legend, seconds before now, values) of each series of a query."""
    expression = query.expression.replace("$__rate_interval", RATE_INTERVAL)
    for variable in ("$table", "$partition", "$instance"):
        expression = expression.replace(variable, ".*")
    end = time.time()
    parameters = {"query": expression, "start": end - 60 * minutes, "end": end, "step": STEP_SECONDS}
    with urllib.request.urlopen(f"{prometheus}/api/v1/query_range?{urllib.parse.urlencode(parameters)}") as answer:
        result = json.load(answer)["data"]["result"]
    found = []
    for series in result:
        legend = query.legend or expression
        for name, value in series["metric"].items():
            legend = legend.replace("{{" + name + "}}", value)
        points = [(at - end, float(value)) for at, value in series["values"]]
        found.append((legend, [at for at, _ in points], [value for _, value in points]))
    return found


def draw(board: Board, prometheus: str, minutes: float) -> Any:
    """A figure with all panels of a dashboard."""
    from matplotlib.figure import Figure

    panels = [panel for _, row in board.rows for panel in row]
    rows = -(-len(panels) // COLUMNS)
    figure = Figure(figsize=(5 * COLUMNS, 3 * rows), layout="constrained")
    figure.suptitle(board.title)
    for number, panel in enumerate(panels, 1):
        _draw(figure.add_subplot(rows, COLUMNS, number), panel, prometheus, minutes)
    return figure


def _draw(axes: Any, panel: Panel, prometheus: str, minutes: float) -> None:
    series = [each for query in panel.queries for each in series_of(prometheus, query, minutes)]
    axes.set_title(panel.title, fontsize=9)
    axes.tick_params(labelsize=7)
    if panel.single:
        axes.barh([legend for legend, _, _ in series], [values[-1] for _, _, values in series])
    else:
        for legend, seconds, values in series:
            axes.plot([second / 60 for second in seconds], values, label=legend, linewidth=1)
        axes.set_ylim(bottom=0)
        if 0 < len(series) <= 8:
            axes.legend(fontsize=6)
    axes.set_xlabel(panel.unit if panel.single else f"minutes; {panel.unit}", fontsize=7)


def main() -> None:
    """Draw all dashboards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prometheus")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=5.0)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for board in BOARDS:
        draw(board, arguments.prometheus, arguments.minutes).savefig(arguments.folder / f"{board.uid}.png", dpi=70)


if __name__ == "__main__":
    main()
