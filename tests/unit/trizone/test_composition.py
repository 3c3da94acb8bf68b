"""What `trizone up` makes of a machine."""

from __future__ import annotations

import pytest

from trizone.composition import leaders_for, zones_of
from trizone.data_directory import ClusterFile


@pytest.mark.parametrize(
    ("cores", "nodes_per_zone", "leaders"),
    [
        (1, 1, "gathered"),
        (2, 1, "gathered"),
        (5, 1, "gathered"),
        (6, 1, "spread"),
        (8, 2, "gathered"),
        (64, 2, "spread"),
    ],
)
def test_leaders_are_gathered_where_cores_are_scarce(cores: int, nodes_per_zone: int, leaders: str) -> None:
    cluster = ClusterFile("abc", "us-east-1", zones_of("us-east-1"), nodes_per_zone)
    assert leaders_for(cluster, cores) == leaders
