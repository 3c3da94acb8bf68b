"""Operation ids: remembered for 90 to 180 s of the partition's own clock."""

from __future__ import annotations

import struct
from random import Random

import pytest

from storagenode import operation_ids
from storagenode.operation_ids import GENERATION_MS, OperationIds

START = 1_000 * GENERATION_MS


def test_an_id_is_found_where_it_was_done() -> None:
    ids = OperationIds()
    ids.add(77, 5, START)
    assert (ids.find(77), ids.find(78), ids.find(0)) == (5, None, None)


def test_ids_of_one_bucket_are_told_apart() -> None:
    ids = OperationIds()
    random = Random(3)
    done = {random.getrandbits(50) << 14: position for position in range(1, 500)}
    for operation_id, position in done.items():
        ids.add(operation_id, position, START)
    assert {operation_id: ids.find(operation_id) for operation_id in done} == done


def test_bytes_that_match_across_two_slots_are_no_find() -> None:
    ids = OperationIds()
    bucket = 5
    first, second = (0x1111 << 48) | bucket, (0x2222 << 48) | bucket
    ids.add(first, 10, START)
    ids.add(second, 11, START)
    slots = struct.pack("<QI", first, 0) + struct.pack("<QI", second, 1)
    for at in range(1, len(slots) - 8):
        (straddling,) = struct.unpack_from("<Q", slots, at)
        if straddling not in (first, second):
            assert ids.find(straddling) is None


def test_an_id_is_remembered_for_one_generation_at_least_and_two_at_most() -> None:
    ids = OperationIds()
    ids.add(1, 1, START + GENERATION_MS - 1)
    ids.add(2, 2, START + GENERATION_MS)
    ids.add(3, 3, START + 2 * GENERATION_MS - 1)
    assert (ids.find(1), ids.find(2), ids.first_position) == (1, 2, 1)
    ids.add(4, 4, START + 2 * GENERATION_MS)
    assert (ids.find(1), ids.find(2), ids.find(3), ids.first_position) == (None, 2, 3, 2)


def test_after_a_pause_of_two_generations_nothing_is_remembered() -> None:
    ids = OperationIds()
    ids.add(1, 1, START)
    ids.add(2, 2, START + 2 * GENERATION_MS)
    assert (ids.find(1), ids.find(2), len(ids), ids.first_position) == (None, 2, 1, 2)


def test_an_entry_without_an_id_only_moves_the_clock() -> None:
    ids = OperationIds()
    ids.add(1, 1, START)
    ids.add(0, 2, START + 5 * GENERATION_MS)
    assert len(ids) == 0


def test_what_a_store_kept_gives_the_same_memory() -> None:
    random = Random(8)
    live, rebuilt = OperationIds(), OperationIds()
    position, stamp_ms, seen, rows = 1, START, [], []
    for _ in range(400):
        batch = [random.choice((0, random.getrandbits(64))) for _ in range(random.randint(1, 9))]
        stamp_ms += random.randint(0, 2_000)
        for distance, operation_id in enumerate(batch):
            live.add(operation_id, position + distance, stamp_ms)
        rows.append((position, stamp_ms, batch))
        position += len(batch)
        seen += batch
    for row in rows:
        if row[0] >= live.first_position:
            rebuilt.add_all(*row)
    assert len(rebuilt) == len(live) > 0
    assert [rebuilt.find(operation_id) for operation_id in seen] == [live.find(operation_id) for operation_id in seen]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_ids, "IDS_PER_GENERATION_MAX", 100)
    ids = OperationIds()
    for position in range(1, 1001):
        ids.add(position, position, START)
    assert len(ids) <= 200
    assert (ids.find(1000), ids.find(900), ids.find(1)) == (1000, 900, None)
