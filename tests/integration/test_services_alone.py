"""Each service by itself, as on several servers: told by files and the environment, telling what is wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from cluster.access import ROLES
from tests.integration.launching import eventually, trizone_command
from tests.unit.certificates import Authority
from trizone.ports import choose
from trizone.readiness import http_get

SERVICES = ("router", "storagenode", "autoadmin", "replicator")
COMPLETE = {
    "TRIZONE_CLUSTER_ID": "a-cluster",
    "TRIZONE_ZONE": "a",
    "TRIZONE_NAME": "one",
    "TRIZONE_LISTEN": "127.0.0.1:0",
}


def _ended(service: str, data: Path, **settings: str) -> tuple[int, str]:
    """Exit code and last words of a service that cannot start."""
    environment = {**os.environ, **COMPLETE, "TRIZONE_DATA": f"{data}/data", **settings}
    done = subprocess.run(
        trizone_command(service), capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_a_certificate_of_another_role_is_one_sentence(service: str, tmp_path: Path) -> None:
    assert service in ROLES
    authority = Authority(tmp_path / "ca")
    other = authority.files("operator")
    settings = {
        "TRIZONE_TLS_CERTIFICATE": other.certificate,
        "TRIZONE_TLS_KEY": other.key,
        "TRIZONE_TLS_AUTHORITIES": other.authorities,
    }
    sentence = f"{other.certificate} is not the certificate of {service}.a-cluster.trizone.internal.\n"
    assert _ended(service, tmp_path, **settings) == (2, sentence)


def test_certificates_of_https_that_cannot_be_used_are_one_sentence(tmp_path: Path) -> None:
    settings = {"TRIZONE_HTTPS_CERTIFICATE": "/none.pem", "TRIZONE_HTTPS_KEY": "/none-key.pem"}
    assert _ended("router", tmp_path, **settings) == (2, "Cannot read /none.pem: No such file or directory.\n")


def test_a_node_in_containers_takes_a_folder_and_ends_cleanly(tmp_path: Path) -> None:
    """As in deploy/compose.yaml: the environment alone, two nodes on one volume, SIGTERM."""
    ports = choose({"one": ("listen", "metrics"), "two": ("listen", "metrics")}, {})
    nodes = []
    for chosen in ports.values():
        environment = {
            **os.environ,
            **COMPLETE,
            "TRIZONE_DATA": str(tmp_path),
            "TRIZONE_DATA_SLOTS": "true",
            "TRIZONE_LISTEN": f"127.0.0.1:{chosen['listen']}",
            "TRIZONE_METRICS_LISTEN": f"127.0.0.1:{chosen['metrics']}",
            "TRIZONE_LOG_SEGMENT_BYTES": str(4 << 20),
        }
        nodes.append(subprocess.Popen(trizone_command("storagenode"), env=environment, stderr=subprocess.DEVNULL))
    try:
        for chosen in ports.values():
            eventually(lambda chosen=chosen: _is_ready(chosen["metrics"]))  # type: ignore[misc]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]
        for node in nodes:
            node.send_signal(signal.SIGTERM)
        assert [node.wait(20) for node in nodes] == [0, 0]
    finally:
        for node in nodes:
            if node.poll() is None:
                node.kill()


def _is_ready(port: int) -> bool:
    return asyncio.run(http_get(f"127.0.0.1:{port}", "/readyz")) is not None
