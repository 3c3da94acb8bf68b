"""What deploy/ holds fits together: manifests, units, settings of containers; generated files are fresh."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from cluster.configuration import read_settings
from cluster.settings import AutoAdminSettings, RouterSettings, Settings, StorageNodeSettings
from tests.tidy.sources import ROOT

KUBERNETES = ROOT / "deploy" / "kubernetes"
MANIFESTS = sorted(path.name for path in KUBERNETES.glob("*.yaml") if path.name != "kustomization.yaml")
EXTENSIONS = {"PodMonitor", "PrometheusRule"}
SCHEMAS = "1.30"
KINDS: dict[str, type[Settings]] = {
    "router": RouterSettings,
    "storagenode": StorageNodeSettings,
    "autoadmin": AutoAdminSettings,
}


def _objects() -> list[dict[str, Any]]:
    return [each for name in MANIFESTS for each in yaml.safe_load_all((KUBERNETES / name).read_text())]


def _pods() -> list[dict[str, Any]]:
    return [each for each in _objects() if each["kind"] in ("StatefulSet", "Deployment")]


@pytest.mark.parametrize("name", MANIFESTS)
def test_kubernetes_takes_the_manifests(name: str) -> None:
    for each in yaml.safe_load_all((KUBERNETES / name).read_text()):
        if each["kind"] not in EXTENSIONS:
            kubernetes_validate.validate(each, SCHEMAS, strict=True)


def test_a_wrong_manifest_is_found() -> None:
    wrong = dict(_pods()[0], spec={**_pods()[0]["spec"], "replikas": 3})
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, SCHEMAS, strict=True)


def test_the_kustomization_names_all_manifests() -> None:
    named = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    assert sorted(named) == MANIFESTS


def test_selectors_find_what_they_are_for() -> None:
    pods = [each["spec"]["template"]["metadata"]["labels"] for each in _pods()]
    for each in _objects():
        selector = each["spec"].get("selector") if each["kind"] != "Namespace" else None
        for labels in (selector, each.get("spec", {}).get("podSelector")):
            wanted = (labels or {}).get("matchLabels", labels) or {}
            assert any(wanted.items() <= pod.items() for pod in pods), each["metadata"]["name"]


@pytest.mark.parametrize("pod", _pods(), ids=lambda pod: pod["metadata"]["name"])
def test_pods_have_no_rights_and_settings_that_exist(pod: dict[str, Any]) -> None:
    spec = pod["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert not spec["automountServiceAccountToken"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(container)
    kind = KINDS[container["args"][0]]
    environment = {each["name"]: each.get("value", "from-the-pod") for each in container["env"]}
    name = environment.setdefault("POD_NAME", environment.get("TRIZONE_NAME", ""))
    name = f"{pod['metadata']['name']}-0" if name == "from-the-pod" else name
    environment = {key: re.sub(r"\$\([A-Z_]+\)", name, value) for key, value in environment.items()}
    read_settings(kind, [], {"TRIZONE_CLUSTER_ID": "c", **environment})


def _compose_environments() -> list[tuple[str, str, dict[str, str]]]:
    """File, command and environment of each service of ours in the compose files that stand alone."""
    found = []
    for name in ("compose.yaml", "compose.regions.yaml"):
        for service in yaml.safe_load((ROOT / "deploy" / name).read_text())["services"].values():
            command = service.get("command", [""])[0]
            if command in KINDS:
                environment = {
                    key: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) for key, value in service["environment"].items()
                }
                found.append((name, command, environment))
    return found


def test_containers_have_settings_that_exist() -> None:
    environments = _compose_environments()
    assert len(environments) > 10
    for _, command, environment in environments:
        read_settings(KINDS[command], [], {"TRIZONE_CLUSTER_ID": "c", **environment})


def test_containers_drop_all_rights() -> None:
    for name in ("compose.yaml", "compose.regions.yaml"):
        for service in yaml.safe_load((ROOT / "deploy" / name).read_text())["services"].values():
            assert service["cap_drop"] == ["ALL"]
            assert service["read_only"]
            assert service["security_opt"] == ["no-new-privileges:true"]
            assert not {"privileged", "cap_add", "ulimits", "pid", "ipc"} & set(service)


def test_the_image_is_built_by_old_engines_too() -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    assert not re.search(r"--mount|--chmod|--link|<<", re.sub(r"^#.*$", "", dockerfile, flags=re.MULTILINE))
    assert re.search(r"^USER 10001:10001$", dockerfile, re.MULTILINE)
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["include"]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{package.rstrip('*')}" for package in packages} <= set(ignored)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = (ROOT / "deploy" / "systemd" / "trizone@.service").read_text()
    # It looks whether the program and the user are there.
    unit = re.sub(
        r"^(User|Group)=.*\n", "", unit.replace("/opt/trizone/bin/trizone", sys.executable), flags=re.MULTILINE
    )
    for role in KINDS:
        (tmp_path / f"trizone@{role}.service").write_text(unit)
        command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / f"trizone@{role}.service")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = [line for line in done.stderr.splitlines() if "trizone@" in line]
        assert (done.returncode, said) == (0, [])


@pytest.mark.parametrize(
    ("tool", "made"),
    [
        ("configuration.py", "docs/configuration.md"),
        ("kubernetes_rules.py", "deploy/kubernetes/monitoring.yaml"),
    ],
)
def test_generated_files_are_fresh(tool: str, made: str, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    subprocess.run([sys.executable, ROOT / "tools" / tool, fresh], check=True)
    assert fresh.read_text() == (ROOT / made).read_text(), f"`make generated` brings {made} up to date"
