"""A host's folder: what is in it, who made it, and whether a daemon runs there."""

from __future__ import annotations

import contextlib
import fcntl
import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from manela.agents.config import FILE, Config
from manela.agents.identity import make_identity
from manela.agents.store import Store
from manela.embedding import Embedding
from manela.errors import AgentError, OutputError
from manela.formats.files import replace_file

KEY, CERTIFICATE, STATUS, LOCK, TRACE = "key.pem", "certificate.pem", "status.json", "lock", "trace.jsonl"
SECRET = "secret"
"""The name of the fact from which a free-running host draws."""
_ATTEMPTS = 20


def init(folder: Path, config: Config) -> None:
    """Make a host's folder: configuration, key, certificate and an empty store."""
    if (folder / FILE).exists():
        raise AgentError(f"{folder}: holds a host already")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror or error}") from error
    with Store(folder, create=True) as store:
        if store.get(SECRET) is None:
            store.put(SECRET, str(secrets.randbits(63)))
    for left in (KEY, CERTIFICATE):  # of an attempt that did not come to its end
        (folder / left).unlink(missing_ok=True)
    make_identity(config.name, folder / KEY, folder / CERTIFICATE)
    # last, for it says that all is there
    with replace_file(folder / FILE) as file:
        file.write(config.write().encode())


def is_running(folder: Path) -> bool:
    """Whether a daemon runs in this folder."""
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def read_status(folder: Path) -> dict[str, Any]:
    """What the daemon in this folder said last, and whether it runs."""
    try:
        found: dict[str, Any] = json.loads((folder / STATUS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        found = {}
    except (OSError, ValueError) as error:
        raise AgentError(f"{folder / STATUS}: cannot be read: {error}") from error
    return {**found, "running": is_running(folder)}


def export(folder: Path) -> Embedding:
    """A host's own vectors, and nobody else's."""
    with Store(folder) as store:
        saved = store.load()
    if saved is None:
        raise AgentError(f"{folder}: there are no vectors yet")
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
    return Embedding(nodes, vectors, context, provenance)


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Refuse to run where a daemon runs."""
    if not (folder / FILE).exists():
        raise AgentError(f"{folder}: holds no host; make one with `manela agent init`")
    try:
        file = (folder / LOCK).open("ab")
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    with file:
        for attempt in range(_ATTEMPTS):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                # somebody may only be looking whether a daemon runs
                if attempt == _ATTEMPTS - 1:
                    raise AgentError(f"{folder}: a daemon runs there already") from None
                time.sleep(0.05)
        for left in folder.glob(".manela.*.part"):  # of a process that was killed while it wrote
            left.unlink(missing_ok=True)
        yield
