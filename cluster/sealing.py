"""Secrets at rest: sealed with the cluster's key, which lies outside of every data directory.

Signature Version 4 needs the secrets themselves, so they cannot be kept as hashes. What the catalog holds of them is
AES-256-GCM under a key of the operator's, bound to the access key that they belong to; a stolen data directory or
catalog gives none of them away. Auto-admin and storage nodes never have the key: the command line seals, routers open.

A key file has one key a line, `trizone-key-1 BASE64`. The first one seals, all of them open: so a key is replaced by
putting a new one above it.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cluster.random_source import RandomSource

KEY_BYTES = 32
PREFIX = "trizone-key-1"
TOKEN_PREFIX = "TZ1"
_VERSION = b"\x01"
_TAG_BYTES = 4
_NONCE_BYTES = 12
_HEAD_BYTES = 1 + _TAG_BYTES + _NONCE_BYTES


class SealError(Exception):
    """A key file or a sealed secret that cannot be used; the text is one plain sentence."""


class Keyring:
    """The cluster's keys."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._ciphers = [(sha256(key).digest()[:_TAG_BYTES], AESGCM(key)) for key in keys]

    def seal(self, secret: bytes, about: str, random: RandomSource) -> bytes:
        """`secret`, sealed for what `about` names: it opens for the same only."""
        tag, cipher = self._ciphers[0]
        nonce = random.bytes(_NONCE_BYTES)
        return _VERSION + tag + nonce + cipher.encrypt(nonce, secret, about.encode())

    def open(self, sealed: bytes, about: str) -> bytes:
        """What was sealed. Raises SealError."""
        if len(sealed) < _HEAD_BYTES or sealed[:1] != _VERSION:
            raise SealError("A sealed secret is damaged.")
        tag, nonce = sealed[1 : 1 + _TAG_BYTES], sealed[1 + _TAG_BYTES : _HEAD_BYTES]
        for known, cipher in self._ciphers:
            if known == tag:
                try:
                    return cipher.decrypt(nonce, sealed[_HEAD_BYTES:], about.encode())
                except InvalidTag:
                    raise SealError(
                        "A sealed secret is damaged, or is not of the access key that it stands with."
                    ) from None
        raise SealError("A secret was sealed with a key that is not in the key file.")


# --- key files ---


def read_keyring(path: str | Path) -> Keyring:
    """The keys in a file that only its owner, and perhaps its group, may read. Raises SealError."""
    try:
        with open(path, encoding="ascii") as file:
            mode, lines = os.fstat(file.fileno()).st_mode, file.read().splitlines()
    except OSError as error:
        raise SealError(f"The key file {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SealError(f"{path} is not a key file of Trizone.") from None
    check_private(path, mode)
    keys = [_key(line, path) for line in lines if line.strip() and not line.startswith("#")]
    if not keys:
        raise SealError(f"The key file {path} has no key.")
    return Keyring(keys)


def check_private(path: str | Path, mode: int) -> None:
    """Raises SealError if everybody on the machine may read or change the file."""
    if stat.S_IMODE(mode) & 0o007:
        raise SealError(f"{path} holds secrets and is open to everybody on this machine: chmod 600 {path}")


def make_key_file(path: Path, random: RandomSource) -> None:
    """A file with one new key. Raises SealError, also when there is such a file."""
    line = f"{PREFIX} {base64.b64encode(random.bytes(KEY_BYTES)).decode()}\n"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise SealError(f"The key file {path} cannot be made: {error.strerror}.") from None


def _key(line: str, path: str | Path) -> bytes:
    prefix, _, text = line.strip().partition(" ")
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        key = b""
    if prefix != PREFIX or len(key) != KEY_BYTES:
        raise SealError(f"{path} is not a key file of Trizone.")
    return key


# --- session tokens ---


class Session(msgspec.Struct, frozen=True, array_like=True):
    """Temporary credentials of a user: they carry themselves, and are kept nowhere. `expires` in seconds since the
    epoch."""

    user: str
    secret: bytes
    expires: int


def session_token(session: Session, access_key: str, keyring: Keyring, random: RandomSource) -> str:
    """The token that goes with the temporary `access_key`."""
    sealed = keyring.seal(msgspec.msgpack.encode(session), f"session {access_key}", random)
    return TOKEN_PREFIX + base64.urlsafe_b64encode(sealed).decode()


def open_session(token: str, access_key: str, keyring: Keyring) -> Session:
    """What a token says. Raises SealError for one that this cluster did not make for this access key."""
    try:
        sealed = base64.urlsafe_b64decode(token.removeprefix(TOKEN_PREFIX))
        return msgspec.msgpack.decode(keyring.open(sealed, f"session {access_key}"), type=Session)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise SealError("The session token is none.") from error
