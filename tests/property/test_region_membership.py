"""Membership of global tables: whatever regions tell each other, and in whatever order, they end with the same map."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from dynamo.regions import (
    FIRST_OTHER,
    PRESENT,
    joined,
    made_global,
    next_since,
    number_of,
    readers_of,
    region_of,
    replica_of,
    with_entries,
    with_entry,
)
from dynamo.table import Replica, Table
from tests.unit.partition_samples import TABLE
from tests.unit.regional_samples import EAST, SOUTH, WEST

REGIONS = (EAST, WEST, SOUTH)
SEEDS = 60
STEPS = 80


def changed(random: Random, table: Table, now_ms: int) -> Table:
    """A region is added or removed, as somebody asks here."""
    region = random.choice([region for region in REGIONS if region != table.region])
    entry = replica_of(table, region)
    since = next_since(table, now_ms)
    if entry is not None and entry.state in PRESENT:
        return with_entry(table, Replica(region, 0, since, "DELETING", table.region))
    return with_entry(table, Replica(region, 0, since, "CREATING", table.region))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_regions_end_with_the_same_map(seed: int) -> None:
    random = Random(seed)
    tables = {region: made_global(TABLE, region, number) for number, region in enumerate(REGIONS)}
    ever: dict[str, dict[int, str]] = {region: {} for region in REGIONS}
    for step in range(STEPS):
        region = random.choice(REGIONS)
        if random.random() < 0.3:
            tables[region] = changed(random, tables[region], random.randint(0, step))
        else:
            tables[region] = with_entries(tables[region], tables[random.choice(REGIONS)].replicas)
        check_numbers(tables[region], ever[region])
    for _ in REGIONS:
        for region in REGIONS:
            for other in REGIONS:
                tables[region] = with_entries(tables[region], tables[other].replicas)
                check_numbers(tables[region], ever[region])
    first = {replica.region: (replica.since, replica.state in PRESENT) for replica in tables[EAST].replicas}
    for table in tables.values():
        assert {replica.region: (replica.since, replica.state in PRESENT) for replica in table.replicas} == first


def check_numbers(table: Table, ever: dict[int, str]) -> None:
    """No number ever stands for another region, and none is given to two lives of one."""
    for number, region in enumerate(table.origins):
        assert ever.setdefault(number, region) == region
    numbers = [replica.number for replica in table.replicas]
    assert len(set(numbers)) == len(numbers)
    for replica in table.replicas:
        assert region_of(table, replica.number) == replica.region
    assert all(replica.number >= FIRST_OTHER for replica in readers_of(table))


def test_a_region_that_comes_back_is_another_reader() -> None:
    table = made_global(TABLE, EAST, 1)
    table = with_entry(table, Replica(WEST, 0, 2, "CREATING", EAST))
    before = replica_of(table, WEST)
    table = with_entry(table, Replica(WEST, 0, 3, "DELETING", EAST))
    assert readers_of(table) == ()
    table = with_entry(table, Replica(WEST, 0, 4, "CREATING", EAST))
    after = replica_of(table, WEST)
    assert before is not None
    assert after is not None
    assert after.number > before.number
    assert region_of(table, before.number) == WEST, "items of its earlier life still say whose they are"
    assert number_of(table, WEST) == after.number


def test_a_joining_region_knows_all_others_and_begins_with_numbers_of_its_own() -> None:
    table = with_entry(made_global(TABLE, EAST, 1), Replica(SOUTH, 0, 2, "CREATING", EAST))
    table = with_entry(table, Replica(WEST, 0, 3, "CREATING", EAST))
    entry = replica_of(table, WEST)
    assert entry is not None
    made = joined(msgspec.structs.replace(table, tags={"a": "b"}), WEST, entry)
    assert made.region == WEST
    assert {replica.region for replica in readers_of(made)} == {EAST, SOUTH}
    assert made.tags == {}
    assert number_of(made, WEST) == 1, "its own writes that come back are not sent again"
    assert with_entries(table, made.replicas) == with_entries(table, table.replicas), "nothing new in it for the first"
