"""A small authority of a cluster's own, and the certificates that it signs: one for each process, with its role.

A folder holds what it makes: ca.pem and ca-key.pem, then NAME.pem and NAME-key.pem. Keys are readable by their owner
only; ca-key.pem is needed to sign, by no process of the cluster, and is best kept elsewhere.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cluster.access import CLUSTER_ID, DOMAIN, REGIONS_NAME, REPLICATOR, internal_name
from trizone.errors import CommandError

HTTPS = "https"
"""The role of a certificate that clients of the router see; between processes it is worth nothing."""
AUTHORITY_DAYS = 3_650
DAYS = 365
BACKDATED = timedelta(minutes=5)
"""Clocks differ a little; a new certificate must be valid on all machines at once."""


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def new_authority(cluster_id: str, now: datetime, days: int = AUTHORITY_DAYS) -> Pair:
    """An authority for one cluster. Raises CommandError."""
    if not CLUSTER_ID.match(cluster_id):
        raise CommandError(
            f"The cluster id {cluster_id!r} cannot stand in certificates: it is to be of a-z, 0-9 and dashes, up to 63."
        )
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"Trizone {cluster_id}")
    builder = _builder(name, name, key.public_key(), now, days).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    builder = builder.add_extension(_usage(signs=True), critical=True)
    return Pair(builder.sign(key, hashes.SHA256()), key)


def new_certificate(
    authority: Pair, cluster_id: str, role: str, name: str, hosts: Sequence[str], now: datetime, days: int = DAYS
) -> Pair:
    """A certificate for a process of this role, or for HTTPS; `hosts` are names and addresses that clients may use."""
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = []
    uses = [ExtendedKeyUsageOID.SERVER_AUTH]
    if role != HTTPS:
        names.append(x509.DNSName(internal_name(role, cluster_id)))
        uses.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    if role == REPLICATOR:
        names.append(x509.DNSName(REGIONS_NAME))
    names += [_host(host) for host in hosts]
    if not names:
        raise CommandError("A certificate for HTTPS needs the names that clients use: give them with --host.")
    issuer = authority.certificate.subject
    builder = _builder(_name(name), issuer, key.public_key(), now, days)
    for extension, critical in (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_usage(signs=False), True),
        (x509.ExtendedKeyUsage(uses), False),
        (x509.SubjectAlternativeName(names), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), False),
    ):
        builder = builder.add_extension(extension, critical=critical)
    return Pair(builder.sign(authority.key, hashes.SHA256()), key)


def write_pair(folder: Path, name: str, pair: Pair) -> None:
    """Write NAME.pem and NAME-key.pem, replacing older ones in one step each. Raises CommandError."""
    key = pair.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / f"{name}-key.pem", key, 0o600)
        _replace(folder / f"{name}.pem", pair.certificate.public_bytes(Encoding.PEM), 0o644)
    except OSError as error:
        raise CommandError(f"{folder} cannot be written to: {error.strerror}.") from None


def read_authority(folder: Path) -> tuple[Pair, str]:
    """The authority in a folder, and its cluster's id. Raises CommandError."""
    try:
        certificate = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
        key = load_pem_private_key((folder / "ca-key.pem").read_bytes(), password=None)
    except OSError as error:
        raise CommandError(f"{folder} holds no authority ({error.strerror}: {error.filename}).") from None
    except (ValueError, TypeError):
        raise CommandError(f"ca.pem and ca-key.pem in {folder} cannot be read as a certificate and its key.") from None
    subject = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    cluster_id = str(subject[0].value).removeprefix("Trizone ") if subject else ""
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not CLUSTER_ID.match(cluster_id):
        raise CommandError(f"The authority in {folder} was not made by trizone certs.")
    return Pair(certificate, key), cluster_id


def now() -> datetime:
    """The time of the machine's clock."""
    return datetime.now(UTC)


def _replace(path: Path, content: bytes, mode: int) -> None:
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(descriptor, "wb") as file:
        file.write(content)
    draft.replace(path)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    """A name or an address, as an alternative name. Raises CommandError."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if host.endswith(f".{DOMAIN}"):
        raise CommandError(f"Names that end in {DOMAIN} stand for roles and cannot be given with --host.")
    try:
        return x509.DNSName(host)
    except ValueError:
        raise CommandError(f"{host!r} is neither a host name nor an address.") from None
