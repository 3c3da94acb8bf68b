"""A client that writes without pause and knows what was acknowledged: the cluster must still have all of it."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Self

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

TABLE = "ledger"


def connect(endpoint: str, credentials: tuple[str, str], attempts: int = 6, region: str = "us-east-1") -> Any:
    """A client with the SDK's own retries."""
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id=credentials[0],
        aws_secret_access_key=credentials[1],
        config=Config(connect_timeout=2, read_timeout=15, retries={"max_attempts": attempts, "mode": "standard"}),
    )


def create(client: Any) -> None:
    """The table."""
    client.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=TABLE, WaiterConfig={"Delay": 1})


class Ledger:
    """Writes for as long as the block runs; `acknowledged` grows, and `refused` counts what the SDK gave up."""

    def __init__(self, client: Any) -> None:
        self.acknowledged: list[str] = []
        self.refused = 0
        self.longest = 0.0
        self._client = client
        self._number = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._stop.is_set():
            self._number += 1
            name = f"item {self._number}"
            begun = time.monotonic()
            try:
                self._client.put_item(TableName=TABLE, Item={"id": {"S": name}, "n": {"N": str(self._number)}})
            except (BotoCoreError, ClientError):
                self.refused += 1
            else:
                self.acknowledged.append(name)
            self.longest = max(self.longest, time.monotonic() - begun)
            self._stop.wait(0.01)

    def lost(self, client: Any) -> list[str]:
        """What was acknowledged and cannot be read; all of it is read in full, strongly consistent."""
        found: set[str] = set()
        for page in client.get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True):
            found.update(item["id"]["S"] for item in page["Items"])
        return [name for name in self.acknowledged if name not in found]
