"""A storage node's folder is its own, and what it tells others of its address."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from cluster.advertise import advertised, beside
from cluster.settings import StorageNodeSettings
from storagenode.data_folder import FolderError, take_folder


def _settings(data: Path, *, slots: bool = False) -> StorageNodeSettings:
    return StorageNodeSettings(cluster_id="c", name="zone-a", zone="a", data=str(data), data_slots=slots)


def test_a_folder_is_taken_once(tmp_path: Path) -> None:
    taken = take_folder(_settings(tmp_path / "data"))
    assert taken.settings == _settings(tmp_path / "data")
    with pytest.raises(FolderError) as caught:
        take_folder(_settings(tmp_path / "data"))
    assert str(caught.value) == f"The data directory {tmp_path}/data is in use by another storage node."
    os.close(taken.lock)
    os.close(take_folder(_settings(tmp_path / "data")).lock)


def test_nodes_that_share_a_volume_take_what_is_free(tmp_path: Path) -> None:
    taken = [take_folder(_settings(tmp_path, slots=True)) for _ in range(3)]
    assert [each.settings.data for each in taken] == [f"{tmp_path}/{number}" for number in (1, 2, 3)]
    assert [each.settings.name for each in taken] == ["zone-a-1", "zone-a-2", "zone-a-3"]
    os.close(taken[1].lock)
    again = take_folder(_settings(tmp_path, slots=True))
    assert again.settings.name == "zone-a-2"
    for each in (taken[0], taken[2], again):
        os.close(each.lock)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError) as caught:
        take_folder(_settings(tmp_path / "file" / "data"))
    assert str(caught.value) == f"The data directory {tmp_path}/file/data cannot be used: Not a directory."


def test_who_listens_everywhere_tells_the_name_of_its_machine() -> None:
    name = socket.gethostname()
    assert advertised("10.0.0.1:7000") == ""
    assert advertised("0.0.0.0:7000") == f"{name}:7000"
    assert advertised("0.0.0.0:7000", "node-1.example.com:7001") == "node-1.example.com:7001"
    assert beside("node-1.example.com:7001", "0.0.0.0:9090") == "node-1.example.com:9090"
    assert beside("node-1.example.com:7001", "127.0.0.1:9090") == "127.0.0.1:9090"
    assert beside("", "0.0.0.0:9090") == "0.0.0.0:9090"
