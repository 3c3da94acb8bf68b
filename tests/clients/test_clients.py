"""Real clients work unchanged. One that cannot be installed on this machine is skipped, with the reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.environments import CLIENTS, INSTALL_SECONDS_MAX, RUN_SECONDS_MAX, Client, NotHereError, run
from trizone import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(INSTALL_SECONDS_MAX + RUN_SECONDS_MAX)]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The endpoint of a cluster inside this process, which verifies what the clients sign."""
    with Cluster(credentials=("any", "any")) as cluster:
        yield cluster.endpoint


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_client(url: str, client: Client) -> None:
    try:
        said = run(client, url)
    except NotHereError as reason:
        pytest.skip(str(reason))
    assert said == "", said
