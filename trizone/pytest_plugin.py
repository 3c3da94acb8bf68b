"""The pytest plugin: a `trizone` fixture that gives the endpoint of a cluster inside the test process.

def test_orders(trizone):
    dynamodb = boto3.resource("dynamodb", endpoint_url=trizone, region_name="us-east-1", ...)
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def trizone() -> Iterator[str]:
    """The endpoint (http://127.0.0.1:PORT) of an empty cluster, started when first asked for, one for the whole run."""
    from trizone.cluster import Cluster

    with Cluster() as cluster:
        yield cluster.endpoint
