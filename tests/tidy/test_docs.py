"""The docs name only what exists: links, make targets, files."""

from __future__ import annotations

import re

import pytest

from tests.tidy.sources import PACKAGES, ROOT, repository_files

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
MAKE = re.compile(r"(?:^|`|\$ )make ([a-z][a-z-]*)", re.MULTILINE)
TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
FOLDERS = (*PACKAGES, "docs", "tests", "tools", "examples", "proto", "bench", "deploy", ".ci")
PLACE = re.compile(r"`((?:" + "|".join(map(re.escape, FOLDERS)) + r")/[\w./-]*)`")

DOCS = [path for path in repository_files() if path.endswith(".md")]


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _anchors(path: str) -> set[str]:
    """Anchors of a page's headings, made as GitHub makes them."""
    headings = HEADING.findall(FENCE.sub("", _read(path)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def _is_broken(page: str, link: str) -> bool:
    if re.match(r"[a-z]+:", link):
        return False
    target, _, anchor = link.partition("#")
    file = (ROOT / page).parent / target if target else ROOT / page
    if not file.exists():
        return True
    return bool(anchor) and anchor not in _anchors(str(file.resolve().relative_to(ROOT)))


@pytest.mark.parametrize("page", DOCS)
def test_links_resolve(page: str) -> None:
    links = LINK.findall(FENCE.sub("", _read(page)))
    assert not [link for link in links if _is_broken(page, link)]


@pytest.mark.parametrize("page", DOCS)
def test_make_targets_exist(page: str) -> None:
    targets = set(TARGET.findall(_read("Makefile")))
    assert set(MAKE.findall(_read(page))) <= targets


@pytest.mark.parametrize("page", DOCS)
def test_places_exist(page: str) -> None:
    assert not [place for place in PLACE.findall(_read(page)) if not (ROOT / place).exists()]


def test_the_checks_see_what_is_wrong() -> None:
    assert _is_broken("README.md", "docs/no-such-page.md")
    assert _is_broken("README.md", "README.md#no-such-heading")
    assert MAKE.findall("run `make nonsense` first") == ["nonsense"]
    assert PLACE.findall("see `router/nothing.py`") == ["router/nothing.py"]
