"""Checkpoints: save the state of a run to a folder, from which it resumes with the same bits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.engines.rounds.neighbours import allocate_shown, read_shown, write_shown
from manela.engines.state import State, Sweeping
from manela.errors import CheckpointError, FormatError, Option, OutputError
from manela.kernels.layout import allocate
from manela.settings.parameters import drop_former
from manela.system.arrays import read_arrays, write_arrays
from manela.system.files import check_writable, replace_file

VERSION = 3
_FILE = "checkpoint.npz"
_NOTES = "run"
_ASIDE = "context"


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run is saved.

    Attributes
    ----------
    folder : Path
        Created if it does not exist.
    every : float
        Seconds between two saves.
    resume : bool
        Whether to resume from the folder; otherwise it must not hold a run.
    """

    folder: Path
    every: float = 60.0
    resume: bool = False

    @property
    def file(self) -> Path:
        """The file that holds the state."""
        return Path(self.folder) / _FILE

    def prepare(self) -> None:
        """Create the folder; raise CheckpointError if it holds a run and `resume` is False."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be created: {error.strerror or error}") from error
        held = next((file for file in (self.file, self.aside.file) if file.exists()), None)
        if held is not None and not self.resume:
            raise CheckpointError(
                f"{held}: holds a run; pass ", Option("resume", True), " to resume it, or remove it to start again"
            )
        check_writable(self.file)

    def save(self, state: State, identity: Mapping[str, Any], pairs: int | None) -> None:
        """Write the state; the previous file remains until the new one is complete."""
        arrays: dict[str, npt.NDArray[Any]] = {"vectors": state.vectors}
        if state.context is not None:
            arrays["context"] = state.context
        for name, view in (("view", state.view), ("aside", state.aside)):
            if view is not None:
                arrays[name] = read_shown(view, slice(None))[:, : state.dimensions]
        notes = {
            "version": VERSION, "identity": identity, "round": state.round, "made": state.pairs,
            "falls_at": state.falls_at, "pairs": pairs, "sweeping": state.sweeping, "swept": state.swept,
        }  # fmt: skip
        with replace_file(self.file) as file:
            write_arrays(file, arrays, notes, _NOTES)

    def load(self, identity: Mapping[str, Any], nodes: int) -> tuple[State, int | None] | None:
        """Return the saved state and the update pairs of the whole run, None if unknown; None if nothing was saved."""
        if not self.file.exists():
            return None
        try:
            arrays, notes = read_arrays(self.file, _NOTES)
            version, saved = notes["version"], notes["identity"]
            if version != VERSION:
                raise CheckpointError(
                    f"{self.file}: must be of version {VERSION}, got {version}, which another version of manela wrote: "
                    "finish the run with that one, or remove the file to start again"
                )
            self._compare(drop_former(saved), identity)
            names = ["vectors", "context"] if identity["context"] else ["vectors"]
            falls_at = None if notes["falls_at"] is None else int(notes["falls_at"])
            state = State([], int(identity["dimensions"]), int(notes["round"]), int(notes["made"]), falls_at)
            # a run that was set back after a loss may be before the round from which its rate falls
            if (falls_at or 0) < 0 or state.round < 0 or state.pairs < 0:
                raise ValueError(f"round {state.round}, rate falls at {falls_at}, {state.pairs} pairs")
            state.swept = bool(notes["swept"])
            if notes["sweeping"] is not None:
                number, energy, ended = notes["sweeping"]
                state.sweeping = Sweeping(int(number), float(energy), bool(ended))
                if number < 0 or not 0.0 <= energy < math.inf:
                    raise ValueError(f"sweep {number} with energy {energy}")
            for name in {"view", "aside"} & set(arrays):
                view = allocate_shown(nodes, state.dimensions)
                rows = _check_shape(arrays.pop(name), (nodes, state.dimensions)).astype(np.float16, copy=False)
                write_shown(view[:, : state.dimensions], slice(None), rows)
                setattr(state, name, view)
            for name in names:
                table = allocate(nodes, state.dimensions)
                table[:, : state.dimensions] = _check_shape(arrays.pop(name), (nodes, state.dimensions))
                state.tables.append(table)
            return state, None if notes["pairs"] is None else int(notes["pairs"])
        except FormatError as error:
            raise CheckpointError(str(error)) from error
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CheckpointError(f"{self.file}: is damaged: {error!r}") from error

    @property
    def aside(self) -> Checkpoint:
        """The checkpoint of the run with context vectors that comes before this one, resumed if it is there."""
        return replace(self, folder=Path(self.folder) / _ASIDE, resume=True)

    def remove(self) -> None:
        """Remove the checkpoint, once the result is safe elsewhere."""
        self.file.unlink(missing_ok=True)
        if self.aside.file.exists():
            self.aside.file.unlink()
            self.aside.file.parent.rmdir()

    def _compare(self, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        """Raise, with all differences, unless the checkpoint is of the same run."""
        differing = [
            f"{name} is {_plain(wanted.get(name))} and was {_plain(saved.get(name))}"
            for name in sorted(set(saved) | set(wanted))
            if _plain(wanted.get(name)) != _plain(saved.get(name))
        ]
        if differing:
            raise CheckpointError(f"{self.file}: belongs to another run: {'; '.join(differing)}")


def _check_shape(table: npt.NDArray[Any], shape: tuple[int, int]) -> npt.NDArray[Any]:
    if table.shape != shape:
        raise ValueError(f"vectors of shape {table.shape}, not {shape}")
    return table


def _plain(value: Any) -> Any:
    """Return arrays and tuples as lists, which compare by their contents."""
    return list(value) if isinstance(value, tuple | list | np.ndarray) else value
