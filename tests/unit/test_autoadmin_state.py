"""Auto-admin's durable state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest

from autoadmin import catalog as changes
from autoadmin.catalog import Catalog, Change, Counters
from autoadmin.state import LmdbState, MemoryState, StateError, StateStore
from cluster.topology import Topology
from tests.unit.autoadmin_samples import CLUSTER, nodes, sample_table


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


def _same(one: Catalog | None, other: Catalog) -> None:
    """The two catalogs are the same, but for what a restart may forget."""
    assert one is not None
    assert one.counters == other.counters
    assert one.topology.full() == other.topology.full()


@pytest.fixture(params=["lmdb", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StateStore]:
    made: StateStore = LmdbState(str(tmp_path)) if request.param == "lmdb" else MemoryState()
    yield made
    made.close()


def test_every_change_is_read_back(store: StateStore) -> None:
    assert store.load() is None
    catalog = Catalog(Topology(), Counters())
    for make in _history():
        change = make(catalog)
        assert change is not None
        catalog = catalog.after(change)
        store.save(change)
        _same(store.load(), catalog)


def test_the_state_survives_a_restart_at_any_point(tmp_path: Path) -> None:
    catalog = Catalog(Topology(), Counters())
    for make in _history():
        change = make(catalog)
        assert change is not None
        store = LmdbState(str(tmp_path))
        store.save(change)
        store.close()
        catalog = catalog.after(change)
        again = LmdbState(str(tmp_path))
        _same(again.load(), catalog)
        again.close()


def test_a_directory_in_use_is_refused_and_free_after_a_close(tmp_path: Path) -> None:
    first = LmdbState(str(tmp_path))
    with pytest.raises(StateError, match="is in use"):
        LmdbState(str(tmp_path))
    first.close()
    LmdbState(str(tmp_path)).close()


def test_a_damaged_record_is_found(tmp_path: Path) -> None:
    store = LmdbState(str(tmp_path))
    store.save(changes.first_change(CLUSTER))
    store.close()
    with lmdb.open(str(tmp_path / "state"), lib_version=1) as environment, environment.begin(write=True) as transaction:
        content = bytearray(transaction.get(b"catalog") or b"")
        content[-3] ^= 1
        transaction.put(b"catalog", bytes(content))
    damaged = LmdbState(str(tmp_path))
    with pytest.raises(StateError, match="is damaged"):
        damaged.load()
    damaged.close()


def test_a_follower_at_any_version_is_brought_to_the_newest() -> None:
    catalog = Catalog(Topology(), Counters())
    versions = [catalog]
    for make in _history():
        change = make(catalog)
        assert change is not None
        catalog = catalog.after(change)
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
    store.save(changes.first_change(CLUSTER))
    store.close()
    os.truncate(tmp_path / "state" / "data.mdb", 2 * os.sysconf("SC_PAGE_SIZE"))  # its two heads, and no tree
    with pytest.raises(StateError, match=r"move the folder .*/state away"):
        LmdbState(str(tmp_path)).load()
