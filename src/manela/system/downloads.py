"""Downloads: copies what an address or a stream holds to a file, within a limit."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from manela.errors import ManelaError, import_extra
from manela.system.progress import DownloadReporter

_PIECE = 1 << 18
"""Bytes that are copied at once; more report progress less often."""
_TIMEOUT = 60.0
"""Seconds without data after which a download fails."""


class DownloadError(Exception):
    """An address cannot be read, or ended too early; the message says why."""


class TooLongError(DownloadError):
    """There are more bytes than the limit."""


def download(
    address: str, target: Path, *, limit: float, size: int = 0, progress: DownloadReporter | None = None
) -> None:
    """Copy an address to a file, by HTTP or by fsspec.

    At most `limit` bytes are written. If the size is known, not 0, a file that an earlier attempt left is continued,
    provided that the server supports it.
    """
    left_before = target.stat().st_size if size and target.exists() else 0
    start = left_before if left_before < size else 0
    try:
        with _open(address, start) as (stream, start, announced):
            copy_stream(stream, target, limit=limit, size=size or announced, start=start, progress=progress)
    except (ManelaError, DownloadError):
        raise
    except Exception as error:  # fsspec's file systems raise many kinds
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise DownloadError(" ".join(str(reason).split())[:300]) from error


@contextmanager
def _open(address: str, start: int) -> Iterator[tuple[Any, int, int]]:
    """Open an address at a position; yield the stream, its actual position, and the size, 0 if unknown."""
    scheme = address.partition(":")[0].lower()
    if scheme not in ("http", "https"):
        fsspec: Any = import_extra("fsspec", "io", f"reading {scheme}://…")
        with fsspec.open(address, "rb") as stream:
            yield stream, 0, getattr(stream, "size", None) or 0
        return
    headers = {"User-Agent": "manela"} | ({"Range": f"bytes={start}-"} if start else {})
    with closing(urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=_TIMEOUT)) as reply:
        start = start if reply.status == 206 else 0
        yield reply, start, start + int(reply.headers.get("Content-Length") or 0)


def copy_stream(
    stream: Any, target: Path, *, limit: float, size: int = 0, start: int = 0, progress: DownloadReporter | None = None
) -> None:
    """Copy a stream to a file, after its first `start` bytes; a size of 0 means unknown."""
    copied = start
    with target.open("r+b" if start else "wb") as file:
        file.seek(start)
        while copied <= limit >= size and (piece := stream.read(_PIECE)):
            file.write(piece)
            copied += len(piece)
            if progress is not None:
                progress(copied, size)
    if max(copied, size) > limit:
        raise TooLongError(f"it is longer than {limit:,.0f} bytes")
    if progress is not None and not size:
        progress(copied, copied)  # now the size is known
    if copied < size:
        raise DownloadError(f"ended after {copied:,} of {size:,} bytes")
