"""Writes deploy/grafana/dashboards/*.json. Run it as `python -m tools.dashboards` after a change beside this file."""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
)

from tools.dashboards.control import CONTROL, REGIONS
from tools.dashboards.model import Board, Panel
from tools.dashboards.nodes import NODE
from tools.dashboards.overview import OVERVIEW
from tools.dashboards.tables import PARTITION, TABLE

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "grafana" / "dashboards"
BOARDS = (OVERVIEW, TABLE, PARTITION, NODE, REGIONS, CONTROL)
HEIGHT = 7
SOURCE = DataSourceRef(type_val="prometheus", uid="prometheus")


def render(board: Board) -> str:
    """The dashboard's JSON."""
    made = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.description)
        .tags(["trizone"])
        .refresh("10s")
        .time("now-30m", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
    )
    for name, values in board.variables.items():
        made = made.with_variable(
            dashboard.QueryVariable(name)
            .label(name.capitalize())
            .datasource(SOURCE)
            .query(values)
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(True)
            .include_all(True)
            .all_value(".*")
        )
    for title, panels in board.rows:
        made = made.with_row(dashboard.Row(title))
        for panel in panels:
            made = made.with_panel(_picture(panel))
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def _picture(panel: Panel) -> stat.Panel | timeseries.Panel:
    picture: stat.Panel | timeseries.Panel = stat.Panel() if panel.single else timeseries.Panel().fill_opacity(10)
    picture = (
        picture.title(panel.title)
        .description(panel.description)
        .datasource(SOURCE)
        .unit(panel.unit)
        .span(panel.width)
        .height(HEIGHT)
        .min(0)
    )
    if (thresholds := _thresholds(panel)) is not None:
        picture = picture.thresholds(thresholds)
    for number, query in enumerate(panel.queries):
        picture = picture.with_target(
            prometheus.Dataquery().expr(query.expression).legend_format(query.legend).ref_id(chr(ord("A") + number))
        )
    return picture


def _thresholds(panel: Panel) -> dashboard.ThresholdsConfig | None:
    if panel.good_below is None and panel.good_above is None:
        return None
    colors = ("green", "red") if panel.good_below is not None else ("red", "green")
    turn = panel.good_below if panel.good_below is not None else panel.good_above
    steps = [Threshold(value=None, color=colors[0]), Threshold(value=turn, color=colors[1])]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def main() -> None:
    """Write all dashboards."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for board in BOARDS:
        (FOLDER / f"{board.uid}.json").write_text(render(board))


if __name__ == "__main__":
    main()
