"""VectorsFile: the checkpoint of a host, a file with a checksum that is replaced as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from manela.errors import AgentError, FormatError
from manela.hosts.state.host import Saved
from manela.hosts.state.messages import Frame
from manela.system.arrays import read_arrays, write_arrays
from manela.system.files import replace_file

NAME = "vectors.npz"
_VERSION = 3
_READABLE = (1, 2, 3)
"""Format versions that can be read; manela 0.1 wrote 1, which holds less about the progress of the host."""


class VectorsFile:
    """Writes and reads a host's vectors in a home."""

    def __init__(self, home: Path) -> None:
        self.path = home / NAME
        self._names: list[str] | None = None
        self._lines = np.zeros(0, np.uint8)

    def save(self, saved: Saved) -> None:
        """Save the state; the old file stays until the new one is complete. Of no nodes there is no file."""
        if not saved.names:
            self.path.unlink(missing_ok=True)
            return
        notes = {
            "format": _VERSION, "round": saved.round, "version": saved.version, "pairs": saved.pairs,
            "falls_at": saved.falls_at, "more": saved.more, "exchange": saved.exchange, "taught": saved.taught,
            "edges": saved.edges, "frame": list(saved.frame), "smoothed_frame": list(saved.smoothed_frame),
        }  # fmt: skip
        if self._names is not saved.names:
            self._names, self._lines = saved.names, np.frombuffer("\n".join(saved.names).encode(), np.uint8)
        arrays: dict[str, Any] = {"names": self._lines, "vectors": saved.vectors}
        if saved.smoothed is not None and saved.whole is not None:
            arrays |= {"smoothed": saved.smoothed, "whole": saved.whole.astype(np.uint8)}
        if saved.view is not None and saved.stretch is not None:
            arrays |= {"view": saved.view, "stretch": saved.stretch}
        if saved.signatures is not None:
            arrays["signatures"] = saved.signatures
        with replace_file(self.path, private=True) as file:
            write_arrays(file, arrays, notes, "host")

    def load(self) -> Saved | None:
        """Return the saved state, or None if there is none yet."""
        if not self.path.exists():
            return None
        try:
            arrays, notes = read_arrays(self.path, "host")
            vectors = arrays["vectors"]
            if notes["format"] not in _READABLE:
                raise AgentError(f"{self.path}: must have version {_VERSION}, got {notes['format']}; update manela")
            names = arrays["names"].tobytes().decode().split("\n")
            if vectors.ndim != 3 or vectors.dtype != np.float32 or len(vectors) != len(names):
                raise AgentError(f"{self.path}: does not hold a vector for each name")
            smoothed, whole = arrays.get("smoothed"), arrays.get("whole")
            if smoothed is not None and (
                whole is None or smoothed.shape != vectors[:, 0].shape or len(whole) != len(names)
            ):
                raise AgentError(f"{self.path}: does not hold a smoothed vector for each name")
            view, stretch, signatures = (arrays.get(name) for name in ("view", "stretch", "signatures"))
            if signatures is not None and (signatures.dtype != np.uint64 or signatures.shape != (len(names),)):
                raise AgentError(f"{self.path}: does not hold the edges of each name")
            if view is not None and (
                stretch is None
                or (view.shape, stretch.shape) != (vectors[:, 0].shape, 2 * vectors.shape[2:])
                or view.dtype != np.float16
                or stretch.dtype != np.float64
            ):
                raise AgentError(f"{self.path}: does not hold a view for each name")
            return Saved(
                names, vectors, int(notes["round"]), int(notes["version"]), int(notes["pairs"]),
                notes.get("exchange", "walks" if notes["format"] == 1 else "messages"),
                notes.get("falls_at"), notes.get("more"), {**notes.get("taught", {})}, notes.get("edges", ""),
                smoothed, None if whole is None else whole.astype(bool), view, stretch, signatures,
                Frame(*map(int, notes.get("frame", ()))), Frame(*map(int, notes.get("smoothed_frame", ())))
            )  # fmt: skip
        except FormatError as error:
            raise AgentError(f"{error}; restore it from a backup, or remove it to start over") from error
        except (KeyError, TypeError, ValueError) as error:
            raise AgentError(f"{self.path}: is damaged: {error!r}") from error
