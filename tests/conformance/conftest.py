"""The endpoint under test, a client for it, and tables that all tests share: each test uses random keys in them.

`pytest tests/conformance --url URL` tests whatever answers there, DynamoDB itself included; without it a cluster is
started inside this process.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.support import Client, Http, connect, new_table, random_name
from trizone import Cluster


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--url`."""
    parser.addoption("--url", help="endpoint to test; default: a cluster inside this process")


@pytest.fixture(scope="session")
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The endpoint."""
    given: str | None = request.config.getoption("--url", default=None)
    if given:
        yield given.rstrip("/")
        return
    with Cluster() as cluster:
        yield cluster.endpoint


@pytest.fixture(scope="session")
def client(url: str) -> Client:
    """A boto3 client that sends wrong parameters too."""
    return connect(url)


@pytest.fixture(scope="session")
def http(url: str) -> Http:
    """The endpoint without an SDK between."""
    return Http(url)


def _shared(client: Client, *keys: str) -> Iterator[str]:
    name = random_name()
    client.create_table(**new_table(name, *keys))
    client.get_waiter("table_exists").wait(TableName=name)
    yield name
    client.delete_table(TableName=name)


@pytest.fixture(scope="session")
def simple(client: Client) -> Iterator[str]:
    """A table with partition key p (S)."""
    yield from _shared(client, "p:S")


@pytest.fixture(scope="session")
def strings(client: Client) -> Iterator[str]:
    """A table with partition key p (S) and sort key c (S)."""
    yield from _shared(client, "p:S", "c:S")


@pytest.fixture(scope="session")
def numbers(client: Client) -> Iterator[str]:
    """A table with partition key p (S) and sort key c (N)."""
    yield from _shared(client, "p:S", "c:N")


@pytest.fixture(scope="session")
def binaries(client: Client) -> Iterator[str]:
    """A table with partition key p (B) and sort key c (B)."""
    yield from _shared(client, "p:B", "c:B")


@pytest.fixture
def own(client: Client) -> Iterator[str]:
    """A table p (S), c (S) of this test alone, for what looks at whole tables."""
    yield from _shared(client, "p:S", "c:S")
