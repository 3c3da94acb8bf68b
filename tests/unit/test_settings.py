"""Settings files."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.configuration import parse_settings, read_settings
from cluster.settings import (
    AutoAdminSettings,
    RouterSettings,
    SettingsError,
    StorageNodeSettings,
    check_settings,
    format_settings,
)

NODE = b'cluster_id = "c"\nname = "n1"\nzone = "a"\ndata = "d"\n'


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_bytes(
        NODE + b'auto_admins = ["127.0.0.1:7000"]\nlease = 1\nelection_timeout_min = 1.5\nelection_timeout_max = 2\n'
    )
    settings = read_settings(StorageNodeSettings, [str(path)], {})
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
        (NODE + b'join_token = "short"', "join_token is too short: it has at least 16 characters."),
        (
            NODE + b'tls_certificate = "c"\ntls_key = "k"',
            "tls_certificate, tls_key and tls_authorities go together, and tls_authorities is missing.",
        ),
        (
            NODE + b"log_segment_bytes = 65536",
            "log_segment_bytes must be at least 1048576 and a multiple of 4096.",
        ),
        (
            NODE + b"log_segment_bytes = 5000000",
            "log_segment_bytes must be at least 1048576 and a multiple of 4096.",
        ),
        (NODE + b"election_timeout_max = 0.7", "election_timeout_min must be shorter than election_timeout_max."),
    ],
)
def test_a_mistake_is_told_in_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(StorageNodeSettings, content, "f")
    assert str(caught.value) == sentence


@pytest.mark.parametrize("peers", [["b:1"], ["b:1", "b:1"], ["b:1", "a:1"], ["b:1", "c:1", "d:1"]])
def test_auto_admin_has_one_member_or_three(peers: list[str]) -> None:
    with pytest.raises(SettingsError, match=r"^peers names the other two members of auto-admin, or nobody .*\.$"):
        check_settings(AutoAdminSettings(cluster_id="c", data="d", listen="a:1", peers=tuple(peers)))


def test_auto_admins_peers_may_name_all_of_its_members() -> None:
    settings = AutoAdminSettings(cluster_id="c", data="d", listen="b:1", peers=("a:1", "b:1", "c:1"))
    check_settings(settings)
    assert settings.others == ("a:1", "c:1")


def test_text_that_is_no_toml_and_a_missing_file() -> None:
    with pytest.raises(SettingsError, match=r"^f is not a TOML file: .*\.$"):
        parse_settings(AutoAdminSettings, b"= 1", "f")
    with pytest.raises(SettingsError, match=r"^f is not a TOML file: .*\.$"):
        parse_settings(AutoAdminSettings, b"\xff", "f")
    with pytest.raises(SettingsError, match=r"^Cannot read the settings file nowhere/x: No such file or directory\.$"):
        read_settings(AutoAdminSettings, ["nowhere/x"], {})


def test_defaults_fit_together() -> None:
    check_settings(StorageNodeSettings(cluster_id="c", name="n", zone="z", data="d"))


def test_later_files_win_and_the_environment_wins_over_all(tmp_path: Path) -> None:
    (tmp_path / "cluster.toml").write_bytes(b'cluster_id = "c"\nregion = "eu-central-1"\nlog_level = "error"\n')
    (tmp_path / "node.toml").write_bytes(b'name = "n1"\nzone = "a"\ndata = "d"\nlog_level = "warning"\n')
    paths = [str(tmp_path / "cluster.toml"), str(tmp_path / "node.toml")]
    environment = {
        "HOME": "/",
        "TRIZONE_NAME": "n2",
        "TRIZONE_LEASE": "0.5",
        "TRIZONE_DATA_SLOTS": "true",
        "TRIZONE_AUTO_ADMINS": "one:7000, two:7000",
        "TRIZONE_SEEDS": "a:1",  # a router's
        "TRIZONE_PARENT": "12",
        "TRIZONE_ROUTER_PORT": "tcp://10.0.0.1:8000",
        "TRIZONE_ROUTER_PORT_8000_TCP_ADDR": "10.0.0.1",
        "TRIZONE_ROUTER_SERVICE_HOST": "10.0.0.1",
    }
    assert read_settings(StorageNodeSettings, paths, environment) == StorageNodeSettings(
        cluster_id="c",
        region="eu-central-1",
        name="n2",
        zone="a",
        data="d",
        data_slots=True,
        lease=0.5,
        auto_admins=("one:7000", "two:7000"),
        log_level="warning",
    )


def test_the_environment_alone_is_enough() -> None:
    environment = {"TRIZONE_CLUSTER_ID": "c", "TRIZONE_DATA": "d"}
    assert read_settings(AutoAdminSettings, [], environment) == AutoAdminSettings(cluster_id="c", data="d")


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({}, "The setting cluster_id is missing: give it in a file with --config, or as TRIZONE_CLUSTER_ID."),
        ({"TRIZONE_COLOUR": "1"}, "The environment variable TRIZONE_COLOUR stands for no setting."),
        (
            {"TRIZONE_LEASE": "long"},
            "The environment variable TRIZONE_LEASE has a wrong value: expected float, got str.",
        ),
        (
            {"TRIZONE_CLUSTER_ID": "c", "TRIZONE_AUTO_ADMINS": "one"},
            "The environment variable TRIZONE_AUTO_ADMINS has a wrong value for auto_admins: "
            "expected str matching regex '^[^\\\\s:]+:[0-9]{1,5}$'.",
        ),
    ],
)
def test_a_mistake_in_the_environment_is_told_in_one_sentence(environment: dict[str, str], sentence: str) -> None:
    complete = {"TRIZONE_NAME": "n", "TRIZONE_ZONE": "z", "TRIZONE_DATA": "d"}
    with pytest.raises(SettingsError) as caught:
        read_settings(StorageNodeSettings, [], {**complete, **environment} if environment else {})
    assert str(caught.value) == sentence


def test_a_file_that_lacks_something_is_named_with_the_others(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b'cluster_id = "c"\n')
    with pytest.raises(SettingsError) as caught:
        read_settings(AutoAdminSettings, [str(tmp_path / "a"), str(tmp_path / "b")], {})
    assert str(caught.value) == f"{tmp_path}/a and {tmp_path}/b lack the setting data."
