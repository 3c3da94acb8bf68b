"""deploy/compose.yaml as an operator runs it: started, hurt in many ways, scaled, restarted, taken down and up again.

The tests share one cluster and run in the order in which they stand here. Without an engine they are skipped;
`make test-compose` brings one.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from cluster.grpc_transport import GrpcTransport
from cluster.transport import TransportError
from tests.compose.engine import Project, docker, eventually
from tests.compose.ledger import TABLE, Ledger, connect, create

pytestmark = [
    pytest.mark.skipif("DOCKER_HOST" not in os.environ, reason="no container engine: make test-compose brings one"),
    pytest.mark.timeout(300),
]

ENDPOINT = "http://127.0.0.1:8000"
NODES = ("storagenode-a", "storagenode-b", "storagenode-c")
SERVICES = ("auto-admin-1", "auto-admin-2", "auto-admin-3", *NODES, "router")
LOGS_LINES = 40
FIRST_WRITE_S = 90


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    """The cluster; it leaves nothing behind."""
    project = Project("deploy/compose.yaml")
    project.end()
    try:
        yield project
    finally:
        project.end()


@pytest.fixture(scope="module")
def client(project: Project) -> Any:
    """A client of a cluster that has just been started, with a table. Says how long that took."""
    project("build")
    begun = time.monotonic()
    project("up", "--detach")
    file = eventually(lambda: _admin_file(project))
    (credentials,) = tomllib.loads(file)["users"]["admin"]["keys"].items()
    impatient = connect(ENDPOINT, credentials, attempts=1)
    while True:
        try:
            create(impatient)
            impatient.put_item(TableName=TABLE, Item={"id": {"S": "first"}})
            break
        except (BotoCoreError, ClientError) as error:
            if time.monotonic() - begun > FIRST_WRITE_S:
                pytest.fail(f"no write was acknowledged: {error}\n{project('logs', '--tail', '10')}")
            time.sleep(0.1)
    print(f"\nfirst acknowledged write {time.monotonic() - begun:.1f} s after `docker compose up`")
    project("up", "--detach", "--wait", "--wait-timeout", "120")
    print(f"all containers healthy {time.monotonic() - begun:.1f} s after it")
    return connect(ENDPOINT, credentials)


@pytest.fixture
def ledger(client: Any) -> Iterator[Ledger]:
    """A writer at work; at the end of the test nothing that was acknowledged may be lost."""
    with Ledger(client) as ledger:
        eventually(lambda: len(ledger.acknowledged) > 10)
        yield ledger
    assert not ledger.lost(client)
    print(
        f"\n{len(ledger.acknowledged)} acknowledged, {ledger.refused} refused, the longest took {ledger.longest:.1f} s"
    )


def _admin_file(project: Project) -> str:
    try:
        return project("exec", "-T", "router", "cat", "/cluster/admin.toml")
    except AssertionError:
        return ""


def _goes_on(ledger: Ledger) -> None:
    """Writes are acknowledged after now."""
    before = len(ledger.acknowledged)
    eventually(lambda: len(ledger.acknowledged) > before + 20)


def _nodes_live(project: Project) -> int:
    """Storage nodes that auto-admin's leading member hears."""
    lives = []
    for number in (1, 2, 3):
        try:
            url = f"http://{project.address(f'auto-admin-{number}')}:9090/metrics"
            with urllib.request.urlopen(url, timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except (urllib.error.URLError, OSError, ValueError):
            continue
        lives += [float(line.split()[1]) for line in lines if line.startswith("trizone_autoadmin_nodes_live ")]
    return int(max(lives, default=0))


def test_it_serves(client: Any, project: Project) -> None:
    client.put_item(TableName=TABLE, Item={"id": {"S": "a"}, "n": {"N": "1"}})
    read = client.get_item(TableName=TABLE, Key={"id": {"S": "a"}}, ConsistentRead=True)
    assert read["Item"] == {"id": {"S": "a"}, "n": {"N": "1"}}
    assert eventually(lambda: _nodes_live(project) == 6)


def test_strangers_stay_out(client: Any, project: Project) -> None:
    stranger = connect(ENDPOINT, ("TRIZAAAAAAAAAAAAAAAA", "a secret of one's own"), attempts=1)
    with pytest.raises(ClientError) as refused:
        stranger.get_item(TableName=TABLE, Key={"id": {"S": "a"}})
    assert refused.value.response["Error"]["Code"] == "UnrecognizedClientException"

    async def calls() -> None:
        transport = GrpcTransport()
        try:
            for service, method in (("storagenode-a", "Node/Status"), ("auto-admin-1", "Admin/CreateTable")):
                with pytest.raises(TransportError, match="it has not the join token"):
                    await transport.call(f"{project.address(service)}:7000", method, b"", 5)
            with pytest.raises(TransportError, match="it has not the join token"):
                await transport.open_stream(f"{project.address('auto-admin-1')}:7000", "Node/Session")
        finally:
            await transport.close()

    asyncio.run(calls())
    assert client.describe_table(TableName=TABLE)["Table"]["TableStatus"] == "ACTIVE"


def test_an_operator_makes_users(client: Any, project: Project) -> None:
    assert client
    command = ("trizone", "user", "create", "app", "--admin", "--json", "--config", "/cluster/cluster.toml")
    made = json.loads(project("exec", "-T", "router", *command))
    app = connect(ENDPOINT, (made["access_key"], made["secret"]), attempts=1)
    assert eventually(lambda: _lists(app)) == [TABLE]


def _lists(client: Any) -> list[str]:
    """Tables that the client sees; none while its user is not known everywhere."""
    try:
        return list(client.list_tables()["TableNames"])
    except ClientError:
        return []


def test_containers_have_no_rights(client: Any, project: Project) -> None:
    assert client
    for container in project.containers():
        host = container["HostConfig"]
        name = container["Name"]
        assert host["ReadonlyRootfs"], name
        assert host["CapDrop"] == ["ALL"], name
        assert not host["CapAdd"], name
        assert not host["Privileged"], name
        assert not host["Ulimits"], name
        assert host["SecurityOpt"] == ["no-new-privileges:true"], name
        assert container["Config"]["User"] not in ("", "0", "root"), name


def test_prometheus_sees_every_process(client: Any) -> None:
    assert client

    def up() -> dict[str, int]:
        with urllib.request.urlopen("http://127.0.0.1:9090/api/v1/targets?state=active", timeout=5) as answer:
            targets = json.load(answer)["data"]["activeTargets"]
        jobs: dict[str, int] = {}
        for target in targets:
            if target["health"] == "up":
                jobs[target["labels"]["job"]] = jobs.get(target["labels"]["job"], 0) + 1
        return jobs

    wanted = {"router": 2, "storagenode": 6, "autoadmin": 3, "prometheus": 1}
    assert eventually(lambda: up() == wanted), up()
    with urllib.request.urlopen("http://127.0.0.1:9093/-/ready", timeout=5) as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    "service",
    ["storagenode-a", "router", *(pytest.param(name, marks=pytest.mark.slow) for name in ("auto-admin-2", "haproxy"))],
)
def test_a_killed_container(client: Any, project: Project, ledger: Ledger, service: str) -> None:
    assert client
    container = project.container(service)
    docker("kill", container)
    if service != "haproxy":  # the only one of its kind
        _goes_on(ledger)
    docker("start", container)
    eventually(lambda: service == "haproxy" or project.ready(service))
    _goes_on(ledger)


def test_a_container_without_network(client: Any, project: Project, ledger: Ledger) -> None:
    assert client
    container = project.container("storagenode-b")
    docker("network", "disconnect", "trizone_cluster", container)
    _goes_on(ledger)
    docker("network", "connect", "--alias", "storagenode-b", "trizone_cluster", container)
    eventually(lambda: _nodes_live(project) == 6)
    _goes_on(ledger)


def test_a_killed_zone(client: Any, project: Project, ledger: Ledger) -> None:
    assert client
    containers = [container["Id"] for container in project.containers("storagenode-b")]
    docker("kill", *containers)
    _goes_on(ledger)
    docker("start", *containers)
    eventually(lambda: project.ready("storagenode-b") and _nodes_live(project) == 6)
    _goes_on(ledger)


def test_one_more_node_joins_by_itself(client: Any, project: Project, ledger: Ledger) -> None:
    assert client
    project("up", "--detach", "--no-recreate", "--scale", "storagenode-a=3", "storagenode-a")
    eventually(lambda: _nodes_live(project) == 7)
    _goes_on(ledger)


@pytest.mark.parametrize(
    "services", [("auto-admin-1", "storagenode-a", "router"), pytest.param(SERVICES, marks=pytest.mark.slow)]
)
def test_a_rolling_restart_is_clean(client: Any, project: Project, ledger: Ledger, services: tuple[str, ...]) -> None:
    assert client
    for service in services:
        for container in project.containers(service):
            docker("stop", container["Id"])
            (stopped,) = json.loads(docker("inspect", container["Id"]))
            # 0 and not 137: it ended by itself, within the stop period.
            assert stopped["State"]["ExitCode"] == 0, docker("logs", "--tail", str(LOGS_LINES), container["Id"])
            docker("start", container["Id"])
            eventually(lambda service=service: project.ready(service))  # type: ignore[misc]
    _goes_on(ledger)
    assert ledger.refused == 0


def test_data_outlives_the_containers(client: Any, project: Project) -> None:
    with Ledger(client) as ledger:
        _goes_on(ledger)
    project.remove_containers()
    project("up", "--detach", "--wait", "--wait-timeout", "120")
    eventually(lambda: not ledger.lost(client))
    assert _nodes_live(project) == 6
