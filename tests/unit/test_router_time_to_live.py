"""Changes of a table's time to live, by the clock."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dynamo.errors import ApiError
from router.operations.update_time_to_live import CHANGE_SECONDS_MIN, changed_table
from tests.unit.partition_samples import TABLE

ON: dict[str, Any] = {"Enabled": True, "AttributeName": "expires"}
OFF: dict[str, Any] = {"Enabled": False, "AttributeName": "expires"}


def test_it_changes_once_an_hour() -> None:
    on = changed_table(TABLE, ON, 1_000_000.0)
    assert on == msgspec.structs.replace(TABLE, ttl_attribute="expires", ttl_changed=1_000_000.0)
    with pytest.raises(ApiError, match="multiple times within a fixed interval"):
        changed_table(on, OFF, 1_000_000.0 + CHANGE_SECONDS_MIN - 1)
    off = changed_table(on, OFF, 1_000_000.0 + CHANGE_SECONDS_MIN)
    assert off == msgspec.structs.replace(TABLE, ttl_changed=1_000_000.0 + CHANGE_SECONDS_MIN)
    with pytest.raises(ApiError, match="multiple times within a fixed interval"):
        changed_table(off, ON, 1_000_001.0 + CHANGE_SECONDS_MIN)
    assert changed_table(off, {**ON, "AttributeName": "other"}, 1e7).ttl_attribute == "other"
