"""docs/compatibility.md says of each operation what the router does with it."""

from __future__ import annotations

import re

from router.model import model
from router.operations import REGISTRY
from tests.tidy.sources import ROOT

PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([A-Z]\w+) \| (done|not built) \|", re.MULTILINE)
COUNT = re.compile(r"^### DynamoDB.*: (\d+)$", re.MULTILINE)


def test_every_operation_is_listed_once() -> None:
    listed = [name for name, _ in ROW.findall(PAGE)]
    operations = [name for service in model()["services"].values() for name in sorted(service["operations"])]
    assert listed == operations


def test_the_states_are_those_of_the_registry() -> None:
    done = {name for name, state in ROW.findall(PAGE) if state == "done"}
    assert done == set(REGISTRY)


def test_the_counts_are_right() -> None:
    services = [len(service["operations"]) for service in model()["services"].values()]
    assert [int(count) for count in COUNT.findall(PAGE)] == services
