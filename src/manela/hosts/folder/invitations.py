"""Invitations: a line of text that introduces one host to the operator of another."""

from __future__ import annotations

import re
from typing import NamedTuple

from manela.errors import AgentError
from manela.hosts.folder.config import check_address
from manela.hosts.folder.identity import fetch_certificate, fingerprint, name_of
from manela.hosts.state.names import check_host_name

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
