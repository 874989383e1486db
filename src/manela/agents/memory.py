"""Footprint: a daemon runs beside others, so it keeps its memory small where the system lets it."""

from __future__ import annotations

import contextlib
import ctypes

from manela.resident_pages import drop_pages

_TRIM, _MMAP, _ARENAS = -1, -3, -8
"""Options of mallopt."""


def keep_memory_small() -> None:
    """Have glibc share its pools between threads and give back what is free; others do so by themselves."""
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for option, value in ((_ARENAS, 2), (_TRIM, 4 << 20), (_MMAP, 4 << 20)):
            library.mallopt(option, value)


def drop_code() -> None:
    """Give back the pages of libraries that were only read.

    Most code runs once, at the start: kernels come from Numba's cache, but Numba has its compiler make a few helpers
    in every process.
    """
    drop_pages(lambda name: ".so" in name)
