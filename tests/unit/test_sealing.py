"""Key files, sealed secrets, and the operator's file with users: what is taken, and plain sentences for the rest."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from cluster.random_source import SeededRandom
from cluster.sealing import PREFIX, Keyring, SealError, make_key_file, read_keyring
from router.credentials_file import read_credentials

ALLOW = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"dynamodb:*","Resource":"*"}]}'
LINES = [f"{PREFIX} {base64.b64encode(bytes([number]) * 32).decode()}\n" for number in range(2)]


def private(path: Path, content: str) -> Path:
    path.write_text(content)
    path.chmod(0o600)
    return path


def test_a_key_file_is_made_once_and_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "c1.key"
    make_key_file(path, SeededRandom(1))
    assert path.stat().st_mode & 0o777 == 0o600
    sealed = read_keyring(path).seal(b"secret", "AKID", SeededRandom(2))
    assert read_keyring(path).open(sealed, "AKID") == b"secret"
    with pytest.raises(SealError, match="cannot be made"):
        make_key_file(path, SeededRandom(3))


def test_a_new_key_above_the_old_one_takes_its_place(tmp_path: Path) -> None:
    old = read_keyring(private(tmp_path / "old", LINES[0]))
    sealed = old.seal(b"secret", "AKID", SeededRandom(2))
    both = read_keyring(private(tmp_path / "both", f"# newest first\n{LINES[1]}\n{LINES[0]}"))
    assert both.open(sealed, "AKID") == b"secret"
    with pytest.raises(SealError, match="not in the key file"):
        old.open(both.seal(b"secret", "AKID", SeededRandom(2)), "AKID")


@pytest.mark.parametrize("spoil", [lambda sealed: sealed[:-1], lambda _: b"", lambda sealed: b"\x02" + sealed[1:]])
def test_a_damaged_secret_does_not_open(spoil: object) -> None:
    keyring = Keyring([bytes(32)])
    sealed = keyring.seal(b"secret", "AKID", SeededRandom(2))
    with pytest.raises(SealError):
        keyring.open(spoil(sealed), "AKID")  # type: ignore[operator]
    with pytest.raises(SealError):
        keyring.open(sealed, "AKIE")


@pytest.mark.parametrize("content", ["", "nonsense", f"{PREFIX} !", f"{PREFIX} YWJj", "é"])
def test_what_is_no_key_file(tmp_path: Path, content: str) -> None:
    with pytest.raises(SealError, match="key"):
        read_keyring(private(tmp_path / "key", content))


def test_files_that_everybody_may_read_are_refused(tmp_path: Path) -> None:
    for read, content in ((read_keyring, LINES[0]), (read_credentials, "[users]\n")):
        path = private(tmp_path / "file", content)
        path.chmod(0o644)
        with pytest.raises(SealError, match="chmod 600"):
            read(str(path))
    with pytest.raises(SealError, match="cannot be read"):
        read_keyring(tmp_path / "nothing")


def test_users_in_a_file(tmp_path: Path) -> None:
    content = f"[users.app]\nkeys = {{ TRIZEXAMPLEEXAMPLE01 = 'the secret' }}\npolicies = {{ all = '{ALLOW}' }}\n"
    (known,) = read_credentials(str(private(tmp_path / "users.toml", content)))
    assert (known.user.name, known.id, known.secret) == ("app", "TRIZEXAMPLEEXAMPLE01", "the secret")
    assert "the secret" not in repr(known)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("nonsense", "not a TOML file"),
        ("", "missing required field users"),
        ("[users.a]\nkey = 1", "unknown field key"),
        ("[users.a.keys]\nshort = 's3cr3t'", "16 to 128 letters"),
        ("[users.a.keys]\nTRIZEXAMPLEEXAMPLE01 = ''", "empty secret"),
        ("[users.'a b']", "A user's name"),
        ("[users.a.policies]\np = 's3cr3t'", "it is not JSON"),
        (
            "[users.a.keys]\nTRIZEXAMPLEEXAMPLE01 = 's3cr3t'\n[users.b.keys]\nTRIZEXAMPLEEXAMPLE01 = 's3cr3t'",
            "an access key twice",
        ),
    ],
)
def test_a_wrong_file_is_refused_without_telling_secrets(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(SealError) as caught:
        read_credentials(str(private(tmp_path / "users.toml", content)))
    assert told in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
