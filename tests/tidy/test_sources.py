"""Files stay small and explained, and say nothing of the machine that they were written on."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.sources import PACKAGES, ROOT, python_files, repository_files, tree

LINES_MAX = 600

# Put together from parts, so that this file does not find itself.
MACHINE_PATHS = re.compile(
    r"(?<![\w.])/(?:" + "|".join(["work", "root", "farm", "tmp/" + "claude", "tmp/" + "bash_jobs"]) + ")/"
)
REGISTRIES = re.compile(
    "|".join(
        [
            r"pypi\." + "org",
            r"pythonhosted\." + "org",
            r"registry\.npmjs\." + "org",
            r"deb\.debian\." + "org",
            r"archive\.ubuntu\." + "com",
            "index" + "-url",
            "find" + "-links",
        ]
    )
)


def _texts() -> Iterator[tuple[str, str]]:
    """Path and content of every file that is a text."""
    for path in repository_files():
        with contextlib.suppress(UnicodeDecodeError):
            yield path, (ROOT / path).read_text(encoding="utf-8")


def test_no_file_outgrows_its_room() -> None:
    long = {path: lines for path in python_files() if (lines := (ROOT / path).read_text().count("\n")) > LINES_MAX}
    assert not long


@pytest.mark.parametrize("pattern", [MACHINE_PATHS, REGISTRIES], ids=["machine paths", "registries"])
def test_no_file_tells_of_one_machine(pattern: re.Pattern[str]) -> None:
    found = {path: hits for path, content in _texts() if (hits := pattern.findall(content))}
    assert not found


def test_every_module_says_what_it_is_for() -> None:
    silent = [path for path in python_files() if tree(path).body and not ast.get_docstring(tree(path))]
    assert not silent


def test_every_public_function_and_class_is_explained() -> None:
    silent = [
        f"{path}:{node.lineno} {node.name}"
        for path in python_files(*PACKAGES)
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
        and not _is_record(node)
    ]
    assert not silent


def _is_record(node: ast.stmt) -> bool:
    """Whether a class has fields and nothing else: its name and theirs may say enough."""
    return isinstance(node, ast.ClassDef) and all(isinstance(field, ast.AnnAssign) for field in node.body)


def test_scripts_can_be_run() -> None:
    folders = (Path("tools"), Path(".ci"))
    found = [Path(path) for path in repository_files()]
    scripts = [path for path in found if path.parent in folders and path.name != "__init__.py"]
    assert scripts
    assert not [path for path in scripts if not (ROOT / path).stat().st_mode & 0o111]
