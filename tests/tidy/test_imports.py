"""Imports run one way, pure modules stay pure, and each outside library has its place."""

from __future__ import annotations

import ast
import sys

import pytest

from tests.tidy.sources import PACKAGES, imported_modules, python_files, tree

SERVICES = {"router", "storagenode", "autoadmin", "replicator"}

# What each package may import besides the standard library and itself.
MAY_IMPORT = {
    "dynamo": {"msgspec", "orjson"},
    "replication": set(),
    "cluster": {
        *("dynamo", "replication", "cryptography", "grpc", "google", "msgspec", "orjson", "prometheus_client", "uvloop")
    },
    "router": {"dynamo", "cluster", "google", "httptools", "lark", "msgspec", "orjson", "prometheus_client", "uvloop"},
    "storagenode": {"dynamo", "replication", "cluster", "google", "lmdb", "msgspec", "orjson", "prometheus_client"},
    "autoadmin": {"dynamo", "replication", "cluster", "google", "lmdb", "msgspec", "orjson", "prometheus_client"},
    "replicator": {"dynamo", "cluster", "google", "msgspec", "orjson", "prometheus_client"},
    "trizone": {
        *PACKAGES,
        *("cryptography", "google", "msgspec", "orjson", "rich", "boto3", "botocore", "pytest", "uvloop"),
    },
}

# Libraries that may be named in these files only.
ONLY_IN = {
    "lmdb": ("storagenode/storage/lmdb_store.py", "autoadmin/state.py"),
    "grpc": ("cluster/grpc_transport.py", "cluster/grpc_security.py"),
    "cryptography": ("cluster/sealing.py", "cluster/tls.py", "trizone/certificates.py"),
    "lark": tuple(f"router/partiql/{name}.py" for name in ("build", "faults", "grammar", "terms")),
    "httptools": ("router/http.py",),
    "boto3": ("trizone/cluster.py", "trizone/pytest_plugin.py"),
    "pytest": ("trizone/pytest_plugin.py",),
    "rich": ("trizone/report.py", "trizone/region_report.py"),
}

PURE = (
    "dynamo/",
    "replication/",
    "cluster/access.py",
    "cluster/ids.py",
    "cluster/topology.py",
    "cluster/ledger.py",
    "cluster/settlement.py",
    "cluster/convert.py",
    "cluster/requests/call.py",
    "cluster/requests/routing.py",
    "router/sigv4.py",
    "router/access.py",
    "router/asks.py",
    "router/limits.py",
    "router/shapes.py",
    "router/shape_rules.py",
    "router/table_checks.py",
    "router/table_description.py",
    "router/index_checks.py",
    "router/index_definitions.py",
    "router/index_description.py",
    "router/index_updates.py",
    "router/description_parts.py",
    "router/read_target.py",
    "router/consumed.py",
    "router/plan.py",
    "router/transactions.py",
    "router/pages.py",
    "router/partiql/",
    "autoadmin/actions.py",
    "autoadmin/catalog.py",
    "autoadmin/health.py",
    "autoadmin/membership.py",
    "autoadmin/performing.py",
    "autoadmin/planner.py",
    "autoadmin/summary.py",
    "autoadmin/plans/",
    "autoadmin/view.py",
    "storagenode/partition.py",
    "storagenode/commands.py",
    "storagenode/writes.py",
    "storagenode/operation_ids.py",
    "storagenode/query.py",
    "storagenode/indexes.py",
    "storagenode/index_commands.py",
    "storagenode/index_feed.py",
    "storagenode/index_rows.py",
    "storagenode/change_readers.py",
    "storagenode/transactions.py",
    "storagenode/transaction_commands.py",
    "storagenode/transaction_marks.py",
    "storagenode/transaction_tokens.py",
    "storagenode/applying.py",
    "storagenode/decisions.py",
    "storagenode/streams.py",
    "storagenode/throttle.py",
    "storagenode/storage/store.py",
    "storagenode/storage/layout.py",
    "autoadmin/catalog.py",
    "autoadmin/view.py",
    "autoadmin/actions.py",
    "autoadmin/planner.py",
    "autoadmin/summary.py",
    "autoadmin/plans/",
)

IMPURE_MODULES = {
    "asyncio", "concurrent", "ctypes", "fcntl", "glob", "grpc", "http", "io",
    "lmdb", "logging", "mmap", "multiprocessing", "os", "pathlib", "random", "secrets",
    "select", "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "tempfile",
    "threading", "time", "urllib", "uuid", "uvloop",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input", "exec", "eval"}
CALENDAR_READS = {"now", "utcnow", "today"}


def _is_pure(path: str) -> bool:
    return any(path == place or (place.endswith("/") and path.startswith(place)) for place in PURE)


def _top_levels(path: str) -> set[str]:
    return {name.split(".", 1)[0] for name in imported_modules(tree(path))}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_what_its_row_allows(package: str) -> None:
    allowed = MAY_IMPORT[package] | {package} | set(sys.stdlib_module_names)
    strangers = {path: odd for path in python_files(package) if (odd := _top_levels(path) - allowed)}
    assert not strangers


def test_services_never_import_each_other() -> None:
    assert all(not MAY_IMPORT[service] & (SERVICES - {service}) for service in SERVICES)


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_is_named_in_its_place_only(library: str) -> None:
    users = {path for path in python_files(*PACKAGES) if library in _top_levels(path)}
    assert users <= set(ONLY_IN[library])


def test_pure_modules_have_no_door_to_the_world() -> None:
    doors = {path: found for path in python_files(*PACKAGES) if _is_pure(path) and (found := _doors(path))}
    assert not doors


def _doors(path: str) -> set[str]:
    """Impure modules imported, and impure builtins or calendar reads called.

    `from random import Random` alone is no door: it names the type of a generator that somebody seeded and handed in.
    """
    found = _top_levels(path) & IMPURE_MODULES
    if {name for name in imported_modules(tree(path)) if name.startswith("random")} == {"random", "random.Random"}:
        found.discard("random")
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) if name in IMPURE_CALLS:
                    found.add(name)
                case ast.Name(id="Random") if not node.args:
                    found.add("unseeded Random")
                case ast.Attribute(attr=name) if name in CALENDAR_READS:
                    found.add(name)
    return found


@pytest.mark.parametrize(
    ("source", "doors"),
    [
        ("import time", {"time"}),
        ("from os import path", {"os"}),
        ("import asyncio.queues", {"asyncio"}),
        ("def f():\n    from random import random", {"random"}),
        ("open('x')", {"open"}),
        ("datetime.now()", {"now"}),
        ("import math", set()),
        ("from random import Random\ndice: Random", set()),
        ("from random import Random\ndice = Random()", {"unseeded Random"}),
    ],
)
def test_the_search_for_doors_finds_them(source: str, doors: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "tree", lambda _path: ast.parse(source))
    assert _doors("any.py") == doors


CLOCK_READERS = ("cluster/clock.py", "trizone/")
CHANCE = {
    "random.random",
    "random.randint",
    "random.randrange",
    "random.choice",
    "random.getrandbits",
    "random.uniform",
}


def test_nothing_in_the_services_reads_a_clock_or_rolls_a_die_of_its_own() -> None:
    users = {
        path: found
        for path in python_files(*PACKAGES)
        if not path.startswith(CLOCK_READERS) and (found := _clock_and_chance(path))
    }
    assert not users


def _clock_and_chance(path: str) -> set[str]:
    """Uses of `time.…`, or of the `random` module's shared generator."""
    found: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in CHANCE or (node.value.id == "time" and "time" in _top_levels(path)):
                found.add(name)
    return found
