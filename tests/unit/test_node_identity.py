"""Who a node is, over its restarts; and the small files that are replaced as a whole."""

from __future__ import annotations

from random import Random

import pytest

from cluster.files import read_file, replace_file
from cluster.random_source import SeededRandom
from cluster.topology import CatalogUpdate, NodePlace, Topology
from storagenode.catalog_copy import load_catalog, save_catalog
from storagenode.identity import FILE_NAME, IdentityError, start_identity
from tests.simulation.simulated_disk import SimulatedDisk


def test_a_node_keeps_its_id_and_counts_its_starts() -> None:
    disk = SimulatedDisk()
    first = start_identity(disk, "node", "c1", SeededRandom(1))
    second = start_identity(disk, "node", "c1", SeededRandom(2))
    assert (second.node, second.incarnation) == (first.node, first.incarnation + 1)


def test_the_identity_is_durable_before_it_is_used() -> None:
    disk = SimulatedDisk()
    first = start_identity(disk, "node", "c1", SeededRandom(1))
    disk.crash(Random(3))
    assert start_identity(disk, "node", "c1", SeededRandom(2)).node == first.node


def test_an_empty_disk_makes_a_new_node() -> None:
    one = start_identity(SimulatedDisk(), "node", "c1", SeededRandom(1))
    other = start_identity(SimulatedDisk(), "node", "c1", SeededRandom(2))
    assert one.node != other.node


def test_a_directory_of_another_cluster_is_refused() -> None:
    disk = SimulatedDisk()
    start_identity(disk, "node", "c1", SeededRandom(1))
    with pytest.raises(IdentityError, match="belongs to cluster c1"):
        start_identity(disk, "node", "c2", SeededRandom(1))


def test_a_directory_with_data_but_no_identity_is_refused() -> None:
    disk = SimulatedDisk()
    disk.make_directory("node/log")
    with pytest.raises(IdentityError, match="holds 'log'"):
        start_identity(disk, "node", "c1", SeededRandom(1))


def test_an_identity_that_cannot_be_read_is_refused() -> None:
    disk = SimulatedDisk()
    start_identity(disk, "node", "c1", SeededRandom(1))
    replace_file(disk, "node", FILE_NAME, b"{")
    with pytest.raises(IdentityError, match="cannot be read"):
        start_identity(disk, "node", "c1", SeededRandom(1))


@pytest.mark.parametrize("seed", range(20))
def test_a_crash_leaves_the_old_content_or_the_new(seed: int) -> None:
    disk = SimulatedDisk()
    disk.make_directory("d")
    replace_file(disk, "d", "f", b"old")
    disk.crash(Random(seed))
    assert read_file(disk, "d/f") == b"old"
    replace_file(disk, "d", "f", b"new and longer")
    disk.crash(Random(seed))
    assert read_file(disk, "d/f") == b"new and longer"


def test_the_catalog_copy_comes_back() -> None:
    disk = SimulatedDisk()
    disk.make_directory("node")
    place = NodePlace(5, "n5", "r", "a", "127.0.0.1:1", version=3)
    topology = Topology().with_update(CatalogUpdate("c1", 1, 0, 3, nodes=(place,)))
    save_catalog(disk, "node", topology)
    disk.crash(Random(1))
    assert load_catalog(disk, "node").full() == topology.full()


def test_a_damaged_catalog_copy_counts_for_nothing() -> None:
    disk = SimulatedDisk()
    disk.make_directory("node")
    save_catalog(disk, "node", Topology().with_update(CatalogUpdate("c1", 1, 0, 3)))
    content = read_file(disk, "node/catalog")
    assert content is not None
    for damaged in (content[:3], content[:-1], bytes([content[0] ^ 1]) + content[1:]):
        replace_file(disk, "node", "catalog", damaged)
        assert load_catalog(disk, "node").version == 0
