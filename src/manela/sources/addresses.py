"""Addresses: parses mail addresses, and gives each one that counts a node name and a number."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from email.utils import getaddresses

from manela.errors import ParameterError

_MOST_KEPT, _LONGEST_KEPT = 50_000, 300
"""Texts in the cache of parsed headers, and their longest length; more take memory, fewer are parsed repeatedly."""
_LONGEST = 64 * 1024
"""Most characters of a header to parse; longer headers are cut."""
_ONE = re.compile(
    r"""\s*+(?:(?:"(?:[^"\\]|\\.)*+"|[^"<>(),:;@\[\]\\]*+)\s*+<\s*+)?+"""
    r"""([^\s<>(),:;@"\[\]\\]++@[^\s<>(),:;@"\[\]\\]++)\s*+>?+\s*+(?:,|\Z)"""
)
"""An address in the usual form, alone or after a name, and the comma that follows it."""
_LOCAL = re.compile(r"[^\s<>(),:;@\"\[\]\\\x00-\x1f\x7f]{1,64}")
_DOMAIN = re.compile(r"(?=.{1,63}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+")
_MACHINES = re.compile(
    r"(do[._-]?)?no(t)?[._-]?reply.*|.*[._-]no[._-]?reply|mailer-daemon|postmaster|abuse|hostmaster|webmaster|root|nobody|"
    r"bounces?|bounces?[._+-].*|.*[._+-]bounces?|owner-.*|.*-owner|.*-request|.*-(un)?subscribe|majordomo|listserv|"
    r"(list|auto|news)[._-]?(admin|master|letter|confirm|reply|responder).*|notifications?|alerts?|daemon|cron"
)
"""Local parts that do not belong to a person."""

MACHINE = -1
"""The number of an address that is left out because it belongs to a machine or is invalid."""


class Addresses:
    """Numbers the addresses that count, in order of first appearance; users of the own domains are own nodes.

    With a key, users are named by keyed hashes; domains are not hashed, as they are names of hosts.

    Examples
    --------
    >>> addresses = Addresses(["example.org"], None)
    >>> addresses.number("Anna <Anna+shop@Example.org>, no-reply@shop.example"), addresses.names
    ((0,), ['anna@example.org'])
    >>> addresses.is_own(0)
    True
    """

    def __init__(self, domains: Iterable[str], key: bytes | None) -> None:
        self.domains = frozenset(_check_domain(domain) for domain in domains)
        if not self.domains:
            raise ParameterError.of("domain", "must be at least one, for example example.org", "none")
        if key is not None and not 16 <= len(key) <= 64:
            raise ParameterError(f"a key of hashes must have 16 to 64 bytes, got {len(key)}")
        self.names: list[str] = []
        self.left_out = 0
        self._key = key
        self._own = bytearray()
        self._numbers: dict[str, int] = {}
        self._by_name: dict[str, int] = {}
        self._parsed: dict[str, tuple[int, ...]] = {}

    def number(self, text: str) -> tuple[int, ...]:
        """Return the distinct numbers of the addresses in a header, without those that do not count."""
        numbers = self._parsed.get(text)
        if numbers is None:
            if len(self._parsed) >= _MOST_KEPT:
                self._parsed.clear()
            numbers = tuple(dict.fromkeys(n for n in map(self.number_one, split_addresses(text)) if n != MACHINE))
            if len(text) <= _LONGEST_KEPT:
                self._parsed[text] = numbers
        return numbers

    def number_one(self, address: str) -> int:
        """Return the number of an address, MACHINE if it does not count."""
        number = self._numbers.get(address)
        if number is None:
            number = self._numbers[address] = self._add(address)
        return number

    def number_name(self, name: str) -> int:
        """Return the number of a node name, which must already be normalised, and hashed if there is a key."""
        number = self._by_name.get(name)
        return self._append(name, name.rpartition("@")[2]) if number is None else number

    def is_own(self, number: int) -> bool:
        """Return whether an address is in an own domain."""
        return bool(self._own[number])

    def _add(self, address: str) -> int:
        """Return the number of an address that is new as it is written; −1 for those of machines."""
        local, _, domain = address.strip().lower().rpartition("@")
        local = local.partition("+")[0] or local
        domain = _as_ascii(domain.rstrip("."))
        if not _LOCAL.fullmatch(local) or not _DOMAIN.fullmatch(domain) or _MACHINES.fullmatch(local):
            self.left_out += 1
            return MACHINE
        plain = f"{local}@{domain}"
        if plain != address and plain in self._numbers:
            return self._numbers[plain]
        name = self._name(local, domain)
        number = self._by_name[name] if name in self._by_name else self._append(name, domain)
        self._numbers[plain] = number
        return number

    def _append(self, name: str, domain: str) -> int:
        number = self._by_name[name] = len(self.names)
        self.names.append(name)
        self._own.append(domain in self.domains)
        return number

    def _name(self, local: str, domain: str) -> str:
        if self._key is None:
            return f"{local}@{domain}"
        digest = hashlib.blake2b(f"{local}@{domain}".encode(), key=self._key, digest_size=12).hexdigest()
        return f"{digest}@{domain}"


def split_addresses(text: str) -> list[str]:
    """Return the addresses in a header.

    Examples
    --------
    >>> split_addresses('"Last, First" <a@x.org>, b@y.org (Bob)')
    ['a@x.org', 'b@y.org']
    """
    text = text[:_LONGEST].rstrip(", \t")
    addresses, position = [], 0
    while position < len(text):
        match = _ONE.match(text, position)
        if match is None:
            try:
                return [address for _, address in getaddresses([text]) if "@" in address]
            except RecursionError:  # from deeply nested brackets
                return []
        addresses.append(match[1])
        position = match.end()
    return addresses


def _as_ascii(domain: str) -> str:
    """Return a domain in ASCII (IDNA), or "" if that is impossible."""
    if domain.isascii():
        return domain
    try:
        return domain.encode("idna").decode()
    except UnicodeError:
        return ""


def _check_domain(domain: str) -> str:
    plain = _as_ascii(domain.strip().lower().lstrip("@").rstrip("."))
    if not _DOMAIN.fullmatch(plain):
        raise ParameterError.of("domain", "must be written like example.org", domain)
    return plain
