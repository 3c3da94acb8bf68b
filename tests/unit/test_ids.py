"""Ids from an injected source of chance."""

from __future__ import annotations

from cluster.ids import RANDOM_ID_MAX, cluster_id, random_id
from cluster.random_source import SeededRandom, SystemRandom


class Constant(SeededRandom):
    """Gives the lowest or the highest number that may be asked for."""

    def __init__(self, highest: bool) -> None:
        super().__init__(0)
        self._highest = highest

    def below(self, bound: int) -> int:
        return bound - 1 if self._highest else 0


def test_a_random_id_is_never_zero_and_fits_63_bits() -> None:
    assert random_id(Constant(highest=False)) == 1
    assert random_id(Constant(highest=True)) == RANDOM_ID_MAX == 2**63 - 1


def test_the_same_seed_gives_the_same_ids() -> None:
    assert random_id(SeededRandom(1)) == random_id(SeededRandom(1)) != random_id(SeededRandom(2))
    assert cluster_id(SeededRandom(1)) == cluster_id(SeededRandom(1))
    assert len(bytes.fromhex(cluster_id(SystemRandom()))) == 16
