"""Commands to the container engine, and what they say."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[2]
COMMAND_S = 240
T = TypeVar("T")


def docker(*arguments: str) -> str:
    """What `docker …` prints. Fails the test with its errors."""
    done = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, timeout=COMMAND_S, cwd=ROOT, check=False
    )
    assert done.returncode == 0, f"docker {' '.join(arguments)}: {done.stderr[-4_000:]}"
    return done.stdout


def eventually(what: Callable[[], T], timeout: float = 60.0) -> T:
    """The first true answer of `what`, asked again and again. Fails the test after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (answer := what()):
        assert time.monotonic() < deadline, f"{what} stayed {answer!r}"
        time.sleep(0.2)
    return answer


class Project:
    """One compose file, up."""

    def __init__(self, file: str) -> None:
        self._file = file

    def __call__(self, *arguments: str) -> str:
        """What `docker compose …` prints."""
        return docker("compose", "--file", self._file, *arguments)

    def remove_containers(self) -> None:
        """Stop and remove every container, and keep the volumes: `docker compose down` but for the network, which the
        engine may hold on to when a container was taken off it before (moby/moby#42119)."""
        self("rm", "--stop", "--force")
        assert not self.containers()

    def end(self) -> None:
        """Remove containers and volumes, and the network unless the engine holds on to it."""
        try:
            self("down", "--volumes", "--remove-orphans")
        except AssertionError as error:
            if "has active endpoints" not in str(error):
                raise
        assert not self.containers()

    def containers(self, service: str = "") -> list[dict[str, Any]]:
        """What the engine knows of the service's containers, or of all, in the order of their numbers."""
        ids = self("ps", "--all", "--quiet", *([service] if service else [])).split()
        found: list[dict[str, Any]] = json.loads(docker("inspect", *ids)) if ids else []
        return sorted(found, key=lambda container: str(container["Name"]))

    def container(self, service: str, number: int = 1) -> str:
        """The id of one container of a service."""
        label = "com.docker.compose.container-number"
        return next(
            str(each["Id"]) for each in self.containers(service) if each["Config"]["Labels"][label] == str(number)
        )

    def address(self, service: str, number: int = 1) -> str:
        """The address of one container of a service."""
        (container,) = json.loads(docker("inspect", self.container(service, number)))
        (network,) = container["NetworkSettings"]["Networks"].values()
        return str(network["IPAddress"])

    def ready(self, service: str) -> bool:
        """Whether all containers of a service say so; asked of them, as the engine's health checks take their time."""
        containers = self.containers(service)
        return bool(containers) and all(_is_ready(container) for container in containers)


def _is_ready(container: dict[str, Any]) -> bool:
    networks = container["NetworkSettings"]["Networks"].values()
    try:
        with urllib.request.urlopen(f"http://{next(iter(networks))['IPAddress']}:9090/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, ValueError, StopIteration):
        return False
