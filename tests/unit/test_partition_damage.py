"""What apply does with a damaged item that a write replaces: nothing is derived from it, the replica is made anew."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from dynamo.table import Table
from storagenode.storage.store import StoreBroken, WriteBatch
from tests.unit.partition_samples import INDEXED, TABLE, Leader, item, key
from tests.unit.test_partition_changes import FOLLOWED
from tests.unit.test_partition_expiry import TTL, append, schema
from tests.unit.test_partition_streams import streamed

EXPIRES = msgspec.structs.replace(TABLE, ttl_attribute="expires")
WRITES: tuple[Callable[[Leader], object], ...] = (
    lambda leader: leader.put(item("p", 1, a={"S": "y"})),
    lambda leader: leader.delete("p", 1),
)


def with_item(table: Table) -> Leader:
    leader = Leader(table=table)
    leader.put(item("p", 1, a={"S": "x"}, expires={"N": "5"}))
    leader.apply()
    return leader


def damage(leader: Leader) -> None:
    """Change a byte of the item's body, as a bit flipped on the disk does."""
    stored = leader.store.get(key("p", 1))
    assert stored is not None
    leader.store.write(WriteBatch(leader.store.applied(), {key("p", 1): stored[:-3] + b"!" + stored[-2:]}))


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("table", [INDEXED, FOLLOWED, streamed(), EXPIRES, TTL])
def test_nothing_is_derived_from_a_damaged_item(table: Table, write: Callable[[Leader], object]) -> None:
    """Of local indexes, of change rows for global indexes and streams, of the index of what expires."""
    leader = with_item(table)
    write(leader)
    damage(leader)
    before = leader.partition.applied
    with pytest.raises(StoreBroken):
        leader.apply()
    assert leader.partition.applied == before


@pytest.mark.parametrize("write", WRITES)
def test_a_write_of_a_table_from_which_nothing_is_derived_replaces_it(write: Callable[[Leader], object]) -> None:
    leader = with_item(TABLE)
    write(leader)
    damage(leader)
    leader.apply()
    assert leader.get("p", 1) in (None, item("p", 1, a={"S": "y"}))


def test_a_damaged_item_is_not_taken_into_a_new_index_of_what_expires() -> None:
    leader = with_item(TABLE)
    schema(leader, "expires")
    damage(leader)
    assert leader.partition.expiry is not None
    with pytest.raises(StoreBroken):
        append(leader, leader.partition.expiry.next_step(leader.store))
