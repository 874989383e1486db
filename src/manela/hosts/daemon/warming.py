"""What a daemon does around its start: warms up kernels before a peer waits for them, and keeps its memory small."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from manela.hosts.state.driver import drive
from manela.hosts.state.host import Host
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.terms import Terms
from manela.hosts.walks.host import make_host
from manela.hosts.wire.calls import decode_reply, encode_reply

_DONTNEED = 4
"""An advice of madvise: the pages are not needed."""
_TRIM, _MMAP, _ARENAS = -1, -3, -8
"""Options of mallopt."""


def warm_up(terms: Terms) -> None:
    """Run two small hosts with these terms for two rounds."""
    settings = replace(terms.settings, pairs=100, rounds=2, updates=None, max_seconds=None)
    small = replace(terms, lock_step=False, settings=settings)
    edges = {"a": [Edge("x", ("y", "a")), Edge("x", ("z", "b"))], "b": [Edge("z", ("x", "a")), Edge("z", ("u", "b"))]}
    drive({name: make_host(small, Neighbourhood.build(name, edges[name])) for name in edges}, carry=_carry)


def _carry(asker: Host, answerer: Host, request: Any, reply: Any) -> Any:
    """Return a reply as it comes out of the bytes that are sent."""
    return decode_reply(asker, answerer.name, request, encode_reply(answerer, asker.name, reply))


def drop_pages(belongs: Callable[[str], bool]) -> None:
    """Release the pages of files for whose path `belongs` is True; no data is lost, and unsupported systems do nothing.

    Only private mappings that were never written are released.
    """
    with contextlib.suppress(OSError, AttributeError, ValueError):
        library = ctypes.CDLL(None, use_errno=True)
        for first, last in _find_private(belongs):
            library.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _DONTNEED)


def _find_private(belongs: Callable[[str], bool]) -> list[tuple[int, int]]:
    """Return the address ranges of private mappings of these files that were never written."""
    ranges: list[tuple[int, int]] = []
    addresses, is_clean = "", False
    for line in [*Path("/proc/self/smaps").read_text().splitlines(), "0-0 ---p"]:
        first_word, *words = line.split()
        if not first_word.endswith(":"):
            if addresses and is_clean:
                ranges.append(_ends(addresses))
            addresses = first_word if len(words) == 5 and words[0][3] == "p" and belongs(words[4]) else ""
            is_clean = True
        elif first_word in ("Anonymous:", "Shared_Dirty:"):
            is_clean = is_clean and words[0] == "0"
    return ranges


def _ends(addresses: str) -> tuple[int, int]:
    first, last = addresses.split("-")
    return int(first, 16), int(last, 16)


def keep_memory_small() -> None:
    """Make glibc share its arenas between threads and return free memory; other C libraries do so by default."""
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for option, value in ((_ARENAS, 2), (_TRIM, 4 << 20), (_MMAP, 4 << 20)):
            library.mallopt(option, value)


def drop_code() -> None:
    """Drop the resident pages of shared libraries, which the system reads again when they are needed.

    Most of their code runs only at the start: kernels come from Numba's cache, but Numba's compiler still builds a few
    helpers in every process. A daemon with 2,000 nodes is 120 MB with this and 221 MB without.
    """
    drop_pages(lambda name: ".so" in name)
