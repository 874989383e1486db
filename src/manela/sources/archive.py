"""Archive: files of a folder, a .zip or a .tar.gz by their names, read in place and never unpacked to disk."""

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
"""How much longer a file may be unpacked than packed; texts are packed to a tenth, bombs to a thousandth."""
_FREE_BYTES = 1 << 24
"""Bytes up to which that does not matter."""
_MOST_MEMBERS = 5_000_000
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError,
            lzma.LZMAError)  # fmt: skip


class Archive:
    """A folder, a .zip, a .tar or a .tar.gz.

    Parameters
    ----------
    path : Path
        Where it is.

    Examples
    --------
    >>> with Archive(Path("export.zip")).open_member("outbox.json") as file:  # doctest: +SKIP
    ...     file.read(100)
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def open_member(self, name: str) -> Iterator[Readable | None]:
        """The file of that name, in the archive's top folder or one folder below; None if there is none."""
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
        path = self.path / name
        if not path.is_file():
            yield None
            return
        with path.open("rb") as file:
            yield file

    @contextmanager
    def _open_in_zip(self, name: str) -> Iterator[Readable | None]:
        with zipfile.ZipFile(self.path) as packed:
            members = packed.infolist()
            self._check_members(len(members))
            found = [member for member in members if _is_called(member.filename, name)]
            if not found:
                yield None
                return
            member = min(found, key=lambda one: one.filename.count("/"))
            with packed.open(member) as file:
                yield _Bounded(file, member.compress_size, f"{self.path}: {name}")

    @contextmanager
    def _open_in_tar(self, name: str) -> Iterator[Readable | None]:
        with self.path.open("rb") as raw:
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file: IO[bytes] = gzip.GzipFile(fileobj=raw) if is_packed else raw  # type: ignore[assignment]
            bounded = _Bounded(file, self.path.stat().st_size, str(self.path))
            with tarfile.open(fileobj=bounded, mode="r|", errorlevel=2) as packed:  # type: ignore[call-overload]
                for number, member in enumerate(packed):
                    self._check_members(number)
                    packed.members.clear()  # it would keep all of them
                    if member.isreg() and _is_called(member.name, name):
                        yield packed.extractfile(member)
                        return
            yield None

    def _check_members(self, count: int) -> None:
        if count > _MOST_MEMBERS:
            raise SourceError(f"{self.path}: an archive must hold at most {_MOST_MEMBERS:,} files, got more")


class _Bounded:
    """A file that is unpacked as it is read, and refused once it is far longer than it was packed."""

    def __init__(self, file: IO[bytes], packed: int, label: str) -> None:
        self._file, self._label = file, label
        self._left = _FREE_BYTES + _MOST_RATIO * packed

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise SourceError(
                f"{self._label}: must not be more than {_MOST_RATIO} times as long unpacked as packed, which only a "
                "file is that is made to fill memory"
            )
        return data


def _is_called(path: str, name: str) -> bool:
    """Whether a file of an archive has this name, at most one folder deep."""
    parts = path.removeprefix("./").split("/")
    return parts[-1] == name and len(parts) <= 2
