"""Settings files."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.settings import (
    AutoAdminSettings,
    RouterSettings,
    SettingsError,
    StorageNodeSettings,
    check_settings,
    format_settings,
    parse_settings,
    read_settings,
)

NODE = b'cluster_id = "c"\nname = "n1"\nzone = "a"\ndata = "d"\n'


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_bytes(
        NODE + b'auto_admins = ["127.0.0.1:7000"]\nlease = 1\nelection_timeout_min = 1.5\nelection_timeout_max = 2\n'
    )
    settings = read_settings(StorageNodeSettings, str(path))
    assert settings.auto_admins == ("127.0.0.1:7000",)
    assert settings.lease == 1.0
    assert settings.region == "us-east-1"


@pytest.mark.parametrize(
    "settings",
    [
        StorageNodeSettings(cluster_id="c", name='quo"te', zone="zürich\t", data="a\\b", auto_admins=("h:1", "h:2")),
        AutoAdminSettings(cluster_id="c", data="d", partitions_per_table=7, leaders="gathered"),
        RouterSettings(cluster_id="c", seeds=("127.0.0.1:1",)),
    ],
)
def test_what_is_formatted_is_read_back(settings: StorageNodeSettings | AutoAdminSettings | RouterSettings) -> None:
    assert parse_settings(type(settings), format_settings(settings), "f") == settings


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (NODE + b"colour = 1", "f has a setting that does not exist: colour."),
        (b'cluster_id = "c"\nname = "n1"\nzone = "a"', "f lacks the setting data."),
        (NODE + b'lease = "long"', "f has a wrong value for lease: expected float, got str."),
        (NODE + b"lease = -1", "f has a wrong value for lease: expected float > 0.0."),
        (
            NODE + b"lease = 0.8",
            "beat_interval must be shorter than lease, and lease shorter than election_timeout_min.",
        ),
        (NODE + b"election_timeout_max = 0.7", "election_timeout_min must be shorter than election_timeout_max."),
    ],
)
def test_a_mistake_is_told_in_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(StorageNodeSettings, content, "f")
    assert str(caught.value) == sentence


def test_text_that_is_no_toml_and_a_missing_file() -> None:
    with pytest.raises(SettingsError, match=r"^f is not a TOML file: .*\.$"):
        parse_settings(AutoAdminSettings, b"= 1", "f")
    with pytest.raises(SettingsError, match=r"^f is not a TOML file: .*\.$"):
        parse_settings(AutoAdminSettings, b"\xff", "f")
    with pytest.raises(SettingsError, match=r"^Cannot read the settings file nowhere/x: No such file or directory\.$"):
        read_settings(AutoAdminSettings, "nowhere/x")


def test_defaults_fit_together() -> None:
    check_settings(StorageNodeSettings(cluster_id="c", name="n", zone="z", data="d"))
