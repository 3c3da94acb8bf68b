"""What Trizone's dashboards show, as data: rows of panels with their PromQL.

Grafana replaces `$table`, `$index`, `$partition` and `$instance` by what is chosen, and `$__rate_interval` by a fitting
time.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Query:
    """One expression; `legend` names its series."""

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """One picture: lines over time, or with `single` the newest value of each series.

    `unit` is Grafana's name of one. With `good_below` values from there on are shown in red.
    """

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str = "short"
    single: bool = False
    good_below: float | None = None
    good_above: float | None = None
    width: int = 8


@dataclass(frozen=True)
class Board:
    """A dashboard. `variables` maps names to the label_values(…) that they are chosen from."""

    uid: str
    title: str
    description: str
    rows: tuple[tuple[str, tuple[Panel, ...]], ...]
    variables: dict[str, str] = field(default_factory=dict)
