"""Connections: closes incoming connections that never identify themselves, so that they do not keep peers out."""

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
"""Unidentified connections that may stay open until the deadline; if larger, more of them can keep peers out."""
_YOUNG = 1.0
"""Seconds that every connection has to identify itself; if larger, floods are closed later."""
_MOST_REMEMBERED = 10_000
"""Addresses of peers to remember; more take memory."""
_MOST_OF_ONE = 16
"""Connections that one peer may have open; it needs one, and more would let it use up file descriptors."""

Address = tuple[str, int]


@dataclass
class _Connection:
    remote: Address
    since: float
    handle: int
    peer: str = ""


@dataclass
class Connections:
    """The connections that were opened to a port of this process, as listed by the system.

    gRPC accepts connections by itself and reports them only when a request arrives. So they are looked up among the
    open files of this process. If the system does not list these, no connection is closed.
    """

    deadline: float
    _known: dict[str, _Connection] = field(default_factory=dict)
    _peers: dict[Address, str] = field(default_factory=dict)

    def identify(self, address: str, peer: str) -> bool:
        """Record that a peer has sent a request from an address in gRPC's form; return whether it is the first."""
        remote = parse_address(address)
        if remote is None:
            return False
        is_first = self._peers.pop(remote, None) is None
        if len(self._peers) >= _MOST_REMEMBERED:
            del self._peers[next(iter(self._peers))]  # the address that was silent for longest
        self._peers[remote] = peer
        return is_first

    def sweep(self, port: int) -> int:
        """Close connections that are not identified in time, or are too many; return how many were closed."""
        now = time.monotonic()
        open_now = _list_sockets()
        if not open_now:
            return 0  # the system does not list them, or no file descriptor is left to read the list
        for inode, handle in open_now.items():
            if inode not in self._known:
                remote = _find_remote(handle, port)
                self._known[inode] = _Connection(remote or ("", 0), now, handle)
        self._known = {inode: connection for inode, connection in self._known.items() if inode in open_now}
        unidentified, by_peer = [], dict[str, list[_Connection]]()
        for inode, connection in self._known.items():
            if connection.remote[1] == 0:
                continue  # a socket that was not opened to this port
            connection.handle = open_now[inode]
            connection.peer = self._peers.get(connection.remote, "")
            if connection.peer:
                by_peer.setdefault(connection.peer, []).append(connection)
            else:
                unidentified.append(connection)
        # forget the addresses of closed connections, as another host may get them
        remotes = {connection.remote for connection in self._known.values()}
        self._peers = {address: peer for address, peer in self._peers.items() if address in remotes}
        unidentified.sort(key=lambda connection: connection.since)
        closing = [connection for connection in unidentified if now - connection.since > self.deadline]
        excess = unidentified[: max(0, len(unidentified) - _FEW)]
        closing += [
            connection for connection in excess if now - connection.since > _YOUNG and connection not in closing
        ]
        for connections in by_peer.values():
            closing += sorted(connections, key=lambda connection: connection.since)[:-_MOST_OF_ONE]
        return sum(_hang_up(connection, port) for connection in closing)


def parse_address(address: str) -> Address | None:
    """Parse an address in gRPC's form, such as ipv4:127.0.0.1:7446 or ipv6:%5B::1%5D:7446.

    Examples
    --------
    >>> parse_address("ipv6:%5B::1%5D:7446"), parse_address("ipv4:10.0.0.1:80")
    (('::1', 7446), ('10.0.0.1', 80))
    """
    kind, _, endpoint = unquote(address).partition(":")
    host, _, port = endpoint.rpartition(":")
    if kind not in ("ipv4", "ipv6") or not port.isdecimal():
        return None
    try:
        return _normalise(host.strip("[]")), int(port)
    except ValueError:
        return None


def _normalise(host: str) -> str:
    """Return the normal form of an IP address; an IPv4 address mapped to IPv6 becomes IPv4."""
    parsed = ip_address(host.partition("%")[0])
    mapped = getattr(parsed, "ipv4_mapped", None)
    return str(mapped or parsed)


def _list_sockets() -> dict[str, int]:
    """Return the file descriptor of each socket of this process, by the inode that the system shows for it."""
    handles = {}
    with contextlib.suppress(OSError):
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(link.readlink())
                if target.startswith("socket:"):
                    handles[target] = int(link.name)
    return handles


def _find_remote(handle: int, port: int) -> Address | None:
    """Return the remote address of a socket, or None if it was not opened to this port."""
    with contextlib.suppress(OSError, ValueError), socket.socket(fileno=os.dup(handle)) as duplicate:
        if duplicate.family in (socket.AF_INET, socket.AF_INET6) and duplicate.getsockname()[1] == port:
            remote = duplicate.getpeername()
            return _normalise(remote[0]), remote[1]
    return None


def _hang_up(connection: _Connection, port: int) -> bool:
    """Close a connection, after checking that its file descriptor has not been reused for another."""
    with contextlib.suppress(OSError, ValueError), socket.socket(fileno=os.dup(connection.handle)) as duplicate:
        if duplicate.family in (socket.AF_INET, socket.AF_INET6) and duplicate.getsockname()[1] == port:
            remote = duplicate.getpeername()
            if (_normalise(remote[0]), remote[1]) == connection.remote:
                duplicate.shutdown(socket.SHUT_RDWR)
                return True
    return False
