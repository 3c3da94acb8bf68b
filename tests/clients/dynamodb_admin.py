"""dynamodb-admin: its pages in headless Chromium. Arguments: the endpoint, and the folder of its packages."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CREDENTIAL = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
TABLE = "admin-pages"


def call(url: str, operation: str, body: object) -> None:
    """A request to the endpoint."""
    headers = {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": CREDENTIAL,
    }
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=30) as answer:
        answer.read()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def page(browser: str, address: str, profile: str) -> str:
    """A page's document once its scripts have run."""
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1200,4000",
        f"--user-data-dir={profile}",
    ]
    command += ["--virtual-time-budget=10000", "--dump-dom", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout


def check_pages(browser: str, base: str) -> None:
    """Every page shows what it should."""
    with tempfile.TemporaryDirectory() as profile:
        for path, expected in [
            ("/", [TABLE]),
            (f"/tables/{TABLE}", ["first-item", "second-item", "byG"]),
            (f"/tables/{TABLE}/get", [TABLE]),
            (f"/tables/{TABLE}/meta", ["ACTIVE", "KeySchema", "byG"]),
            (f"/tables/{TABLE}/ttl", ["DISABLED"]),
            (f"/tables/{TABLE}/items/first-item", ["12.5", "nested"]),
            ("/create-table", ["Hash"]),
        ]:
            shown = page(browser, base + path, profile)
            missing = [text for text in expected if text not in shown]
            assert not missing, f"{path} does not show {missing}: {shown[:3_000]}"


def main(url: str, folder: Path) -> None:
    """Make a table, start the program, look at its pages."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("no Chromium on this machine")
        sys.exit(77)
    index = {"IndexName": "byG", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}]}
    definition = {
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("p", "g")],
        "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": [{**index, "Projection": {"ProjectionType": "ALL"}}],
    }
    call(url, "CreateTable", definition)
    for key in ("first-item", "second-item"):
        item = {"p": {"S": key}, "n": {"N": "12.5"}, "m": {"M": {"nested": {"S": "x"}}}}
        call(url, "PutItem", {"TableName": TABLE, "Item": item})
    port = free_port()
    command = [str(folder / "node_modules" / ".bin" / "dynamodb-admin"), "-H", "127.0.0.1", "-p", str(port)]
    program = subprocess.Popen([*command, "--dynamo-endpoint", url], stdout=subprocess.DEVNULL)
    try:
        wait_for(port)
        check_pages(browser, f"http://127.0.0.1:{port}")
    finally:
        program.terminate()
        program.wait(20)
    call(url, "DeleteTable", {"TableName": TABLE})


def wait_for(port: int) -> None:
    """Return once somebody listens."""
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
