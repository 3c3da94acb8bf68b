"""`trizone up` and `trizone status` on real processes."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tests.integration.launching import (
    Up,
    eventually,
    finished,
    is_alive,
    pids_of,
    running,
    status_of,
)

READY_S_MAX = 30.0
STOP_S_MAX = 30.0


def connect(endpoint: str, read_timeout: int = 30, **settings: Any) -> Any:
    """A client with any credentials and, unless `settings` say otherwise, the SDK's default retries."""
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(connect_timeout=5, read_timeout=read_timeout, **settings),
    )


def create_table(client: Any, name: str = "things") -> None:
    """A table with the partition key `id`."""
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})


def put(client: Any, identity: str) -> None:
    """One item."""
    client.put_item(TableName="things", Item={"id": {"S": identity}})


def found(client: Any, identity: str) -> bool:
    """Whether a strongly consistent read finds the item."""
    return "Item" in client.get_item(TableName="things", Key={"id": {"S": identity}}, ConsistentRead=True)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of the cluster that the tests of this module share."""
    return tmp_path_factory.mktemp("launcher") / "data"


@pytest.fixture(scope="module")
def up(data: Path) -> Iterator[Up]:
    """A cluster with two routers."""
    with running("--port", "0", "--data", str(data), "--routers", "2") as up:
        up.endpoint()
        yield up


@pytest.fixture(scope="module")
def client(up: Up, data: Path) -> Any:
    """A client of the shared cluster, with a table in it."""
    assert up.process.poll() is None
    client = connect(status_of(data)["endpoint"])
    create_table(client)
    return client


def test_status_shows_every_process(client: Any, data: Path) -> None:
    status = status_of(data)
    assert list(status) == ["endpoint", "processes", "partitions", "auto_admins"]
    assert [(member["name"], member["role"]) for member in status["auto_admins"]] == [("auto-admin", "leader")]
    roles = [(process["role"], process["zone"]) for process in status["processes"]]
    zones = ["us-east-1a", "us-east-1b", "us-east-1c"]
    assert sorted(roles, key=str) == sorted(
        [("autoadmin", None), ("router", None), ("router", None), *(("storagenode", zone) for zone in zones)], key=str
    )
    assert all(is_alive(process["pid"]) for process in status["processes"])
    assert all(process["region"] == "us-east-1" for process in status["processes"])
    assert client.list_tables()["TableNames"] == ["things"]


def test_status_shows_partitions_with_replicas_in_three_zones(client: Any, data: Path) -> None:
    put(client, "seen by status")
    partitions = eventually(lambda: _led(status_of(data)["partitions"]))
    assert len(partitions) == 3
    assert partitions[0]["range"][0] == "00" * 16
    assert partitions[-1]["range"][1] == "ff" * 16
    for partition in partitions:
        assert partition["table"] == "things"
        assert {replica["zone"] for replica in partition["replicas"]} == {"us-east-1a", "us-east-1b", "us-east-1c"}
        assert partition["leader"] in {replica["node"] for replica in partition["replicas"]}


def _led(partitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The partitions if each has a leader, else none."""
    return partitions if all(partition["leader"] for partition in partitions) else []


def test_status_for_people(client: Any, data: Path) -> None:  # noqa: ARG001 (there is a table)
    shown = finished("status", "--data", str(data))
    assert shown.returncode == 0
    assert all(text in shown.stdout for text in ("us-east-1a-1", "router-2", "things"))


def test_routers_share_the_port_and_have_their_own(client: Any, data: Path) -> None:
    put(client, "through any router")
    routers = [process for process in status_of(data)["processes"] if process["role"] == "router"]
    assert len({router["address"] for router in routers}) == 2
    assert all(found(connect(f"http://{router['address']}"), "through any router") for router in routers)


def test_the_data_directory_is_taken(up: Up, data: Path) -> None:
    assert up.process.poll() is None
    second = finished("up", "--port", "0", "--data", str(data))
    assert second.returncode == 2
    assert second.stderr == f"The data directory {data} is in use by another Trizone.\n"


def test_the_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = finished("up", "--port", str(port), "--data", str(tmp_path / "data"))
    assert refused.returncode == 2
    assert refused.stderr == f"Port {port} of 127.0.0.1 is taken; name another with --port.\n"
    assert not (tmp_path / "data" / "cluster.json").exists()


def test_a_port_of_another_cluster_is_taken(client: Any, data: Path, tmp_path: Path) -> None:
    port = client.meta.endpoint_url.rpartition(":")[2]
    assert str(data) != str(tmp_path)
    refused = finished("up", "--port", port, "--data", str(tmp_path / "data"))
    assert refused.returncode == 2


@pytest.mark.parametrize("name", ["us-east-1b-1", "auto-admin", "router-1"])
def test_who_is_killed_comes_back(client: Any, up: Up, data: Path, name: str) -> None:
    put(client, f"before {name}")
    before = pids_of(data)
    os.kill(before[name], signal.SIGKILL)
    up.line_with(f"{name} was ended by SIGKILL; starting it again now.")
    after = eventually(lambda: pids if name in (pids := pids_of(data)) else {})
    assert after[name] != before[name]
    assert {other: pid for other, pid in after.items() if other != name} == {
        other: pid for other, pid in before.items() if other != name
    }
    put(client, f"after {name}")
    assert found(client, f"before {name}")
    assert found(client, f"after {name}")


def test_status_without_auto_admin_asks_the_nodes(client: Any, up: Up, data: Path) -> None:
    put(client, "still here")
    pid = pids_of(data)["auto-admin"]
    os.kill(pid, signal.SIGSTOP)
    try:
        partitions = status_of(data)["partitions"]
    finally:
        os.kill(pid, signal.SIGCONT)
    assert up.process.poll() is None
    assert len(partitions) == 3
    assert all(partition["table"] == "things" for partition in partitions)


def test_ready_in_time_stopped_in_time_and_nobody_left(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running("--port", "0", "--data", str(data)) as up:
        client = connect(up.endpoint())
        assert time.monotonic() - up.started < READY_S_MAX
        create_table(client)
        put(client, "kept")
        pids = pids_of(data)
        asked = time.monotonic()
        assert up.stop(signal.SIGINT) == 0
        assert time.monotonic() - asked < STOP_S_MAX
    assert not [pid for pid in pids.values() if is_alive(pid)]
    assert finished("status", "--data", str(data)).returncode == 1

    with running("--port", "0", "--data", str(data)) as up:
        assert found(connect(up.endpoint()), "kept")


def test_children_do_not_outlive_a_killed_launcher(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running("--port", "0", "--data", str(data)) as up:
        client = connect(up.endpoint())
        create_table(client)
        put(client, "kept")
        pids = pids_of(data)
        up.stop(signal.SIGKILL)
        eventually(lambda: not [pid for pid in pids.values() if is_alive(pid)])

    with running("--port", "0", "--data", str(data)) as up:
        assert found(connect(up.endpoint()), "kept")


def test_an_ephemeral_cluster_leaves_nothing() -> None:
    with running("--port", "0", "--ephemeral") as up:
        create_table(connect(up.endpoint()))
        pid = up.process.pid
        (data,) = _ephemeral_folders(pid)
        assert up.stop(signal.SIGTERM) == 0
    assert not data.exists()


def _ephemeral_folders(pid: int) -> list[Path]:
    """The data directory that the process holds locked."""
    links = [Path(f"/proc/{pid}/fd/{entry}") for entry in os.listdir(f"/proc/{pid}/fd")]
    targets = {Path(os.readlink(link)) for link in links if link.is_symlink()}
    return [target.parent for target in targets if target.name == "lock"]


def test_settings_that_do_not_exist_stop_a_service(tmp_path: Path) -> None:
    settings = tmp_path / "router.toml"
    settings.write_text('cluster_id = "c"\nspeed = "ludicrous"\n')
    ended = finished("router", "--config", str(settings))
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "speed" in ended.stderr


@pytest.mark.parametrize("lose", [lambda segment: os.truncate(segment, 0), os.unlink], ids=["emptied", "deleted"])
def test_a_node_whose_log_was_lost_says_so(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    data = tmp_path / "data"
    with running("--port", "0", "--data", str(data)) as up:
        client = connect(up.endpoint())
        create_table(client)
        for number in range(20):  # some in every partition
            put(client, f"before {number}")
        assert up.stop() == 0
    for segment in (data / "nodes" / "us-east-1b-1" / "log").iterdir():
        lose(segment)
    with running("--port", "0", "--data", str(data)) as up:
        said = up.line_with("us-east-1b-1: ")
        assert "log is lost" in said
        assert "move the node's data folder away" in said
        client = connect(up.endpoint())  # the others serve
        assert all(found(client, f"before {number}") for number in range(20))
        (data / "nodes" / "us-east-1b-1").rename(tmp_path / "away")
        eventually(lambda: pids_of(data).get("us-east-1b-1"))


def test_a_record_that_rotted_in_every_store_comes_back_from_the_log(tmp_path: Path) -> None:
    data, name = tmp_path / "data", "to be damaged " * 10
    with running("--port", "0", "--data", str(data)) as up:
        client = connect(up.endpoint())
        create_table(client)
        item = {"id": {"S": "one"}, "name": {"S": name}}
        client.put_item(TableName="things", Item=item)
        eventually(lambda: _applied_everywhere(data))
        assert up.stop() == 0
    for store in (data / "nodes").glob("*/partitions/*/data.mdb"):
        store.write_bytes(store.read_bytes().replace(name.encode(), name.upper().encode()))
    with running("--port", "0", "--data", str(data)) as up:
        client = connect(up.endpoint())
        assert client.get_item(TableName="things", Key={"id": {"S": "one"}}, ConsistentRead=True)["Item"] == item
        up.line_with("the replica's rows are made anew")
        up.line_with("is whole again")


def _applied_everywhere(data: Path) -> bool:
    """Whether all replicas of each partition are equally far."""
    partitions = status_of(data)["partitions"]
    ends = [{(replica["position"], replica["applied"]) for replica in each["replicas"]} for each in partitions]
    return all(len(end) == 1 and len(set(*end)) == 1 for end in ends)
