"""Doctor: checks a host's home and its peers, and reports problems early."""

from __future__ import annotations

import asyncio
import datetime
import shutil
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from manela.errors import ManelaError
from manela.hosts.daemon.status import WARN_DAYS
from manela.hosts.folder.config import FILE, Config, read_config
from manela.hosts.folder.home import is_running, read_status
from manela.hosts.folder.identity import CERTIFICATE, KEY, check_key, expiry_of, read_certificate
from manela.hosts.folder.store import BACKUP, NAME, Store
from manela.hosts.folder.vectors import NAME as VECTORS
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.system.files import check_private

GOOD, POOR, BAD = "ok", "warning", "error"
_PATIENCE = 5.0
"""Seconds to wait for a peer's answer."""
_LATE = 60.0
"""Seconds without a request after which a peer is reported; if larger, silent peers are reported later."""
_LEAST_FREE = 50e6
"""Free bytes on the disk, beyond twice the vectors, below which a warning is given; larger values warn earlier."""


class Finding(NamedTuple):
    """The result of one check: ok, a warning or an error."""

    level: str
    what: str
    message: str


def examine(home: Path) -> Iterator[Finding]:
    """Yield the findings of all checks, in order."""
    try:
        config = read_config(home / FILE)
        config.terms(0)
    except ManelaError as error:
        yield Finding(BAD, "configuration", str(error))
        return
    yield Finding(GOOD, "configuration", f"{config.name} listens on {config.listen}")
    yield from _examine_permissions(home)
    yield from _examine_certificate(home)
    try:
        with Store(home) as store:
            store.check()
            near = Neighbourhood.build(config.name, store.edges(), private=store.private())
            peers = store.peers()
        yield Finding(GOOD, "store", f"{len(near.nodes):,} nodes, {len(near.indices):,} neighbours, {len(peers)} peers")
    except ManelaError as error:
        yield Finding(BAD, "store", str(error))
        return
    unknown = [peer for peer in near.peers if peer not in peers]
    if unknown:
        yield Finding(
            POOR, "edges", f"lead to {', '.join(unknown[:5])}, which are not peers of this host; they are not used"
        )
    if not near.nodes:
        yield Finding(BAD, "edges", "this host has no nodes yet: import edges first (manela agent edges import FILE)")
    try:
        saved = VectorsFile(home).load()
        message = "none yet" if saved is None else f"{len(saved.names):,}, of round {saved.round:,}"
        yield Finding(GOOD, "vectors", message)
    except ManelaError as error:
        yield Finding(BAD, "vectors", str(error))
    yield from _examine_disk(home)
    yield from _examine_port(home, config)
    yield from _examine_peers(home, config, peers)


def _examine_permissions(home: Path) -> Iterator[Finding]:
    """Find out whether other users can read secrets."""
    bad = False
    secrets = [KEY, NAME, *(name for name in (BACKUP, f"next-{KEY}") if (home / name).exists())]
    for name in secrets:
        try:
            check_private(home / name)
        except ManelaError as error:
            bad = True
            yield Finding(BAD, "permissions", str(error))
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & 0o077:
        yield Finding(POOR, "permissions", f"{home} is open to others (mode {mode:04o}); run `chmod 700 {home}`")
    elif not bad:
        yield Finding(GOOD, "permissions", "only their owner can read the home, the key and the store")


def _examine_certificate(home: Path) -> Iterator[Finding]:
    """Find out whether the certificate belongs to the key and is valid now."""
    try:
        certificate = read_certificate(home / CERTIFICATE)
        check_key(home / KEY, certificate)
    except ManelaError as error:
        yield Finding(BAD, "certificate", str(error))
        return
    expiry = expiry_of(certificate)
    remaining = expiry - datetime.datetime.now(datetime.UTC)
    if remaining.days < 0:
        yield Finding(BAD, "certificate", f"expired on {expiry:%Y-%m-%d %H:%M} UTC; renew it, or set the clock")
    elif remaining.days < WARN_DAYS:
        yield Finding(POOR, "certificate", f"expires in {remaining.days} days; renew it with `manela agent renew`")
    else:
        yield Finding(GOOD, "certificate", f"matches the key; expires in {remaining.days} days")
    created = (home / CERTIFICATE).stat().st_mtime
    if time.time() < created - 60:
        yield Finding(BAD, "clock", "is set to a time before the certificate was made; set it")
    else:
        yield Finding(GOOD, "clock", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()))


def _examine_disk(home: Path) -> Iterator[Finding]:
    """Find out whether the state can be saved: a new file is written before the old one is replaced."""
    free = shutil.disk_usage(home).free
    vectors = home / VECTORS
    needed = 2 * (vectors.stat().st_size if vectors.exists() else 0) + _LEAST_FREE
    message = f"{free / 1e6:,.0f} MB are free"
    if free < needed:
        yield Finding(POOR, "disk", f"{message}; {needed / 1e6:,.0f} MB should be free")
    else:
        yield Finding(GOOD, "disk", message)


def _examine_port(home: Path, config: Config) -> Iterator[Finding]:
    host, _, port = config.listen.rpartition(":")
    if is_running(home):
        yield Finding(GOOD, "port", f"the daemon runs and listens on port {read_status(home).get('port', port)}")
        return
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host.strip("[]"), int(port)))
        yield Finding(GOOD, "port", f"{config.listen} is free; the daemon does not run")
    except OSError as error:
        yield Finding(BAD, "port", f"cannot listen on {config.listen}: {error.strerror or error}")


def _examine_peers(home: Path, config: Config, peers: dict[str, Any]) -> Iterator[Finding]:
    """Find out whether peers can be reached, and whether they reach this host."""
    try:
        errors = asyncio.run(_ping_all(home, config, peers))
    except (ManelaError, OSError):
        yield Finding(BAD, "peers", "cannot be checked without a key and a certificate")
        return
    status = read_status(home) if is_running(home) else {}
    for name, error in errors.items():
        if error:
            yield Finding(BAD, f"to {name}", error)
        else:
            yield Finding(GOOD, f"to {name}", "answers and accepts this host")
        if status:
            asked = status.get("peers", {}).get(name, {}).get("asked")
            if asked is None or time.time() - asked > _LATE:
                when = (
                    "not asked this host yet"
                    if asked is None
                    else f"not asked this host for {time.time() - asked:,.0f} s"
                )
                yield Finding(POOR, f"from {name}", f"it has {when}; `manela agent audit` shows whether it was refused")
            else:
                yield Finding(GOOD, f"from {name}", f"it asked this host {time.time() - asked:,.0f} s ago")


async def _ping_all(home: Path, config: Config, peers: dict[str, Any]) -> dict[str, str]:
    """Call all peers at once; return the error of each, empty if it answered."""
    from manela.hosts.transport.rpc import Endpoint, Keys, RpcTransport

    keys = Keys((home / KEY).read_bytes(), read_certificate(home / CERTIFICATE).encode())
    known = {name: Endpoint(name, *entry) for name, entry in peers.items()}
    transport = RpcTransport(keys, known, min(_PATIENCE, config.peers.deadline), lambda *_: None)

    async def ping(name: str) -> str:
        try:
            await transport.ping(name)
        except ManelaError as error:
            return str(error)
        return ""

    try:
        return dict(zip(known, await asyncio.gather(*(ping(name) for name in known)), strict=True))
    finally:
        await transport.close()
