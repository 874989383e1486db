"""Pages: gives back memory that only mirrors a file or shared memory, and comes again when it is needed."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from pathlib import Path

_DONTNEED = 4


def drop_pages(belongs: Callable[[str], bool], shared: bool = False) -> None:
    """Give back the pages of files whose names these are; nothing is lost, and where a system cannot, nothing happens.

    Of files that are mapped privately, only what was never written is given back. With `shared` it is those that are
    mapped to be shared, whose content is elsewhere whether written or not.
    """
    with contextlib.suppress(OSError, AttributeError, ValueError):
        library = ctypes.CDLL(None, use_errno=True)
        for first, last in _find_shared(belongs) if shared else _find_private(belongs):
            library.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _DONTNEED)


def _find_shared(belongs: Callable[[str], bool]) -> list[tuple[int, int]]:
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, rights, _, _, _, *name = line.split()
        if name and rights[3] == "s" and belongs(name[0]):
            found.append(_ends(place))
    return found


def _find_private(belongs: Callable[[str], bool]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    place, clean = "", False
    for line in [*Path("/proc/self/smaps").read_text().splitlines(), "0-0 ---p"]:
        head, *rest = line.split()
        if not head.endswith(":"):
            if place and clean:
                found.append(_ends(place))
            place = head if len(rest) == 5 and rest[0][3] == "p" and belongs(rest[4]) else ""
            clean = True
        elif head in ("Anonymous:", "Shared_Dirty:"):
            clean = clean and rest[0] == "0"
    return found


def _ends(place: str) -> tuple[int, int]:
    first, last = place.split("-")
    return int(first, 16), int(last, 16)
