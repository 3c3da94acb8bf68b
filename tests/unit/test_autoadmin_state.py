"""What a member of auto-admin keeps durably."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import msgspec
import pytest

from autoadmin import catalog as changes
from autoadmin.catalog import Catalog, Change, Counters
from autoadmin.records import MemberRecord, Write, with_checksum
from autoadmin.state import LmdbState, MemoryState, StateError, StateStore
from cluster.topology import Topology
from replication.membership import Membership
from replication.messages import MEMBERSHIP, Entry
from tests.unit.autoadmin_samples import CLUSTER, nodes, sample_table

MEMBER = MemberRecord(CLUSTER, 7, incarnation=1, group="g", membership=Membership((7,)).encode(), epoch=3, vote=7)


def _history() -> Iterator[Callable[[Catalog], Change | None]]:
    """Everything that happens to a catalog."""
    yield lambda _: changes.first_change(CLUSTER)
    for node in nodes():
        yield lambda catalog, node=node: changes.with_node(catalog, node)  # type: ignore[misc]
    for name in ("a", "b"):
        yield lambda catalog, name=name: changes.with_new_table(  # type: ignore[misc]
            catalog, sample_table(name), [changes.Placement(bytes(16), b"\xff" * 16, tuple(nodes()), 2)]
        )
    yield lambda catalog: changes.with_active_tables(catalog, {1, 2})
    yield lambda catalog: changes.without_table(catalog, "a")
    yield lambda catalog: changes.without_replicas(catalog, {1})
    yield lambda catalog: changes.without_replicas(catalog, {2, 3})
    yield lambda catalog: changes.adopted(catalog.topology)


def _made() -> Iterator[tuple[Change, Catalog]]:
    """Each change of the history, and the catalog after it."""
    catalog = Catalog(Topology(), Counters())
    for make in _history():
        change = make(catalog)
        assert change is not None
        catalog = catalog.after(change)
        yield change, catalog


def _same(one: Catalog | None, other: Catalog) -> None:
    """The two catalogs are the same, but for what a restart may forget."""
    assert one is not None
    assert one.counters == other.counters
    assert one.topology.full() == other.topology.full()


def _at(applied: int, base: int = 0, epoch: int = 0) -> MemberRecord:
    return msgspec.structs.replace(MEMBER, applied=applied, base_position=base, base_epoch=epoch)


def _entries(first: int, last: int, epoch: int, text: bytes = b"x") -> tuple[Entry, ...]:
    return tuple(Entry(epoch, position, text + b"%d" % position) for position in range(first, last + 1))


@pytest.fixture(params=["lmdb", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StateStore]:
    made: StateStore = LmdbState(str(tmp_path)) if request.param == "lmdb" else MemoryState()
    yield made
    made.close()


def test_an_empty_disk_holds_nothing(store: StateStore) -> None:
    stored = store.load()
    assert (stored.member, stored.entries, stored.catalog) == (None, (), None)


def test_every_change_is_read_back(store: StateStore) -> None:
    for position, (change, catalog) in enumerate(_made(), start=1):
        store.write(Write(_at(position), _entries(position, position, 1), changes=(change,)))
        _same(store.load().catalog, catalog)
        assert store.load().member == _at(position)


def test_many_changes_in_one_write_are_as_good(store: StateStore) -> None:
    made = list(_made())
    store.write(Write(_at(len(made)), _entries(1, len(made), 1), changes=tuple(change for change, _ in made)))
    _same(store.load().catalog, made[-1][1])


def test_the_state_survives_a_restart_at_any_point(tmp_path: Path) -> None:
    for position, (change, catalog) in enumerate(_made(), start=1):
        store = LmdbState(str(tmp_path))
        store.write(Write(_at(position), _entries(position, position, 1), changes=(change,)))
        store.close()
        again = LmdbState(str(tmp_path))
        _same(again.load().catalog, catalog)
        again.close()


def test_entries_replace_those_at_their_positions_and_all_after(store: StateStore) -> None:
    store.write(Write(_at(0), _entries(1, 5, 1)))
    replacing = (Entry(2, 3, b"other"), Entry(2, 4, Membership((7, 8)).encode(), MEMBERSHIP))
    store.write(Write(_at(0), replacing))
    assert store.load().entries == _entries(1, 2, 1) + replacing


def test_what_lies_before_the_base_is_trimmed(store: StateStore) -> None:
    store.write(Write(_at(0), _entries(1, 300, 1)))
    store.write(Write(_at(290, base=256, epoch=1)))
    assert store.load().entries == _entries(257, 300, 1)
    store.write(Write(_at(300, base=300, epoch=1)))
    assert store.load().entries == ()


def test_a_log_that_begins_anew_keeps_nothing_of_what_was(store: StateStore) -> None:
    made = list(_made())
    store.write(Write(_at(2), _entries(1, 9, 1), changes=(made[0][0], made[1][0])))
    whole = Change(made[-1][1].topology.full(), made[-1][1].counters)
    store.write(Write(_at(40, base=40, epoch=4), _entries(41, 42, 4), restarts=True, changes=(whole,)))
    stored = store.load()
    assert stored.entries == _entries(41, 42, 4)
    _same(stored.catalog, made[-1][1])


def test_a_transaction_that_breaks_off_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LmdbState(str(tmp_path))
    store.write(Write(_at(0), _entries(1, 3, 1)))
    before = store.load()

    def torn(_: Write) -> Iterator[tuple[bytes, bytes | None]]:
        yield b"l" + bytes(8), b"half"
        raise lmdb.MapFullError("full")

    with monkeypatch.context() as patch:
        patch.setattr("autoadmin.state.writes", torn)
        with pytest.raises(OSError, match="cannot be written"):
            store.write(Write(_at(3), _entries(2, 4, 2)))
    assert store.load() == before
    store.close()


def test_the_state_of_an_auto_admin_without_members_is_read(tmp_path: Path) -> None:
    store = LmdbState(str(tmp_path))
    *_, (_, catalog) = _made()
    store.write(Write(_at(1, base=1, epoch=1), changes=(Change(catalog.topology.full(), catalog.counters),)))
    store.close()
    _make_old(tmp_path)
    store = LmdbState(str(tmp_path))
    stored = store.load()
    store.close()
    assert stored.member is None
    _same(stored.catalog, catalog)


def _make_old(folder: Path) -> None:
    """Leave what format 1 had: the catalog's records."""
    with lmdb.open(str(folder / "state"), lib_version=1) as environment, environment.begin(write=True) as transaction:
        transaction.delete(b"member")
        content = bytes(transaction.get(b"catalog") or b"")
        head = msgspec.json.decode(content[4:])
        old = msgspec.json.encode(head | {"format": 1})
        transaction.put(b"catalog", with_checksum(b"catalog", old))


def test_a_directory_in_use_is_refused_and_free_after_a_close(tmp_path: Path) -> None:
    first = LmdbState(str(tmp_path))
    with pytest.raises(StateError, match="is in use"):
        LmdbState(str(tmp_path))
    first.close()
    LmdbState(str(tmp_path)).close()


@pytest.mark.parametrize("key", [b"catalog", b"member", b"l" + (1).to_bytes(8, "big")])
def test_a_damaged_record_is_found(tmp_path: Path, key: bytes) -> None:
    store = LmdbState(str(tmp_path))
    store.write(Write(_at(1), _entries(1, 1, 1), changes=(changes.first_change(CLUSTER),)))
    store.close()
    with lmdb.open(str(tmp_path / "state"), lib_version=1) as environment, environment.begin(write=True) as transaction:
        content = bytearray(transaction.get(key) or b"")
        content[-1] ^= 1
        transaction.put(key, bytes(content))
    damaged = LmdbState(str(tmp_path))
    with pytest.raises(StateError, match="is damaged"):
        damaged.load()
    damaged.close()


def test_a_gap_in_the_log_is_found(tmp_path: Path) -> None:
    store = LmdbState(str(tmp_path))
    store.write(Write(_at(0), _entries(1, 3, 1)))
    store.close()
    with lmdb.open(str(tmp_path / "state"), lib_version=1) as environment, environment.begin(write=True) as transaction:
        transaction.delete(b"l" + (2).to_bytes(8, "big"))
    damaged = LmdbState(str(tmp_path))
    with pytest.raises(StateError, match="does not follow"):
        damaged.load()
    damaged.close()


def test_a_follower_at_any_version_is_brought_to_the_newest() -> None:
    versions = [Catalog(Topology(), Counters())]
    for _, catalog in _made():
        for follower in (held.topology for held in versions):
            caught_up = follower.with_update(catalog.topology.difference(*follower.at))
            assert caught_up.at == catalog.topology.at
            assert caught_up.tables == catalog.topology.tables
            assert caught_up.partitions == catalog.topology.partitions
            assert caught_up.nodes == catalog.topology.nodes
            for table in (1, 2):
                assert caught_up.partitions_of(table) == catalog.topology.partitions_of(table)
        versions.append(catalog)


def test_a_damaged_environment_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "data.mdb").write_bytes(b"not an environment" * 1000)
    with pytest.raises(StateError, match=r"move the folder .*/state away"):
        LmdbState(str(tmp_path))


def test_an_environment_that_was_cut_says_what_to_do(tmp_path: Path) -> None:
    store = LmdbState(str(tmp_path))
    store.write(Write(_at(1), _entries(1, 1, 1), changes=(changes.first_change(CLUSTER),)))
    store.close()
    os.truncate(tmp_path / "state" / "data.mdb", 2 * os.sysconf("SC_PAGE_SIZE"))  # its two heads, and no tree
    with pytest.raises(StateError, match=r"move the folder .*/state away"):
        LmdbState(str(tmp_path)).load()
