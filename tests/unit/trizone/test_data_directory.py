"""The cluster's folder: taken once, founded once, and never guessed at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trizone.data_directory import ClusterFile, DataDirectory, ProcessRecord, RunFile
from trizone.errors import CommandError
from trizone.launcher import UpOptions, found_or_founded


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    """A locked, empty data directory."""
    directory = DataDirectory(tmp_path / "data")
    directory.lock()
    return directory


def test_only_one_holds_the_folder(directory: DataDirectory) -> None:
    other = DataDirectory(directory.path)
    assert other.in_use()
    with pytest.raises(CommandError, match="in use"):
        other.lock(patience_s=0)
    directory.unlock()
    assert not other.in_use()
    other.lock(patience_s=0)


def test_an_inherited_lock_outlives_its_maker(directory: DataDirectory) -> None:
    inherited = os.dup(directory.lock_descriptor)
    directory.unlock()
    assert DataDirectory(directory.path).in_use()
    os.close(inherited)
    assert not DataDirectory(directory.path).in_use()


def test_a_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(CommandError, match="cannot be used"):
        DataDirectory(tmp_path / "data").lock()


def test_the_first_start_founds_and_later_ones_find(directory: DataDirectory) -> None:
    founded = found_or_founded(directory, UpOptions(directory.path, region="eu-central-1"))
    assert founded.zones == ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
    assert found_or_founded(directory, UpOptions(directory.path)) == founded


def test_each_cluster_has_an_id_of_its_own(tmp_path: Path) -> None:
    ids = set()
    for name in ("one", "two"):
        directory = DataDirectory(tmp_path / name)
        directory.lock()
        ids.add(found_or_founded(directory, UpOptions(directory.path)).cluster_id)
    assert len(ids) == 2


def test_a_cluster_grows_but_neither_shrinks_nor_moves(directory: DataDirectory) -> None:
    first = found_or_founded(directory, UpOptions(directory.path))
    grown = found_or_founded(directory, UpOptions(directory.path, nodes_per_zone=2))
    assert (grown.nodes_per_zone, grown.cluster_id) == (2, first.cluster_id)
    with pytest.raises(CommandError, match="taken away"):
        found_or_founded(directory, UpOptions(directory.path, nodes_per_zone=1))
    with pytest.raises(CommandError, match="region"):
        found_or_founded(directory, UpOptions(directory.path, region="mars-1"))
    assert found_or_founded(directory, UpOptions(directory.path)) == grown


def test_auto_admin_grows_from_one_member_to_three_and_not_back(directory: DataDirectory) -> None:
    assert found_or_founded(directory, UpOptions(directory.path)).auto_admins == 1
    assert found_or_founded(directory, UpOptions(directory.path, auto_admins=3)).auto_admins == 3
    assert found_or_founded(directory, UpOptions(directory.path)).auto_admins == 3
    with pytest.raises(CommandError, match="has 3 auto-admins; they cannot be taken away"):
        found_or_founded(directory, UpOptions(directory.path, auto_admins=1))


WRONG_TYPES = '{"format": 1, "cluster_id": "a", "region": "b", "zones": 3, "nodes_per_zone": 1}'
NO_NODES = '{"format": 1, "cluster_id": "a", "region": "b", "zones": ["c"], "nodes_per_zone": 0}'


@pytest.mark.parametrize(
    "content", ["{", "[]", "[" * 100_000, '{"format": 1}', '{"format": 999}', WRONG_TYPES, NO_NODES]
)
def test_a_damaged_cluster_file_is_said_to_be_one(directory: DataDirectory, content: str) -> None:
    (directory.path / "cluster.json").write_text(content)
    with pytest.raises(CommandError, match=r"cluster\.json"):
        directory.cluster()


@pytest.mark.parametrize("content", ["", "7", '{"a": 5}', '{"a": {"listen": "x"}}', '{"a": {"listen": 65536}}'])
def test_damaged_ports_are_chosen_anew(directory: DataDirectory, content: str) -> None:
    (directory.path / "ports.json").write_text(content)
    assert directory.ports() == {}


@pytest.mark.parametrize("content", ["", "{}", '{"endpoint": "a", "launcher": 1, "processes": [{}]}'])
def test_a_damaged_run_file_is_said_to_be_one(directory: DataDirectory, content: str) -> None:
    (directory.path / "run.json").write_text(content)
    with pytest.raises(CommandError, match=r"run\.json"):
        directory.run_file()


def test_files_come_back_as_written(directory: DataDirectory) -> None:
    cluster = ClusterFile("abc", "us-east-1", ["us-east-1a"], 1)
    run = RunFile("http://127.0.0.1:1", 7, [ProcessRecord("router-1", "router", "us-east-1", None, 9, "a:1", "a:2")])
    directory.write_cluster(cluster)
    directory.write_run(run)
    directory.write_ports({"router-1": {"listen": 1}})
    assert directory.cluster() == cluster
    assert directory.run_file() == run
    assert directory.ports() == {"router-1": {"listen": 1}}
    directory.clear_run()
    assert directory.run_file() is None
