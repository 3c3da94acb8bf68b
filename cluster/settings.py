"""Settings of each service: one frozen struct, read from a TOML file. Only `__main__` modules read them."""

from __future__ import annotations

import tomllib
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

Text = Annotated[str, Meta(min_length=1)]
Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
Bytes = Annotated[int, Meta(ge=1)]
Address = Annotated[str, Meta(pattern=r"^[^\s:]+:[0-9]{1,5}$")]
LogFormat = Literal["console", "json"]


class SettingsError(Exception):
    """Settings that cannot be used, in one plain sentence for the person who wrote them."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every service is told. Addresses are "host:port"; port 0 picks a free one."""

    cluster_id: Text
    region: Text = "us-east-1"
    metrics_listen: Address = "127.0.0.1:0"
    log_format: LogFormat = "console"
    log_level: Literal["debug", "info", "warning", "error"] = "info"


class StorageNodeSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A storage node. Durations are in seconds; design §5 says what they mean."""

    name: Text
    zone: Text
    data: Text
    listen: Address = "127.0.0.1:0"
    auto_admins: tuple[Address, ...] = ()
    beat_interval: Seconds = 0.150
    lease: Seconds = 0.600
    election_timeout_min: Seconds = 0.700
    election_timeout_max: Seconds = 1.100
    report_interval: Seconds = 1.0
    log_segment_bytes: Bytes = 64 << 20
    log_bytes_max: Bytes = 8 << 30
    log_keep_seconds: Seconds = 90.0
    snapshot_log_bytes: Bytes = 64 << 20
    snapshot_bytes_per_second: Bytes = 64 << 20
    disk_reserve_bytes: Bytes = 64 << 20
    map_size_bytes: Bytes = 32 << 30
    item_collection_bytes_max: Bytes = 10 << 30
    stream_retention: Seconds = 86_400.0
    ttl_sweep_interval: Seconds = 1.0


class AutoAdminSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Auto-admin. `leaders`: new partitions prefer leaders on all nodes alike, or all on one node."""

    data: Text
    listen: Address = "127.0.0.1:0"
    partitions_per_table: Count = 3
    leaders: Literal["spread", "gathered"] = "spread"
    create_timeout: Seconds = 10.0


class RouterSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A router. `listen` may be shared by all routers of a machine, `own_listen` is this one's alone.

    `seeds` are storage nodes that it may ask for the catalog while no auto-admin answers.
    """

    name: Text = "router"
    listen: Address = "127.0.0.1:8000"
    own_listen: Address = "127.0.0.1:0"
    auto_admins: tuple[Address, ...] = ()
    seeds: tuple[Address, ...] = ()
    max_body: Bytes = 16 << 20
    max_headers: Bytes = 16 << 10
    retry_seconds: Seconds = 30.0
    silent_node_seconds: Seconds = 0.5


S = TypeVar("S", bound=Settings)


def read_settings(kind: type[S], path: str) -> S:
    """The settings in the TOML file at `path`. Raises SettingsError."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise SettingsError(f"Cannot read the settings file {path}: {error.strerror}.") from error
    return parse_settings(kind, content, path)


def parse_settings(kind: type[S], content: bytes, source: str) -> S:
    """The settings in TOML `content`; `source` names it in errors. Raises SettingsError."""
    try:
        raw = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{source} is not a TOML file: {str(error).rstrip('.')}.") from error
    try:
        settings = msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise SettingsError(_sentence(str(error), source)) from error
    check_settings(settings)
    return settings


def check_settings(settings: Settings) -> None:
    """Checks that no single member can make. Raises SettingsError."""
    if isinstance(settings, StorageNodeSettings):
        if not settings.beat_interval < settings.lease < settings.election_timeout_min:
            raise SettingsError(
                "beat_interval must be shorter than lease, and lease shorter than election_timeout_min."
            )
        if settings.election_timeout_min >= settings.election_timeout_max:
            raise SettingsError("election_timeout_min must be shorter than election_timeout_max.")


def format_settings(settings: Settings) -> bytes:
    """The settings as TOML that `parse_settings` reads back. Every setting is a text, number or list of texts."""
    lines = []
    for name, value in msgspec.structs.asdict(settings).items():
        # JSON's texts, numbers and arrays of texts are also TOML's.
        lines.append(name.encode() + b" = " + msgspec.json.encode(value))
    return b"\n".join(lines) + b"\n"


def _sentence(problem: str, source: str) -> str:
    """msgspec's "Expected `int`, got `str` - at `$.name`" as one sentence."""
    problem, _, place = problem.partition(" - at ")
    member = place.strip("`").removeprefix("$.").removeprefix("$")
    if problem.startswith("Object contains unknown field "):
        name = problem.removeprefix("Object contains unknown field ").strip("`")
        return f"{source} has a setting that does not exist: {name}."
    if problem.startswith("Object missing required field "):
        name = problem.removeprefix("Object missing required field ").strip("`")
        return f"{source} lacks the setting {name}."
    return f"{source} has a wrong value for {member}: {problem[0].lower()}{problem[1:].replace('`', '')}."
