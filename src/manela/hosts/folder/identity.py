"""A host's key and certificate, and invitations: lines of text that introduce a host to the operator of another."""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from manela.errors import AgentError, PeerError, import_extra
from manela.hosts.folder.config import check_address
from manela.hosts.state.names import check_host_name
from manela.system.files import replace_file

KEY, CERTIFICATE = "key.pem", "certificate.pem"
_FEWEST_DIGITS = 8
_VALID = datetime.timedelta(days=825)


def make_identity(name: str, key_file: Path, certificate_file: Path) -> None:
    """Write a new key, readable by its owner only, and a self-signed certificate for this name."""
    check_host_name(name)
    x509: Any = import_extra("cryptography.x509", "agents", "a host's key")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    own_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # two certificates of a host need different subjects: a peer that pins both would verify one against the other
    subject = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.COMMON_NAME, name),
            x509.NameAttribute(x509.NameOID.SERIAL_NUMBER, own_id.digest.hex()),
        ]
    )
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(own_id, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own_id), critical=False)
        .sign(key, hashes.SHA256())
    )
    content = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    handle = os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    with replace_file(certificate_file, private=True) as file:
        file.write(certificate.public_bytes(serialization.Encoding.PEM))


def read_certificate(path: Path) -> str:
    """Read and check a certificate in PEM."""
    try:
        return check_certificate(path.read_text(encoding="ascii"), str(path))
    except OSError as error:
        raise AgentError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise AgentError(f"{path}: is not a PEM certificate") from error


def check_certificate(text: str, source: str) -> str:
    """Return the certificate in a text, in the normal form in which certificates are compared."""
    x509: Any = import_extra("cryptography.x509", "agents", "a certificate")
    from cryptography.hazmat.primitives import serialization

    try:
        certificate = x509.load_pem_x509_certificate(text.encode())
    except ValueError as error:
        raise AgentError(f"{source}: is not a PEM certificate") from error
    return str(certificate.public_bytes(serialization.Encoding.PEM).decode())


def fetch_certificate(address: str, seconds: float) -> str:
    """Return the certificate that the server at an address shows; the caller must decide whether to trust it."""
    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["h2"])
    try:
        with (
            socket.create_connection((host.strip("[]"), int(port)), timeout=seconds) as connection,
            context.wrap_socket(connection) as secured,
        ):
            shown = secured.getpeercert(binary_form=True)
    except (OSError, ValueError) as error:
        raise PeerError(f"{address}: cannot be reached: {error}") from error
    if shown is None:
        raise PeerError(f"the server at {address} presented no certificate")
    return check_certificate(ssl.DER_cert_to_PEM_cert(shown), address)


def name_of(certificate: str) -> str:
    """Return the name that a certificate is for."""
    x509: Any = import_extra("cryptography.x509", "agents", "a certificate")

    parsed = x509.load_pem_x509_certificate(certificate.encode())
    names = parsed.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def expiry_of(certificate: str) -> datetime.datetime:
    """Return when a certificate expires."""
    x509: Any = import_extra("cryptography.x509", "agents", "a certificate")

    expiry: datetime.datetime = x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc
    return expiry


def fingerprint(certificate: str) -> str:
    """Return the SHA-256 of a certificate as pairs of hexadecimal digits, for people to compare."""
    x509: Any = import_extra("cryptography.x509", "agents", "a certificate")
    from cryptography.hazmat.primitives import serialization

    content = x509.load_pem_x509_certificate(certificate.encode()).public_bytes(serialization.Encoding.DER)
    digest = hashlib.sha256(content).hexdigest().upper()
    return ":".join(digest[i : i + 2] for i in range(0, len(digest), 2))


def check_key(key_file: Path, certificate: str) -> None:
    """Raise unless the certificate belongs to the key."""
    x509: Any = import_extra("cryptography.x509", "agents", "a certificate")
    from cryptography.hazmat.primitives import serialization

    try:
        key: Any = serialization.load_pem_private_key(key_file.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise AgentError(f"{key_file}: is not a PEM key: {error}") from error
    if key.public_key() != x509.load_pem_x509_certificate(certificate.encode()).public_key():
        raise AgentError(f"{key_file}: does not belong to the certificate beside it")


def find_certificate(certificates: Iterable[str], print_: str) -> str:
    """Return the certificate whose fingerprint starts with these digits; raise unless there is exactly one."""
    prefix = print_.replace(":", "").upper()
    matches = [pem for pem in certificates if fingerprint(pem).replace(":", "").startswith(prefix)]
    if len(prefix) < _FEWEST_DIGITS or len(matches) != 1:
        raise AgentError(
            f"a fingerprint must have at least {_FEWEST_DIGITS} digits and match exactly one certificate, got {print_}"
        )
    return matches[0]


_PREFIX = "manela:"
_LINE = re.compile(re.escape(_PREFIX) + r"([^@\s]+)@(\S+)#([0-9A-Fa-f:]+)")
_HEX = 64
"""Hexadecimal digits of a fingerprint."""


class Invitation(NamedTuple):
    """A host's name, its address, and the fingerprint of its certificate.

    Examples
    --------
    >>> line = str(Invitation("alpha", "mail.example.org:7446", "AB" * 32))
    >>> read_invitation(line).name
    'alpha'
    """

    name: str
    address: str
    print_: str

    def __str__(self) -> str:
        return f"{_PREFIX}{self.name}@{self.address}#{self.print_.replace(':', '')}"


def read_invitation(line: str) -> Invitation:
    """Parse the invitation in a line."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise AgentError(f"an invitation must be {_PREFIX}NAME@ADDRESS#FINGERPRINT, got {line[:100]!r}")
    digits = match[3].replace(":", "").upper()
    if len(digits) != _HEX:
        raise AgentError(f"the fingerprint of an invitation must have {_HEX} hexadecimal digits, got {len(digits)}")
    return Invitation(check_host_name(match[1]), check_address(match[2]), digits)


def accept_invitation(invitation: Invitation, seconds: float = 10.0) -> str:
    """Fetch the certificate of an invited host from its daemon; raise unless it has the invited fingerprint."""
    shown = fetch_certificate(invitation.address, seconds)
    if fingerprint(shown).replace(":", "") != invitation.print_:
        raise AgentError(
            f"the server at {invitation.address} presented certificate {fingerprint(shown)}, which is not the one in "
            f"the invitation; ask the operator of {invitation.name}"
        )
    if name_of(shown) != invitation.name:
        raise AgentError(f"the server at {invitation.address} is {name_of(shown)!r}, not {invitation.name!r}")
    return shown
