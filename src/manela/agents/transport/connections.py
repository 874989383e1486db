"""Connections that others open to this process: those that never say who they are must not keep peers out."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote

_FEW = 64
"""Connections without a certificate that is known that may stay open until the deadline; more are hung up early."""
_YOUNG = 1.0
"""Seconds that a connection has to show a certificate in any case."""
_MOST_REMEMBERED = 10_000
_MOST_OF_ONE = 16
"""Connections of one peer; it needs one."""

Address = tuple[str, int]


@dataclass
class _Connection:
    remote: Address
    since: float
    handle: int
    peer: str = ""


@dataclass
class Connections:
    """The connections that were opened to a port of this process, as the system shows them.

    gRPC accepts connections by itself and tells of them only when a request comes, so they are looked for among the
    open files of this process. Where the system does not show these, nothing is hung up.
    """

    deadline: float
    _known: dict[str, _Connection] = field(default_factory=dict)
    _peers: dict[Address, str] = field(default_factory=dict)

    def identify(self, address: str, peer: str) -> bool:
        """A request has come from an address, as gRPC writes it, by a peer's certificate; returns whether the first."""
        found = parse_address(address)
        if found is None:
            return False
        is_first = found not in self._peers
        if len(self._peers) > _MOST_REMEMBERED:
            self._peers.clear()
        self._peers[found] = peer
        return is_first

    def sweep(self, port: int) -> int:
        """Hang up those that have not shown a certificate in time, or are too many; returns how many."""
        now = time.monotonic()
        open_now = _list_sockets()
        if not open_now:
            return 0  # the system does not show them, or has no file left to look by
        for inode, handle in open_now.items():
            if inode not in self._known:
                remote = _find_remote(handle, port)
                self._known[inode] = _Connection(remote or ("", 0), now, handle)
        self._known = {inode: one for inode, one in self._known.items() if inode in open_now}
        waiting, of_peers = [], dict[str, list[_Connection]]()
        for inode, one in self._known.items():
            if one.remote[1] == 0:
                continue  # not one of these
            one.handle = open_now[inode]
            one.peer = self._peers.get(one.remote, "")
            if one.peer:
                of_peers.setdefault(one.peer, []).append(one)
            else:
                waiting.append(one)
        # an address is used again when its connection has gone
        remotes = {one.remote for one in self._known.values()}
        self._peers = {address: peer for address, peer in self._peers.items() if address in remotes}
        waiting.sort(key=lambda one: one.since)
        ended = [one for one in waiting if now - one.since > self.deadline]
        many = [one for one in waiting[: max(0, len(waiting) - _FEW)] if now - one.since > _YOUNG]
        ended += [one for one in many if one not in ended]
        for connections in of_peers.values():
            ended += sorted(connections, key=lambda one: one.since)[:-_MOST_OF_ONE]
        return sum(_hang_up(one, port) for one in ended)


def parse_address(address: str) -> Address | None:
    """An address as gRPC writes it, such as ipv4:127.0.0.1:7446 or ipv6:%5B::1%5D:7446.

    Examples
    --------
    >>> parse_address("ipv6:%5B::1%5D:7446"), parse_address("ipv4:10.0.0.1:80")
    (('::1', 7446), ('10.0.0.1', 80))
    """
    kind, _, rest = unquote(address).partition(":")
    host, _, port = rest.rpartition(":")
    if kind not in ("ipv4", "ipv6") or not port.isdecimal():
        return None
    try:
        return _normalise(host.strip("[]")), int(port)
    except ValueError:
        return None


def _normalise(host: str) -> str:
    """One way to write an address; an old one that came by the new protocol is an old one."""
    found = ip_address(host.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)


def _list_sockets() -> dict[str, int]:
    """The sockets of this process: what the system calls each, and its number here."""
    found = {}
    with contextlib.suppress(OSError):
        for one in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(one.readlink())
                if target.startswith("socket:"):
                    found[target] = int(one.name)
    return found


def _find_remote(handle: int, port: int) -> Address | None:
    """Where a socket's other end is, if it was opened to this port."""
    with contextlib.suppress(OSError, ValueError), socket.socket(fileno=os.dup(handle)) as one:
        if one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockname()[1] == port:
            remote = one.getpeername()
            return _normalise(remote[0]), remote[1]
    return None


def _hang_up(connection: _Connection, port: int) -> bool:
    """End a connection; its number may be another's by now, so that is looked at again."""
    with contextlib.suppress(OSError, ValueError), socket.socket(fileno=os.dup(connection.handle)) as one:
        if one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockname()[1] == port:
            remote = one.getpeername()
            if (_normalise(remote[0]), remote[1]) == connection.remote:
                one.shutdown(socket.SHUT_RDWR)
                return True
    return False
