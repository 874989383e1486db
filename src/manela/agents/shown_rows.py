"""Reads and writes rows of the tables in which a host keeps what nodes show, in half precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manela.agents.messages import Integers
from manela.kernels.cpu.half import from_half, to_half


def read_rows(shown: npt.NDArray[Any], rows: Integers, columns: int) -> npt.NDArray[np.float32]:
    """Return the first columns of the given rows, in single precision."""
    selected = shown[rows, :columns]
    if selected.dtype == np.uint16:
        widened: npt.NDArray[np.float32] = from_half(np.ascontiguousarray(selected).view(np.float16))
        return widened
    return selected.astype(np.float32)


def write_rows(shown: npt.NDArray[Any], rows: Integers, vectors: npt.NDArray[np.float32]) -> None:
    """Write vectors to the first columns of the given rows, in half precision."""
    halves = to_half(vectors)
    shown[rows, : vectors.shape[1]] = halves.view(np.uint16) if shown.dtype == np.uint16 else halves
