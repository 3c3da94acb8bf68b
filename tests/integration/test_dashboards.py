"""Every expression of every dashboard gives data, asked of a Prometheus that scrapes two regions under load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.launching import eventually, running
from tests.integration.monitoring import (
    PROMETHEUS,
    TABLE,
    client_of,
    expressions_of,
    load,
    make_table,
    names_known_to,
    scraping,
    targets_of,
    values_of,
)

ROOT = Path(__file__).parents[2]
DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
WAIT_S = 90.0
EAST, WEST = "us-east-1", "eu-west-1"


def metrics_named_in_the_docs() -> set[str]:
    """Whole names of metrics in docs/metrics.md; a histogram is known by its sum."""
    named = re.findall(r"`((?:trizone|process)_[a-z_]+[a-z])(?:`|{)", (ROOT / "docs" / "metrics.md").read_text())
    assert len(named) > 40
    return set(named)


@pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed (Debian: apt-get install prometheus)")
@pytest.mark.timeout(240)
def test_every_panel_has_data(tmp_path: Path) -> None:
    data = tmp_path / "cluster"
    with running("--port", "0", "--data", str(data), "--regions", f"{EAST},{WEST}") as up:
        client = client_of(up.endpoint())
        make_table(client)
        client.update_table(TableName=TABLE, ReplicaUpdates=[{"Create": {"RegionName": WEST}}])
        with scraping(tmp_path, targets_of(data / EAST, data / WEST)) as prometheus, load(client):
            missing = expressions_of(DASHBOARDS)

            def all_have_data() -> bool:
                missing[:] = [each for each in missing if not values_of(prometheus, each[1])]
                return not missing

            try:
                eventually(all_have_data, WAIT_S)
            except AssertionError:
                pytest.fail("no data for:\n" + "\n".join(f"{panel}: {expression}" for panel, expression in missing))
            assert not metrics_named_in_the_docs() - names_known_to(prometheus)
