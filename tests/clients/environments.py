"""Real clients: what to install for each, where, and how its program is run.

The environments are kept outside of the repository, in $TRIZONE_CLIENTS or ~/.cache/trizone-clients.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

HOME = Path(os.environ.get("TRIZONE_CLIENTS") or Path.home() / ".cache" / "trizone-clients")
SCRIPTS = Path(__file__).resolve().parent
LEFT_OUT = 77  # the exit code of a program that cannot run on this machine, as automake has it
INSTALL_SECONDS_MAX = 600
RUN_SECONDS_MAX = 300


@dataclass(frozen=True)
class Client:
    """A client: what to install for it, by pip or npm, and the program to run."""

    name: str
    program: str
    python: tuple[str, ...] = ()
    node: tuple[str, ...] = ()


CLIENTS = (
    Client("boto3", "boto3_client.py", python=("boto3",)),
    Client("aws-cli", "aws_cli.sh", python=("awscli",)),
    Client("lib-dynamodb", "lib_dynamodb.mjs", node=("@aws-sdk/client-dynamodb", "@aws-sdk/lib-dynamodb")),
    Client("javascript-streams", "streams.mjs", node=("@aws-sdk/client-dynamodb", "@aws-sdk/client-dynamodb-streams")),
    Client("javascript-signer", "signing.mjs", node=("@smithy/signature-v4",)),
    Client("pynamodb", "pynamodb_models.py", python=("pynamodb",)),
    Client("aioboto3", "aioboto3_client.py", python=("aioboto3",)),
    Client("aiodynamo", "aiodynamo_client.py", python=("aiodynamo", "aiohttp")),
    Client("dynamodb-admin", "dynamodb_admin.py", node=("dynamodb-admin",)),
)


class NotHereError(Exception):
    """A client cannot be installed on this machine; the text says why."""


def prepare(client: Client, folder: Path) -> None:
    """Install the client into `folder`, unless it is there. Raises NotHereError."""
    ready = folder / "ready"
    wanted = " ".join((*client.python, *client.node))
    if ready.exists() and ready.read_text() == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if client.python:
        venv.create(folder, with_pip=True)
        install([str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *client.python], folder)
    if client.node:
        if shutil.which("npm") is None:
            raise NotHereError("there is no npm")
        (folder / "package.json").write_text('{"private": true}')
        install(["npm", "install", "--no-audit", "--no-fund", "--silent", *client.node], folder)
    ready.write_text(wanted)


def install(command: list[str], folder: Path) -> None:
    """Run an installer. Raises NotHereError with what it said last."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX, check=False)
    if done.returncode:
        raise NotHereError("\n".join((done.stdout + done.stderr).strip().splitlines()[-3:]))


def command(client: Client, folder: Path, url: str) -> list[str]:
    """How the client's program is started."""
    program = SCRIPTS / client.program
    if client.program.endswith(".sh"):
        return ["sh", str(program), url]
    if client.program.endswith(".mjs"):
        shutil.copy(program, folder)  # node looks for packages beside the program
        return ["node", str(folder / client.program), url]
    python = folder / "bin" / "python"
    return [str(python if python.exists() else sys.executable), str(program), url, str(folder)]


def run(client: Client, url: str) -> str:
    """ "" when the client's program ended well, else what it said. Raises NotHereError."""
    folder = HOME / client.name
    prepare(client, folder)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        command(client, folder, url),
        cwd=folder,
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    if done.returncode == LEFT_OUT:
        raise NotHereError(done.stdout.strip())
    return "" if done.returncode == 0 else done.stdout + done.stderr
