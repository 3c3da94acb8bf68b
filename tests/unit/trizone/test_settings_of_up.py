"""`trizone up --set NAME=VALUE`: for all processes that have the setting."""

from __future__ import annotations

import pytest

from cluster.settings import RouterSettings, StorageNodeSettings
from trizone.composition import Member, with_settings
from trizone.data_directory import ProcessRecord
from trizone.errors import CommandError


def member(settings: RouterSettings | StorageNodeSettings) -> Member:
    return Member(ProcessRecord("one", "router", "us-east-1", None, None, "", ""), settings)


ROUTER = member(RouterSettings(cluster_id="c"))
NODE = member(StorageNodeSettings(cluster_id="c", name="n", zone="a", data="d"))


def test_each_process_takes_the_settings_that_it_has() -> None:
    settings = {"slow_request_seconds": "2.5", "max_body": "1000", "beat_interval": "0.3"}
    router, node = with_settings(ROUTER, settings).settings, with_settings(NODE, settings).settings
    assert isinstance(router, RouterSettings)
    assert isinstance(node, StorageNodeSettings)
    assert (router.slow_request_seconds, router.max_body) == (2.5, 1000)
    assert (node.slow_request_seconds, node.beat_interval, node.data) == (2.5, 0.3, "d")


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("nonsense", "1", "--set: nonsense stands for no setting."),
        ("max_body", "many", "--set: max_body has a wrong value"),
        ("slow_request_seconds", "-1", "--set: slow_request_seconds has a wrong value"),
    ],
)
def test_what_is_no_setting_or_no_value_of_it_is_refused(name: str, value: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=f"^{sentence}"):
        with_settings(ROUTER, {name: value})
