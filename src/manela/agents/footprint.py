"""Footprint: a daemon runs beside others, so it keeps its memory small where the system lets it."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path

_TRIM, _MMAP, _ARENAS = -1, -3, -8
"""Options of mallopt."""
_DONTNEED = 4


def keep_memory_small() -> None:
    """Have glibc share its pools between threads and give back what is free; others do so by themselves."""
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for option, value in ((_ARENAS, 2), (_TRIM, 4 << 20), (_MMAP, 4 << 20)):
            library.mallopt(option, value)


def drop_code() -> None:
    """Give back the pages of libraries that were only read; those that are needed again come back by themselves.

    Most code runs once, at the start: kernels come from Numba's cache, but Numba has its compiler make a few helpers
    in every process.
    """
    with contextlib.suppress(OSError, AttributeError, ValueError):
        library = ctypes.CDLL(None, use_errno=True)
        for first, last, name, facts in _mappings():
            # only what was never written: it is the same in the file
            if ".so" in name and facts.get("Anonymous") == "0" and facts.get("Shared_Dirty") == "0":
                library.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _DONTNEED)


def _mappings() -> Iterator[tuple[int, int, str, dict[str, str]]]:
    """The pieces of this process's memory that come from files: where, which file, and how much of what."""
    found: tuple[int, int, str, dict[str, str]] | None = None
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head, *rest = line.split()
        if head.endswith(":"):
            if found is not None:
                found[3][head[:-1]] = rest[0] if rest else ""
            continue
        if found is not None:
            yield found
        first, last = (int(address, 16) for address in head.split("-"))
        found = (first, last, rest[-1], {}) if len(rest) == 5 else None
    if found is not None:
        yield found
