"""What README.md tells users to type works as it stands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from trizone import Cluster

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
ENDPOINT = "http://127.0.0.1:8000"


def snippet(language: str, about: str) -> str:
    """The one code block of a language that mentions something."""
    (found,) = [block for block in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if about in block]
    return str(found)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster on which the Python snippet has run."""
    with Cluster() as cluster:
        exec(snippet("python", "create_table").replace(ENDPOINT, cluster.endpoint), {})
        yield cluster


def test_python(cluster: Cluster) -> None:
    item = cluster.resource().Table("orders").get_item(Key={"PK": "USER#1", "SK": "PROFILE"}, ConsistentRead=True)
    assert item["Item"]["name"] == "Ada"


@pytest.mark.skipif(shutil.which("aws") is None, reason="the AWS CLI is not installed")
def test_aws_cli(cluster: Cluster) -> None:
    script = snippet("sh", "aws dynamodb").replace(ENDPOINT, cluster.endpoint)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    ended = subprocess.run(["sh", "-ec", script], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert '"Ada"' in ended.stdout


def test_a_cluster_in_a_test() -> None:
    names: dict[str, object] = {}
    exec(snippet("python", "with Cluster()"), names)
    assert "dynamodb" in names
