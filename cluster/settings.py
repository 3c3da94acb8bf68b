"""Settings of each service: one frozen struct. `cluster.configuration` reads them, for `__main__` modules only.

The text below a setting is its entry in docs/configuration.md.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

Text = Annotated[str, Meta(min_length=1)]
Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
Bytes = Annotated[int, Meta(ge=1)]
Address = Annotated[str, Meta(pattern=r"^[^\s:]+:[0-9]{1,5}$")]
LogFormat = Literal["console", "json"]
JOIN_TOKEN_CHARACTERS_MIN = 16
LOG_BLOCK_BYTES = 4096
LOG_SEGMENT_BYTES_MIN = 1 << 20


class SettingsError(Exception):
    """Settings that cannot be used, in one plain sentence for the person who wrote them."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every service is told. Addresses are "host:port"; port 0 picks a free one. Durations are in seconds."""

    cluster_id: Text
    """The cluster that the process belongs to: it refuses whatever is of another."""
    region: Text = "us-east-1"
    """The AWS region that clients name."""
    join_token: str = ""
    """The cluster's secret: a process that does not have it is refused by all others. Empty: everybody is let in."""
    tls_certificate: str = ""
    """File with this process's certificate (PEM). With it all traffic between processes is mutual TLS."""
    tls_key: str = ""
    """File with the certificate's private key (PEM)."""
    tls_authorities: str = ""
    """File with the certificates of the authorities whose certificates are accepted (PEM)."""
    metrics_listen: Address = "127.0.0.1:0"
    """Where /metrics, /healthz and /readyz are served, over plain HTTP."""
    log_format: LogFormat = "console"
    """Lines for people, or one JSON object a line."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """What is logged: this and what is graver."""


class StorageNodeSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A storage node, in one zone."""

    name: Text
    """How people call it."""
    zone: Text
    """The availability zone that it is in. Each partition has one replica in each of three zones."""
    data: Text
    """The folder that it stores everything in; nobody else may use it."""
    data_slots: bool = False
    """`data` holds numbered folders, one for each node of the zone on this machine: the process takes the first that
    no other uses, and adds its number to `name`. For containers that share a volume and are scaled by number."""
    listen: Address = "127.0.0.1:0"
    """Where routers, other nodes and auto-admin call it."""
    advertise: Annotated[str, Meta(pattern=r"^([^\s:]+:[0-9]{1,5})?$")] = ""
    """The address that others are told, if it is not `listen`. Empty: `listen`, with the machine's own name in place of
    0.0.0.0."""
    auto_admins: tuple[Address, ...] = ()
    """Addresses of auto-admin's members."""
    beat_interval: Seconds = 0.150
    """Pause between two heartbeats to another node."""
    lease: Seconds = 0.600
    """How long a leader may serve after a heartbeat that a majority answered."""
    election_timeout_min: Seconds = 0.700
    """A follower that hears nothing from a leader stands for election after this time at the earliest."""
    election_timeout_max: Seconds = 1.100
    """The same, at the latest."""
    report_interval: Seconds = 1.0
    """How often auto-admin is told how things are."""
    log_segment_bytes: Bytes = 64 << 20
    """Size of the log's files, which are allocated ahead: 1 MiB or more, a multiple of 4096."""
    log_bytes_max: Bytes = 8 << 30
    """What the log may grow to before idle partitions are snapshotted to trim it."""
    log_keep_seconds: Seconds = 90.0
    """How long entries stay for followers that are behind although a snapshot holds them."""
    snapshot_log_bytes: Bytes = 64 << 20
    """A partition is snapshotted when its log outgrew it, and this."""
    snapshot_bytes_per_second: Bytes = 64 << 20
    """How fast snapshots are copied."""
    scrub_interval: Seconds = 3600.0
    """Within this time every row is looked at for damage, if `scrub_bytes_per_second` allows."""
    scrub_bytes_per_second: Bytes = 32 << 20
    """How fast rows are looked at; each counts as 1 KiB more than it has."""
    slow_request_seconds: Seconds = 1.0
    """A request that is here for longer is told of in the log."""
    disk_reserve_bytes: Bytes = 64 << 20
    """Free space below which writes that grow the data are refused."""
    map_size_bytes: Bytes = 32 << 30
    """The most that one replica's store can hold."""
    item_collection_bytes_max: Bytes = 10 << 30
    """The most that items of one partition key may take in a table with local secondary indexes."""
    stream_retention: Seconds = 86_400.0
    """How long a stream's records stay."""
    ttl_sweep_interval: Seconds = 1.0
    """Pause between two looks for expired items."""
    region_retention: Seconds = 72_000.0
    """How long changes of a global table are kept for a region that does not take them; then it is cut off."""


class AutoAdminSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Auto-admin, which keeps the catalog of tables and decides where everything lives."""

    data: Text
    """The folder that it stores everything in; nobody else may use it."""
    listen: Address = "127.0.0.1:0"
    """Where routers, storage nodes and the other members call it."""
    peers: tuple[Address, ...] = ()
    """Addresses of auto-admin's other members; `listen` may be among them. None: it has only this one."""
    partitions_per_table: Count = 3
    """How many partitions a new table has."""
    leaders: Literal["spread", "gathered"] = "spread"
    """Leaders sit on all nodes alike, or all on one node."""
    replace_after: Annotated[float, Meta(ge=3)] = 300.0
    """How many seconds nobody must have heard of a storage node before its replicas are made anew on others."""
    rebuilds_at_once: Count = 4
    """How many partitions get a new replica at once, in the whole cluster."""
    create_timeout: Seconds = 10.0
    """How long a new table's partitions may take to elect their leaders."""

    @property
    def others(self) -> tuple[str, ...]:
        """`peers` without this member."""
        return tuple(peer for peer in self.peers if peer != self.listen)


class RouterSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A router, which serves DynamoDB's API."""

    name: Text = "router"
    """How people call it."""
    listen: Address = "127.0.0.1:8000"
    """Where clients come; all routers of a machine may share it."""
    own_listen: Address = "127.0.0.1:0"
    """The same, for this router alone."""
    https_certificate: str = ""
    """File with the certificate that clients see, and those between it and its authority (PEM). Empty: plain HTTP."""
    https_key: str = ""
    """File with that certificate's private key (PEM)."""
    auto_admins: tuple[Address, ...] = ()
    """Addresses of auto-admin's members."""
    seeds: tuple[Address, ...] = ()
    """Addresses of storage nodes that may be asked for the catalog while no auto-admin answers."""
    max_body: Bytes = 16 << 20
    """The largest body of a request, also once it is decompressed."""
    max_headers: Bytes = 16 << 10
    """The most that a request's headers may take."""
    retry_seconds: Seconds = 30.0
    """How long a request is tried again while its partition has no leader."""
    silent_node_seconds: Seconds = 0.5
    """A node that answers nothing for so long is given up."""
    slow_request_seconds: Seconds = 1.0
    """A request that takes longer is told of in the log, with where its time went."""
    auth: Literal["off", "warn", "enforce"] = "off"
    """Whether requests have to be signed by a user who may do what they ask for: "enforce" refuses them otherwise,
    "warn" counts and logs what it would refuse. With "off" a router serves loopback addresses only."""
    key_file: str = ""
    """File with the key that secrets of access keys are sealed with. It must not lie in a data directory."""
    credentials_file: str = ""
    """File with users, their access keys and policies (TOML), beside those of the catalog."""
    request_seconds: Count = 30
    """How long a request may take to arrive, and its answer to be taken, in whole seconds."""
    idle_seconds: Count = 300
    """How long a connection may be idle, in whole seconds."""
    connections_max: Count = 10_000
    """How many connections of clients may be open at once; more are closed at once."""
    connections_per_address_max: Annotated[int, Meta(ge=0)] = 0
    """The same for one client's address, such as an IPv6 /64. 0: no limit, as behind a load balancer."""
    requests_per_address_per_second: Annotated[int, Meta(ge=0)] = 0
    """How many requests one client's address may send in a second; more are throttled. 0: no limit."""
    bodies_max: Bytes = 128 << 20
    """The most that bodies of requests that are still arriving may take together."""
    regions: tuple[Text, ...] = ()
    """The regions that global tables may have replicas in, this one included. Empty: there are no global tables."""


class ReplicatorSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A replicator, which carries changes of global tables to other regions."""

    name: Text = "replicator"
    """How people call it."""
    listen: Address = "127.0.0.1:0"
    """Where other regions' replicators call it."""
    auto_admins: tuple[Address, ...] = ()
    """Addresses of auto-admin's members."""
    seeds: tuple[Address, ...] = ()
    """Addresses of storage nodes that may be asked for the catalog while no auto-admin answers."""
    peers: tuple[Annotated[str, Meta(pattern=r"^[^\s=]+=[^\s:]+:[0-9]{1,5}$")], ...] = ()
    """The other regions' replicators, each as region=host:port; a region may have several."""
    regions_token: str = ""
    """The secret that the replicators of all regions share: they refuse whoever does not have it. Empty: join_token."""
    exchange_interval: Seconds = 0.5
    """Pause between two looks at what tables there are, here and in other regions."""
    scrub_interval: Seconds = 3_600.0
    """How often tables are compared with those of other regions."""
    tombstone_seconds: Seconds = 300.0
    """How long a deleted item is remembered after every region has the delete."""


S = TypeVar("S", bound=Settings)


def check_settings(settings: Settings) -> None:
    """Checks that no single member can make. Raises SettingsError."""
    for name in ("join_token", "regions_token"):
        if 0 < len(getattr(settings, name, "")) < JOIN_TOKEN_CHARACTERS_MIN:
            raise SettingsError(f"{name} is too short: it has at least {JOIN_TOKEN_CHARACTERS_MIN} characters.")
    tls = {name: getattr(settings, name) for name in ("tls_certificate", "tls_key", "tls_authorities")}
    if any(tls.values()) and not all(tls.values()):
        missing = next(name for name, value in tls.items() if not value)
        raise SettingsError(f"tls_certificate, tls_key and tls_authorities go together, and {missing} is missing.")
    if isinstance(settings, RouterSettings) and bool(settings.https_certificate) != bool(settings.https_key):
        raise SettingsError("https_certificate and https_key go together, and one of them is missing.")
    if (
        isinstance(settings, RouterSettings)
        and settings.auth != "off"
        and not (settings.key_file or settings.credentials_file)
    ):
        raise SettingsError(f'auth = "{settings.auth}" needs a key_file, a credentials_file or both.')
    if isinstance(settings, AutoAdminSettings) and (
        len(set(settings.peers)) != len(settings.peers) or len(settings.others) not in (0, 2)
    ):
        raise SettingsError("peers names the other two members of auto-admin, or nobody if it has only this one.")
    if isinstance(settings, StorageNodeSettings):
        if not settings.beat_interval < settings.lease < settings.election_timeout_min:
            raise SettingsError(
                "beat_interval must be shorter than lease, and lease shorter than election_timeout_min."
            )
        if settings.election_timeout_min >= settings.election_timeout_max:
            raise SettingsError("election_timeout_min must be shorter than election_timeout_max.")
        _check_log_segments(settings.log_segment_bytes)


def _check_log_segments(size: int) -> None:
    """A file of the log consists of whole blocks. What fits into none gets a larger file, which is not used again."""
    if size < LOG_SEGMENT_BYTES_MIN or size % LOG_BLOCK_BYTES:
        raise SettingsError(
            f"log_segment_bytes must be at least {LOG_SEGMENT_BYTES_MIN} and a multiple of {LOG_BLOCK_BYTES}."
        )


def format_settings(settings: Settings) -> bytes:
    """The settings as TOML that `parse_settings` reads back. Every setting is a text, number or list of texts."""
    lines = []
    for name, value in msgspec.structs.asdict(settings).items():
        # JSON's texts, numbers and arrays of texts are also TOML's.
        lines.append(name.encode() + b" = " + msgspec.json.encode(value))
    return b"\n".join(lines) + b"\n"
