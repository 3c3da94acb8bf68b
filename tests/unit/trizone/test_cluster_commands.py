"""`trizone cluster init` and `trizone certs`."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest

from cluster.configuration import read_settings
from cluster.sealing import read_keyring
from cluster.settings import AutoAdminSettings
from cluster.tls import Credentials, TlsError, TlsFiles
from router.credentials_file import read_credentials
from trizone.__main__ import main
from trizone.certificates import now


def _run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def test_a_cluster_gets_an_id_and_a_secret_of_its_own(tmp_path: Path) -> None:
    files = [tmp_path / "one.toml", tmp_path / "folder" / "two.toml"]
    for file in files:
        assert _run("cluster", "init", "--file", file, "--region", "eu-central-1") == 0
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    one, two = (tomllib.loads(file.read_text()) for file in files)
    assert set(one) == {"cluster_id", "region", "join_token"}
    assert one["cluster_id"] != two["cluster_id"]
    assert one["join_token"] != two["join_token"]
    settings = read_settings(AutoAdminSettings, [str(files[0])], {"TRIZONE_DATA": "d"})
    assert settings.region == "eu-central-1"
    assert settings.join_token == one["join_token"]


def test_a_first_user_is_made_for_the_routers(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        assert _run("cluster", "init", "--file", tmp_path / folder / "cluster.toml", "--admin") == 0
    (one,), (two,) = (read_credentials(str(tmp_path / folder / "admin.toml")) for folder in ("one", "two"))
    assert (one.user.name, one.user.admin) == ("admin", True)
    assert one.id != two.id
    assert one.secret != two.secret
    assert read_keyring(tmp_path / "one" / "access-keys.key")
    before = (tmp_path / "one" / "admin.toml").read_bytes()
    (tmp_path / "one" / "cluster.toml").unlink()  # as if the start had been cut off
    assert _run("cluster", "init", "--keep", "--file", tmp_path / "one" / "cluster.toml", "--admin") == 0
    assert (tmp_path / "one" / "admin.toml").read_bytes() == before


def test_a_cluster_keeps_its_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cluster.toml"
    assert _run("cluster", "init", "--file", file) == 0
    before = file.read_bytes()
    capsys.readouterr()
    assert _run("cluster", "init", "--file", file) == 2
    assert capsys.readouterr().err == f"{file} is there already; a cluster keeps its id for ever.\n"
    assert _run("cluster", "init", "--file", file, "--keep") == 0
    assert file.read_bytes() == before


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert _run("cluster", "init", "--file", tmp_path / "file" / "cluster.toml") == 2
    assert capsys.readouterr().err.startswith(f"{tmp_path}/file/cluster.toml cannot be written: ")


def test_certificates_are_good_for_their_role(tmp_path: Path) -> None:
    file, directory = tmp_path / "cluster.toml", tmp_path / "certs"
    assert _run("cluster", "init", "--file", file) == 0
    assert _run("certs", "init", "--directory", directory, "--file", file) == 0
    assert _run("certs", "issue", "router", "--directory", directory) == 0
    assert _run("certs", "issue", "storagenode", "node-1", "--directory", directory, "--days", "30") == 0
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {
        "ca.pem": 0o644,
        "ca-key.pem": 0o600,
        "router.pem": 0o644,
        "router-key.pem": 0o600,
        "node-1.pem": 0o644,
        "node-1-key.pem": 0o600,
    }
    identity = tomllib.loads(file.read_text())["cluster_id"]
    node = TlsFiles(f"{directory}/node-1.pem", f"{directory}/node-1-key.pem", f"{directory}/ca.pem")
    Credentials(node, "storagenode", identity, now().timestamp)
    for role, cluster in (("autoadmin", identity), ("storagenode", "another")):
        with pytest.raises(TlsError, match=rf"is not the certificate of {role}\.{cluster}"):
            Credentials(node, role, cluster, now().timestamp)
    with pytest.raises(TlsError, match="expired at"):
        Credentials(node, "storagenode", identity, lambda: now().timestamp() + 31 * 86_400)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["init", "--cluster-id", "No Cluster"], "The cluster id 'No Cluster' cannot stand in certificates: "),
        (["init", "--file", "none.toml"], "Cannot read none.toml (No such file or directory); name the cluster "),
        (["issue", "router"], "certs holds no authority (No such file or directory: certs/ca.pem)."),
        (["issue", "router", "../router"], "'../router' cannot be the name of a certificate."),
        (["issue", "router", "ca"], "'ca' cannot be the name of a certificate."),
    ],
)
def test_a_mistake_is_one_sentence(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _run("certs", *arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith(sentence)
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_certificate_for_https_names_hosts_and_nothing_internal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "certs"
    assert _run("certs", "init", "--directory", directory, "--cluster-id", "c") == 0
    assert _run("certs", "issue", "https", "--directory", directory) == 2
    assert _run("certs", "issue", "https", "--directory", directory, "--host", "storagenode.c.trizone.internal") == 2
    assert _run("certs", "issue", "https", "--directory", directory, "--host", "db.example.com", "--host", "::1") == 0
    assert "https_certificate" in capsys.readouterr().out
    files = TlsFiles(f"{directory}/https.pem", f"{directory}/https-key.pem", f"{directory}/ca.pem")
    with pytest.raises(TlsError, match="is not the certificate of"):
        Credentials(files, "router", "c", now().timestamp)
