"""The expiry index of a partition, and the deletes that follow from it."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from dynamo import codec
from dynamo.expiry import PAST_SECONDS_MAX, expires_at, needle_of
from dynamo.table import Stream, Table
from dynamo.values import Item
from replication.messages import NORMAL, Entry
from storagenode.expiry import STEP_ROWS, ExpiryCommand, decode_expiry, encode_expiry, row_keys
from storagenode.partition import Partition, Propose
from storagenode.storage import layout
from tests.unit.partition_samples import INDEXED, NOW_MS, TABLE, Leader, item, key
from tests.unit.test_partition_streams import read

NOW = NOW_MS // 1000
LABEL = "2027-01-15T08:00:00.000"
TTL = msgspec.structs.replace(TABLE, ttl_attribute="expires", streams=(Stream(LABEL, "OLD_IMAGE", 1.0),))


def expiring(sk: int, time: int | None, **attributes: object) -> Item:
    return item("a", sk, **({} if time is None else {"expires": {"N": str(time)}}), **attributes)  # type: ignore[arg-type]


def append(leader: Leader, payload: bytes) -> None:
    leader.position += 1
    leader.log.append(Entry(1, leader.position, payload, NORMAL))
    leader.apply()


def schema(leader: Leader, attribute: str) -> None:
    known = leader.partition.schema
    assert known is not None
    changed = msgspec.structs.replace(known, ttl_attribute=attribute, schema_version=known.schema_version + 1)
    append(leader, leader.partition.propose_schema(changed))


def make_whole(leader: Leader) -> int:
    """As the leader does; how many steps it took."""
    steps = 0
    while (expiry := leader.partition.expiry) is not None and not expiry.is_whole:
        append(leader, expiry.next_step(leader.store))
        steps += 1
    return steps


def rows(leader: Leader) -> list[bytes]:
    return [row for row, _ in leader.store.rows(layout.EXPIRY, layout.prefix_end(layout.EXPIRY))]


def expected(leader: Leader, attribute: str = "expires") -> list[bytes]:
    """What the index is to hold, worked out from the items."""
    expiry = leader.partition.expiry
    assert expiry is not None
    times = {
        row_key: expires_at(codec.body_of(stored), attribute, needle_of(attribute))
        for row_key, stored in leader.store.scan(b"", b"")
    }
    return sorted(
        layout.expiry_key(expiry.generation, time, row_key) for row_key, time in times.items() if time is not None
    )


def sweep(leader: Leader, now: int = NOW) -> int:
    """Delete what is due; how many items were."""
    expiry = leader.partition.expiry
    assert expiry is not None
    count, after = 0, b""
    while due := expiry.due(leader.store, now, after, 3):
        after = due[-1]
        for row_key in row_keys(due):
            decision = leader.partition.expire(row_key, now * 1000, leader.position + 1)
            if decision is not None:
                leader._append(decision.payload)
                count += 1
    leader.apply()
    return count


@pytest.mark.parametrize("together", [True, False])
def test_rows_follow_the_items(together: bool) -> None:
    leader = Leader(table=TTL)
    random = Random(5)
    for _ in range(300):
        number = random.randrange(8)
        match random.randrange(4):
            case 0:
                leader.put(expiring(number, random.choice((None, 5, NOW, NOW + 9))))
            case 1:
                leader.update("a", number, "SET expires = :t", {":t": {"N": str(random.randrange(1, 9))}})
            case 2:
                leader.update("a", number, "REMOVE expires")
            case _:
                leader.delete("a", number)
        if random.random() < 0.2:
            leader.apply(together=together)
    leader.apply(together=together)
    assert rows(leader) == expected(leader)
    assert rows(leader)


def test_what_is_due_goes_and_the_stream_says_by_whom() -> None:
    """Cases 136 to 138."""
    leader = Leader(table=TTL)
    times = {1: NOW - 60, 2: NOW, 3: NOW + 60, 4: None, 5: NOW - PAST_SECONDS_MAX - 1, 6: NOW - PAST_SECONDS_MAX}
    for number, time in times.items():
        leader.put(expiring(number, time))
    leader.put({**item("a", 7), "expires": {"S": str(NOW - 60)}})
    leader.apply()
    assert sweep(leader) == 2
    assert [number for number in range(1, 8) if leader.get("a", number) is None] == [1, 6]
    assert rows(leader) == expected(leader)
    removed = [record for record in read(leader).records if record.event == record.REMOVE]
    assert [record.by_service for record in removed] == [True, True]
    assert sweep(leader, NOW + 61) == 2


def test_an_item_that_was_given_more_time_stays() -> None:
    leader = Leader(table=TTL)
    leader.put(expiring(1, NOW - 1))
    leader.apply()
    leader.update("a", 1, "SET expires = :t", {":t": {"N": str(NOW + 100)}})  # in flight
    assert sweep(leader) == 0
    assert leader.get("a", 1) == expiring(1, NOW + 100)


def test_an_item_is_deleted_once_though_its_delete_is_under_way() -> None:
    leader = Leader(table=TTL)
    leader.put(expiring(1, NOW - 1))
    leader.apply()
    first = leader.partition.expire(key("a", 1), NOW_MS, leader.position + 1)
    assert isinstance(first, Propose)
    leader._append(first.payload)
    assert leader.partition.expire(key("a", 1), NOW_MS, leader.position + 1) is None
    leader.apply()
    assert leader.get("a", 1) is None


def test_entries_in_local_indexes_go_with_the_item() -> None:
    table = msgspec.structs.replace(INDEXED, ttl_attribute="expires")
    leader = Leader(table=table)
    leader.put(expiring(1, NOW - 1, a={"S": "x"}, b={"N": "1"}))
    leader.apply()
    assert list(leader.store.scan(b"", b"", index=1))
    assert sweep(leader) == 1
    assert not any(list(leader.store.scan(b"", b"", index=index)) for index in (1, 2, 3))
    assert leader.partition.applied.items == leader.partition.applied.size == 0


def full(count: int, table: Table = TABLE) -> Leader:
    leader = Leader(table=table)
    for number in range(count):
        leader.put({**expiring(number, NOW - 10 + number % 20), "other": {"N": str(number + 1)}})
    leader.apply()
    return leader


def test_items_that_were_there_before_are_indexed() -> None:
    leader = full(2 * STEP_ROWS + 10)
    schema(leader, "expires")
    leader.delete("a", 3)
    leader.put(expiring(10_000, 77))
    append(leader, leader.partition.expiry.next_step(leader.store))  # type: ignore[union-attr]
    leader.update("a", 5, "SET expires = :t", {":t": {"N": "99"}})
    leader.apply()
    assert make_whole(leader) == 2
    assert rows(leader) == expected(leader)
    assert len(rows(leader)) == 2 * STEP_ROWS + 10
    assert Partition(leader.store).expiry == leader.partition.expiry


def test_rows_of_an_earlier_setting_go() -> None:
    leader = full(STEP_ROWS + 5)
    schema(leader, "expires")
    make_whole(leader)
    schema(leader, "")
    assert sweep(leader) == 0, "nothing expires any more"
    schema(leader, "other")
    make_whole(leader)
    assert rows(leader) == expected(leader, "other")
    schema(leader, "")
    make_whole(leader)
    assert leader.partition.expiry is None
    assert rows(leader) == []
    assert Partition(leader.store).expiry is None


def test_a_late_step_of_an_earlier_setting_does_nothing() -> None:
    leader = full(3)
    schema(leader, "expires")
    late = leader.partition.expiry.next_step(leader.store)  # type: ignore[union-attr]
    schema(leader, "other")
    before = leader.partition.expiry
    append(leader, late)
    assert leader.partition.expiry == before
    assert rows(leader) == []


def test_a_table_without_time_to_live_has_no_rows() -> None:
    leader = full(3)
    assert leader.partition.expiry is None
    assert rows(leader) == []
    assert leader.partition.expire(key("a", 1), NOW_MS, leader.position + 1) is None


def test_entries_read_back() -> None:
    for command in (
        ExpiryCommand(7, False, True, b"through", (b"a", b"", b"ccc"), (b"x" * 1000,)),
        ExpiryCommand(2**63, True, False, b"", (), ()),
    ):
        assert decode_expiry(encode_expiry(command)) == command
