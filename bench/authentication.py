"""What it costs a router to verify and judge a request: microseconds each, on one core, without any network.

python -m bench.authentication [--seconds 2]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import orjson

from cluster.topology import CatalogTable, CatalogUpdate, Topology
from dynamo.table import KeySchema, Table
from dynamo.user import AccessKey, User
from router.credentials import Credentials, KnownKey
from router.guard import Guard
from router.sigv4 import Request
from tests.unit.signing import ACCESS_KEY, NOW, SECRET, signed

TABLE = "arn:aws:dynamodb:us-east-1:000000000000:table/Orders"
SDK_HEADERS = {
    "User-Agent": "Boto3/1.44.8 md/Botocore#1.44.8 ua/2.1 os/linux md/arch#x86_64 lang/python#3.11.2",
    "amz-sdk-invocation-id": "0b4f3a0e-2f6f-4a7c-8f45-0f1d5b1f7a11",
    "amz-sdk-request": "attempt=1",
    "Accept-Encoding": "identity",
}


def guard_with(admin: bool, condition: dict[str, Any] | None) -> Guard:
    """A guard that knows one user, and one table."""
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Action": ["dynamodb:GetItem", "dynamodb:PutItem"],
        "Resource": TABLE,
    }
    if condition is not None:
        statement["Condition"] = condition
    policy = orjson.dumps({"Version": "2012-10-17", "Statement": [statement]}).decode()
    user = User("ada", 0.0, admin, (AccessKey(ACCESS_KEY, b"-", 0.0),), {"own": policy})
    table = Table(1, "Orders", 1, {"pk": "S"}, KeySchema(("pk",)), 0.0, "ACTIVE")
    topology = Topology().with_update(CatalogUpdate("c", 1, 0, 1, tables=(CatalogTable(table, 1),)))
    credentials = Credentials(lambda: topology.users, None, [KnownKey(user, ACCESS_KEY, SECRET)], lambda: NOW)
    return Guard("enforce", credentials, "us-east-1", lambda: NOW, lambda: topology)


def microseconds(work: Callable[[], object], seconds: float) -> float:
    """The best of five rounds, per call."""
    count, best = 300, float("inf")
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 5 or time.perf_counter() < end:
        start = time.process_time()
        for _ in range(count):
            work()
        best = min(best, (time.process_time() - start) / count * 1e6)
        rounds += 1
    return best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What verifying and judging a request costs a router.")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each line")
    seconds = parser.parse_args().seconds
    body = orjson.dumps({"TableName": "Orders", "Item": {"pk": {"S": "ada"}, "x": {"S": "x" * 640}}})
    document = orjson.loads(body)
    request: Request = signed(body, headers=SDK_HEADERS)
    own = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}"]}}
    for name, guard in (
        ("an admin", guard_with(True, None)),
        ("a policy without conditions", guard_with(False, None)),
        ("a policy with dynamodb:LeadingKeys", guard_with(False, own)),
    ):
        caller = guard.authenticate(request, "10.0.0.1", False)

        def verify(guard: Guard = guard) -> object:
            return guard.authenticate(request, "10.0.0.1", False)

        def judge(guard: Guard = guard, caller: Any = caller) -> None:
            guard.authorize(caller, "PutItem", document)

        print(f"{name:36} verify {microseconds(verify, seconds):5.1f} µs  judge {microseconds(judge, seconds):5.1f} µs")


if __name__ == "__main__":
    main()
