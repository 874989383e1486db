"""Archive: opens the files of a folder, a .zip or a .tar.gz by name, without unpacking them to disk."""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from manela.errors import SourceError
from manela.sources.json_items import Readable

_MOST_RATIO = 200
"""Largest ratio of unpacked to packed size; texts have 10, bombs 1000. If larger, bombs are refused later."""
_FREE_BYTES = 1 << 24
"""Unpacked bytes that are allowed at any ratio; if larger, bombs are refused later."""
_MOST_MEMBERS = 5_000_000
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError,
            lzma.LZMAError)  # fmt: skip


class Archive:
    """A folder, a .zip, a .tar or a .tar.gz.

    Parameters
    ----------
    path : Path
        The path of the folder or archive.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(Path(folder) / "export.zip", "w") as packed:
    ...         packed.writestr("outbox.json", "[]")
    ...     with Archive(Path(folder) / "export.zip").open_member("outbox.json") as file:
    ...         print(file.read(100))
    b'[]'
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def open_member(self, name: str) -> Iterator[Readable | None]:
        """Open the file of this name in the archive's top folder or one folder below; None if there is none."""
        try:
            if self.path.is_dir():
                opened = self._open_in_folder(name)
            elif zipfile.is_zipfile(self.path):
                opened = self._open_in_zip(name)
            else:
                opened = self._open_in_tar(name)
            with opened as file:
                yield file
        except SourceError:
            raise
        except _DAMAGED as error:
            reason = getattr(error, "strerror", None) or error
            raise SourceError(f"{self.path}: cannot be read: {reason}") from error

    @contextmanager
    def _open_in_folder(self, name: str) -> Iterator[Readable | None]:
        """Open a file of a folder, or yield None."""
        path = self.path / name
        if not path.is_file():
            yield None
            return
        with path.open("rb") as file:
            yield file

    @contextmanager
    def _open_in_zip(self, name: str) -> Iterator[Readable | None]:
        """Open a file of a zip archive, the one in the fewest folders, or yield None."""
        with zipfile.ZipFile(self.path) as packed:
            members = packed.infolist()
            self._check_members(len(members))
            matches = [member for member in members if _has_name(member.filename, name)]
            if not matches:
                yield None
                return
            member = min(matches, key=lambda match: match.filename.count("/"))
            with packed.open(member) as file:
                yield _Bounded(file, member.compress_size, f"{self.path}: {name}")

    @contextmanager
    def _open_in_tar(self, name: str) -> Iterator[Readable | None]:
        """Open a file of a tar archive, packed or not, or yield None."""
        with self.path.open("rb") as raw:
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file: IO[bytes] = gzip.GzipFile(fileobj=raw) if is_packed else raw  # type: ignore[assignment]
            bounded = _Bounded(file, self.path.stat().st_size, str(self.path))
            with tarfile.open(fileobj=bounded, mode="r|", errorlevel=2) as packed:  # type: ignore[call-overload]
                for count, member in enumerate(packed, 1):
                    self._check_members(count)
                    packed.members.clear()  # otherwise tarfile keeps all members in memory
                    if member.isreg() and _has_name(member.name, name):
                        yield packed.extractfile(member)
                        return
            yield None

    def _check_members(self, count: int) -> None:
        """Refuse an archive with too many files."""
        if count > _MOST_MEMBERS:
            raise SourceError(f"{self.path}: an archive must hold at most {_MOST_MEMBERS:,} files, got more")


class _Bounded:
    """Reads a file that is unpacked on the fly, and refuses it once it is far longer than it was packed."""

    def __init__(self, file: IO[bytes], packed: int, label: str) -> None:
        self._file, self._label = file, label
        self._left = _FREE_BYTES + _MOST_RATIO * packed

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes, and refuse a file that unpacks to far more than it was."""
        data = self._file.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise SourceError(
                f"{self._label}: must not be more than {_MOST_RATIO} times as long unpacked as packed, as only an "
                "archive bomb is"
            )
        return data


def _has_name(path: str, name: str) -> bool:
    """Return whether a file of an archive has this name, at most one folder deep."""
    parts = path.removeprefix("./").split("/")
    return parts[-1] == name and len(parts) <= 2
