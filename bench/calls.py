"""Single requests, outside of any measurement."""

from __future__ import annotations

import json
import sys
import time
from typing import Any
from urllib.request import Request, urlopen

from bench.requests import AUTHORIZATION, DATE, create_table

ANSWER_SECONDS = 60.0
CREATE_SECONDS = 30.0


def call_raw(endpoint: str, operation: str, body: dict[str, Any]) -> bytes:
    """One request; the body of its answer. Raises urllib.error.HTTPError for an answer other than 200."""
    headers = {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": AUTHORIZATION,
        "X-Amz-Date": DATE,
    }
    with urlopen(Request(endpoint, json.dumps(body).encode(), headers), timeout=ANSWER_SECONDS) as answer:
        content: bytes = answer.read()
    return content


def call(endpoint: str, operation: str, body: dict[str, Any]) -> dict[str, Any]:
    """One request and its answer. Raises as `call_raw`."""
    content: dict[str, Any] = json.loads(call_raw(endpoint, operation, body))
    return content


def prepare(endpoint: str, table: str) -> None:
    """Make the table, and wait until it is there."""
    call(endpoint, "CreateTable", create_table(table))
    deadline = time.monotonic() + CREATE_SECONDS
    while call(endpoint, "DescribeTable", {"TableName": table})["Table"]["TableStatus"] != "ACTIVE":
        if time.monotonic() > deadline:
            sys.exit("The table did not become active.")
        time.sleep(0.1)
