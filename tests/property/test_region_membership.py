"""Membership of global tables: whatever regions tell each other, and in whatever order, they end with the same map."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from dynamo.regions import (
    FIRST_OTHER,
    PRESENT,
    is_same_table,
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
            hear(tables, ever, region, random.choice(REGIONS))
        check_numbers(tables[region], ever[region])
    for _ in REGIONS:
        for region in REGIONS:
            for other in REGIONS:
                hear(tables, ever, region, other)
    for table in tables.values():
        for replica in table.replicas:
            for there in tables.values():
                if replica.region not in (table.region, there.region):
                    known = replica_of(there, replica.region)
                    assert known is not None
                    assert (known.since, known.state in PRESENT) == (replica.since, replica.state in PRESENT)


def hear(tables: dict[str, Table], ever: dict[str, dict[int, str]], region: str, other: str) -> None:
    """A region hears what another one knows; if it was removed and added again it deletes its table and joins."""
    heard = with_entries(tables[region], tables[other].replicas)
    own, wanted = replica_of(heard, region), replica_of(tables[other], region)
    assert own is not None
    if own.state not in PRESENT and wanted is not None and wanted.state in PRESENT and wanted.since > own.since:
        heard = joined(tables[other], region, wanted)
        ever[region].clear()
    tables[region] = heard
    check_numbers(heard, ever[region])


def check_numbers(table: Table, ever: dict[int, str]) -> None:
    """No number ever stands for another region, and none is given to two lives of one."""
    for number, region in enumerate(table.origins):
        assert ever.setdefault(number, region) == region
    numbers = [replica.number for replica in table.replicas]
    assert len(set(numbers)) == len(numbers)
    for replica in table.replicas:
        assert region_of(table, replica.number) == replica.region
    assert all(replica.number >= FIRST_OTHER for replica in readers_of(table))


def test_tables_that_were_made_apart_have_only_the_name_in_common() -> None:
    here = with_entry(made_global(TABLE, EAST, 1), Replica(WEST, 0, 2, "CREATING", EAST))
    entry = replica_of(here, WEST)
    assert entry is not None
    assert is_same_table(here, joined(here, WEST, entry))
    removed = with_entry(here, Replica(WEST, 0, 3, "DELETING", EAST))
    assert is_same_table(removed, joined(here, WEST, entry)), "it has to hear of its removal"
    assert not is_same_table(here, made_global(TABLE, WEST, 7))


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


def test_a_region_that_was_removed_and_added_again_unheard_begins_anew() -> None:
    """What it holds may have been deleted elsewhere meanwhile, and the deletes forgotten."""
    here = with_entry(made_global(TABLE, EAST, 1), Replica(WEST, 0, 2, "CREATING", EAST))
    entry = replica_of(here, WEST)
    assert entry is not None
    there = joined(here, WEST, entry)
    here = with_entry(here, Replica(WEST, 0, 3, "DELETING", EAST))
    here = with_entry(here, Replica(WEST, 0, 4, "CREATING", EAST))
    heard = with_entries(there, here.replicas)
    own = replica_of(heard, WEST)
    assert own is not None
    assert (own.state, own.since) == ("DELETING", 2)
    assert readers_of(heard) == ()
    assert with_entries(heard, here.replicas) == heard
    newest = replica_of(with_entries(here, heard.replicas), WEST)
    assert newest is not None
    assert (newest.state, newest.since) == ("CREATING", 4), "the others go on waiting for it to join"
