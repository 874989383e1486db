"""A host's home, the folder with its files: made, locked while in use, read, and its vectors exported."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from manela.data.embedding import Embedding
from manela.errors import AgentError, OutputError
from manela.hosts.folder.config import FILE, Config, describe_missing, is_half_restored
from manela.hosts.folder.identity import CERTIFICATE, KEY, make_identity
from manela.hosts.folder.store import SECRET, Store
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.messages import NO_FRAME
from manela.hosts.state.names import check_host_name
from manela.system.files import make_private_folder, replace_file

STATUS, TRACE = "status.json", "trace.jsonl"
STARTS = "starts"
"""Key in the store: how often the daemon was started."""


def init(home: Path, config: Config) -> None:
    """Create a host's home with a configuration, key, certificate and empty store."""
    if (home / FILE).exists():
        raise AgentError(f"{home}: already holds a host")
    if is_half_restored(home):
        raise AgentError(describe_missing(home))
    check_host_name(config.name)  # before the store is made, which would keep it
    make_private_folder(home)
    with Store(home, create=config.name) as store:
        if store.get(SECRET) is None:
            store.put(SECRET, str(secrets.randbits(63)))
    for leftover in (KEY, CERTIFICATE):  # from an attempt that failed
        (home / leftover).unlink(missing_ok=True)
    make_identity(config.name, home / KEY, home / CERTIFICATE)
    # the configuration comes last: its presence means that the home is complete
    with replace_file(home / FILE, private=True) as file:
        file.write(config.write().encode())


def read_status(home: Path) -> dict[str, Any]:
    """Return the last status that the daemon of this home has written, and whether it is running."""
    try:
        status: Any = json.loads((home / STATUS).read_text(encoding="utf-8"))
        if not isinstance(status, dict):
            raise ValueError("is not an object")
    except FileNotFoundError:
        status = {}
    except (OSError, ValueError) as error:
        raise AgentError(f"{home / STATUS}: cannot be read: {error}") from error
    return {**status, "running": is_running(home)}


def export(home: Path) -> Embedding:
    """Return the vectors of a host's own nodes."""
    saved = VectorsFile(home).load()
    if saved is None:
        raise AgentError(f"{home}: there are no vectors yet")
    with suppress(AgentError), Store(home) as store:  # vectors can be exported without a store
        saved = saved.keep(store.nodes())  # without those that were removed since the last save
    nodes = np.empty(len(saved.names), dtype=object)
    nodes[:] = saved.names
    context = saved.vectors[:, 1] if saved.vectors.shape[1] > 1 else None
    provenance: dict[str, Any] = {"method": "manela", "pairs_made": saved.pairs, "rounds_done": saved.round}
    vectors = saved.vectors[:, 0]
    if saved.smoothed is not None and saved.whole is not None:
        vectors = saved.smoothed
        provenance |= {
            "smoothed": len(saved.names),
            "smoothed_without_some_neighbours": [
                name for name, whole in zip(saved.names, saved.whole.tolist(), strict=True) if not whole
            ],
        }
        if saved.smoothed_frame != NO_FRAME:
            provenance["frame"] = str(saved.smoothed_frame)
    return Embedding(nodes, vectors, context, provenance)


LOCK = "lock"
_ATTEMPTS = 20


def is_running(home: Path) -> bool:
    """Return whether a daemon runs in this home."""
    try:
        with (home / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def only_one(home: Path, attempts: int = _ATTEMPTS) -> Iterator[None]:
    """Hold the lock of a home within this block, or raise if a daemon holds it."""
    try:
        handle = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if (home / LOCK).is_symlink():
            raise AgentError(f"{home / LOCK}: is a symbolic link, which is not followed; remove it") from error
        raise OutputError(f"{home}: cannot be written: {error.strerror or error}") from error
    try:
        for attempt in range(attempts):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                # retry, as `is_running` takes the lock for a moment
                if attempt == attempts - 1:
                    raise AgentError(f"{home}: a daemon is already running there") from None
                time.sleep(0.05)
        yield
    finally:
        os.close(handle)
