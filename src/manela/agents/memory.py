"""Memory: keeps the memory of a daemon small, where the system allows it."""

from __future__ import annotations

import contextlib
import ctypes

from manela.resident_pages import drop_pages

_TRIM, _MMAP, _ARENAS = -1, -3, -8
"""Options of mallopt."""


def keep_memory_small() -> None:
    """Make glibc share its arenas between threads and return free memory; other C libraries do so by default."""
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for option, value in ((_ARENAS, 2), (_TRIM, 4 << 20), (_MMAP, 4 << 20)):
            library.mallopt(option, value)


def drop_code() -> None:
    """Drop the resident pages of shared libraries, which the system reads again when they are needed.

    Most of their code runs only at the start: kernels come from Numba's cache, but Numba's compiler still builds a few
    helpers in every process.
    """
    drop_pages(lambda name: ".so" in name)
