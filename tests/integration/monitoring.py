"""A Prometheus that scrapes a cluster of real processes, for tests of dashboards. Debian's package has the binary."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import threading
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tests.integration.launching import eventually, status_of
from trizone.ports import HOST

PROMETHEUS = shutil.which("prometheus")
TABLE = "orders"


def targets_of(*folders: Path) -> dict[str, list[str]]:
    """Addresses of the metrics of all processes of the clusters in these data folders, by role."""
    found: dict[str, list[str]] = {}
    for folder in folders:
        for process in status_of(folder)["processes"]:
            found.setdefault(process["role"], []).append(process["metrics"])
    return found


@contextmanager
def scraping(folder: Path, targets: dict[str, list[str]]) -> Iterator[str]:
    """Prometheus's address, while it scrapes these targets every second."""
    assert PROMETHEUS is not None
    jobs = [{"job_name": role, "static_configs": [{"targets": each}]} for role, each in targets.items()]
    configuration = folder / "prometheus.yml"
    configuration.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))
    address = f"{HOST}:{_free_port()}"
    arguments = (
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={address}",
    )
    process = subprocess.Popen([PROMETHEUS, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _answers(address))
        yield address
    finally:
        process.terminate()
        process.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def values_of(address: str, expression: str) -> list[float]:
    """The values of an expression now, one for each series; those that are no numbers are left out."""
    query = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"http://{address}/api/v1/query?{query}", timeout=10) as answer:
        result = json.load(answer)["data"]["result"]
    values = [float(series["value"][1]) for series in result]
    return [value for value in values if value == value]


def names_known_to(address: str) -> set[str]:
    """The names of all metrics that were scraped; those of histograms also without what Prometheus adds."""
    with urllib.request.urlopen(f"http://{address}/api/v1/label/__name__/values", timeout=10) as answer:
        names = json.load(answer)["data"]
    return {*names, *(name.removesuffix("_bucket") for name in names)}


def client_of(endpoint: str) -> Any:
    """A boto3 client."""
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"mode": "standard", "total_max_attempts": 5}),
    )


def make_table(client: Any) -> None:
    """TABLE, with everything that metrics tell of: a global index, expiry, items of a transaction."""
    client.create_table(
        TableName=TABLE,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "who")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by-who",
                "KeySchema": [{"AttributeName": "who", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=TABLE, WaiterConfig={"Delay": 1})
    client.update_time_to_live(TableName=TABLE, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"})


@contextmanager
def load(client: Any) -> Iterator[None]:
    """A bit of everything that a table may be asked, until the block ends."""
    stop = threading.Event()
    thread = threading.Thread(target=_ask, args=(client, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(20)


def _ask(client: Any, stop: threading.Event) -> None:
    while not stop.wait(0.02):
        key = {"pk": {"S": str(uuid.uuid4())}}
        item = {**key, "who": {"S": "somebody"}, "expires": {"N": "1"}}
        client.put_item(TableName=TABLE, Item=item)
        client.get_item(TableName=TABLE, Key=key, ConsistentRead=True)
        client.query(
            TableName=TABLE,
            IndexName="by-who",
            KeyConditionExpression="who = :who",
            ExpressionAttributeValues={":who": {"S": "somebody"}},
            Limit=5,
        )
        writes = [{"Put": {"TableName": TABLE, "Item": {"pk": {"S": f"{key['pk']['S']}-{part}"}}}} for part in "ab"]
        client.transact_write_items(TransactItems=writes)
        with contextlib.suppress(client.exceptions.ConditionalCheckFailedException):
            client.put_item(TableName=TABLE, Item=item, ConditionExpression="attribute_exists(nothing)")


def expressions_of(dashboards: Iterable[Path]) -> list[tuple[str, str]]:
    """(panel, expression) of all dashboards, with what Grafana fills in filled in."""
    found = []
    for path in dashboards:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", ()):
                expression = target["expr"].replace("$__rate_interval", "8s")
                for variable in ("$table", "$index", "$partition", "$instance"):
                    expression = expression.replace(variable, ".*")
                found.append((f"{path.stem}: {panel['title']}", expression))
    return found
