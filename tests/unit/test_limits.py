"""Open files: as many as the hard limit allows."""

from __future__ import annotations

import resource

import pytest

from storagenode.limits import LimitError, raise_open_files


class Limits:
    """A process's limit on open files."""

    def __init__(self, soft: int, hard: int) -> None:
        self.now = (soft, hard)
        self.refuses = False

    def get(self, which: int) -> tuple[int, int]:
        assert which == resource.RLIMIT_NOFILE
        return self.now

    def set(self, which: int, limits: tuple[int, int]) -> None:
        assert which == resource.RLIMIT_NOFILE
        if self.refuses:
            raise ValueError("not allowed to raise maximum limit")
        self.now = limits


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Limits:
    limits = Limits(1024, 65_536)
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    return limits


def test_the_soft_limit_is_raised_to_the_hard_one(limits: Limits) -> None:
    assert raise_open_files() == 65_536
    assert limits.now == (65_536, 65_536)


def test_a_refusal_is_one_sentence(limits: Limits) -> None:
    limits.refuses = True
    with pytest.raises(LimitError, match="from 1024 to 65536"):
        raise_open_files()


def test_nothing_is_done_at_the_hard_limit(limits: Limits) -> None:
    limits.now, limits.refuses = (4096, 4096), True
    assert raise_open_files() == 4096
