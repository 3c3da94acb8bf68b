"""What the tidy tests read: the repository's files, and Python sources as syntax trees."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("dynamo", "replication", "cluster", "router", "storagenode", "autoadmin", "replicator", "trizone")
GENERATED = "cluster/wire/"


@cache
def repository_files() -> tuple[str, ...]:
    """Paths of all files that are, or are about to be, under version control."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(sorted({path for path in listed.split("\0") if path and (ROOT / path).is_file()}))


@cache
def python_files(*folders: str) -> tuple[str, ...]:
    """Paths of the hand-written Python files, in `folders` or everywhere."""
    return tuple(
        path
        for path in repository_files()
        if path.endswith(".py") and not path.startswith(GENERATED) and (not folders or path.split("/", 1)[0] in folders)
    )


@cache
def tree(path: str) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=path)


def imported_modules(module: ast.Module) -> set[str]:
    """Full names of all modules that a tree imports, wherever in it; for `from a import b` both a and a.b."""
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names
