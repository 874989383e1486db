"""Opens a network file, stream or URL, and recognises its compression and format."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import sys
import tempfile
import urllib.parse
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import FormatError, ManelaError, Option, ParameterError, import_extra
from manela.system.downloads import DownloadError, TooLongError, copy_stream, download
from manela.system.progress import DownloadReporter

Bytes = npt.NDArray[np.uint8]

EDGE_LISTS = (".txt", ".csv", ".tsv", ".edgelist", ".edges")
ADJACENCY_LISTS = (".adjlist", ".adj")
_BINARY = (".mat", ".npz", ".npy", ".parquet", ".feather", ".arrow")
"""Formats whose libraries read an uncompressed file themselves."""
ENDINGS = (
    *EDGE_LISTS, *ADJACENCY_LISTS, ".mtx", ".graphml", ".gml", ".gexf", ".net", ".json", ".metis", ".graph", *_BINARY,
)  # fmt: skip
"""The suffixes of readable files; each may be followed by the suffix of a compression."""
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
"""The suffixes of compressed files."""
SIZE_LIMIT = 16.0
"""Default limit in GB of what is downloaded, piped in or decompressed; larger may fill the disk or memory."""

_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, OSError, ValueError, RuntimeError)
_PIECE = 1 << 22
"""Bytes that are read at once."""
_SNIFFED_BYTES = 1 << 16
"""Bytes from which a format is recognised; more are more reliable and slower."""
_LONGEST_NAME = 400
"""Letters above which a path is shortened in an error message."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::|://)")
_MAGIC = (
    (b"\x1f\x8b", ".gz"), (b"BZh", ".bz2"), (b"\xfd7zXZ\x00", ".xz"), (b"\x28\xb5\x2f\xfd", ".zst"),
    (b"PK\x03\x04", ".zip"), (b"PAR1", ".parquet"), (b"ARROW1", ".feather"), (b"FEA1", ".feather"),
    (b"\x93NUMPY", ".npy"), (b"MATLAB ", ".mat"), (b"%%MatrixMarket", ".mtx"),
)  # fmt: skip
"""The first bytes of files, and the suffix of their format."""


@dataclass(frozen=True)
class InputFile:
    """A file to read a network from."""

    name: str  # the name that the user gave, with which error messages begin
    path: Path  # the file that holds the bytes
    kind: str  # the suffix of the format, such as ".csv"
    packing: str = ""  # the suffix of the compression, such as ".gz", or empty
    limit: float = SIZE_LIMIT  # limit of the decompressed size, in GB

    def __str__(self) -> str:
        return self.name

    def read(self) -> Bytes:
        """Return the bytes of a text file, decompressed and without a byte-order mark."""
        data: Bytes
        if self.packing:
            unpacked = bytearray()
            for piece in self._unpack():
                unpacked += piece
            data = np.frombuffer(unpacked, dtype=np.uint8)
        else:
            data = np.fromfile(self.path, dtype=np.uint8)
        if data[:3].tobytes() == b"\xef\xbb\xbf":
            data = data[3:]
        if len(data) == 0:
            raise FormatError(f"{self}: must hold a network, but is empty")
        if data.min() == 0:
            raise FormatError(f"{self}: must be text, but holds null bytes")
        if ord("\n") not in data[:_SNIFFED_BYTES] and ord("\r") in data[:_SNIFFED_BYTES]:  # line ends of classic Mac OS
            data = np.where(data == ord("\r"), np.uint8(ord("\n")), data)
        return data

    def _unpack(self) -> Iterator[bytes]:
        unpacked = 0
        try:
            with _open_packed(self, self.packing) as stream:
                while piece := stream.read(_PIECE):
                    unpacked += len(piece)
                    if unpacked > self.limit * 1e9:
                        raise _too_long(self.name, f"{self.limit:g} GB unpacked")
                    yield piece
        except ManelaError:
            raise
        except _DAMAGE as error:
            message = f"must be a whole {self.packing} file, but it is damaged or cut off"
            raise FormatError(f"{self}: {message}: {error}") from error


def _too_long(name: str, limit: str) -> FormatError:
    return FormatError(f"{name}: must not be longer than {limit}; pass ", Option("size_limit"), " to allow more")


@contextmanager
def open_input(
    given: str | Path, *, size_limit: float = SIZE_LIMIT, progress: DownloadReporter | None = None
) -> Iterator[InputFile]:
    """Open a file, `-` for standard input, a pipe, or a URL.

    Anything but a regular file is copied to a temporary file, which is removed at the end.
    """
    name = str(given)
    if not size_limit > 0:
        raise ParameterError.of("size_limit", "must be above 0 GB", size_limit)
    with tempfile.TemporaryDirectory(prefix="manela-") as folder:
        copy = Path(folder) / "content"
        if name == "-":
            name, path = "standard input", copy
            if sys.stdin is None:
                raise FormatError("standard input is closed; pass a file instead")
            with _within(name, size_limit) as limit:
                copy_stream(sys.stdin.buffer, copy, limit=limit)
            file_name = ""
        elif is_address(name):
            path = copy
            with _within(name, size_limit) as limit:
                download(name, copy, limit=limit, progress=progress)
            file_name = PurePosixPath(urllib.parse.urlsplit(name).path).name
        else:
            path = Path(given)
            _check_file(path)
            file_name = path.name
            if not path.is_file():  # a pipe, such as <(zcat …)
                with path.open("rb") as stream, _within(name, size_limit) as limit:
                    copy_stream(stream, copy, limit=limit)
                path = copy
        yield _recognise(name, path, file_name, size_limit, Path(folder))


@contextmanager
def _within(name: str, size_limit: float) -> Iterator[float]:
    """Yield the limit of a download in bytes, and turn its errors into those of a file."""
    try:
        yield size_limit * 1e9
    except TooLongError as error:
        raise _too_long(name, f"{size_limit:g} GB") from error
    except DownloadError as error:
        raise FormatError(f"{name}: cannot be read: {error}") from error


def _check_file(path: Path) -> None:
    try:
        if path.is_dir():
            raise FormatError(f"{path}: must be a file, but it is a folder")
        if not path.exists():
            raise FormatError(f"{path}: no such file or data set; `manela datasets list` shows the data sets")
    except OSError as error:
        shown = str(path) if len(str(path)) < _LONGEST_NAME else f"{str(path)[:40]!r}…"
        raise FormatError(f"{shown}: cannot be read: {error.strerror or error}") from error


def is_address(name: str) -> bool:
    """Whether a name is a URL such as `https://…`, rather than a path.

    Examples
    --------
    >>> is_address("https://example.org/edges.csv.gz"), is_address("edges.csv")
    (True, False)
    """
    return _ADDRESS.match(name) is not None


def drop_packing(name: str) -> str:
    """Return a file name without the suffix of its compression.

    Examples
    --------
    >>> drop_packing("edges.CSV.gz"), drop_packing("edges.txt")
    ('edges.CSV', 'edges.txt')
    """
    ending = Path(name).suffix
    return name[: -len(ending)] if ending.lower() in PACKED else name


def _recognise(name: str, path: Path, file_name: str, limit: float, folder: Path) -> InputFile:
    """Find the format and compression of a file by its name, or by its first bytes if the name does not tell."""
    if file_name.lower().endswith(".zip") and zipfile.is_zipfile(path):
        file_name = _find_member(name, path) + ".zip"
    kind = Path(drop_packing(file_name)).suffix.lower()
    packing = Path(file_name).suffix.lower() if drop_packing(file_name) != file_name else ""
    if kind not in ENDINGS:
        source = InputFile(name, path, "", packing, limit)
        with path.open("rb") as stream:
            head = stream.read(_SNIFFED_BYTES)
        if not packing and _find_magic(head) in PACKED and not _is_npz(path):
            packing = _find_magic(head)
            source = InputFile(name, path, "", packing, limit)
        if packing:
            head = next(source._unpack(), b"")[:_SNIFFED_BYTES]
        if not head.strip():
            raise FormatError(f"{name}: must hold a network, but is empty")
        kind = ".npz" if not packing and _is_npz(path) else sniff(head)
        if not kind:
            shown = (
                repr("".join(Path(file_name).suffixes[-2:]) or file_name) if file_name else "what no format begins with"
            )
            raise FormatError(f"{name}: the format must be one of {' '.join(ENDINGS)}, got {shown}")
    source = InputFile(name, path, kind, packing, limit)
    if packing and kind in _BINARY:
        unpacked = folder / "unpacked"
        with unpacked.open("wb") as file:
            for piece in source._unpack():
                file.write(piece)
        source = InputFile(name, unpacked, kind, "", limit)
    return source


def sniff(head: bytes) -> str:
    """Return the suffix of the format of a file from its first bytes; empty if it is not recognised.

    Examples
    --------
    >>> sniff(b"1 2\\n2 3\\n"), sniff(b'{"nodes": []}'), sniff(b"<html>")
    ('.txt', '.json', '')
    """
    if magic := _find_magic(head):
        return magic if magic in ENDINGS else ""
    text = head.decode(errors="ignore").removeprefix("\ufeff").lstrip()
    lower = text[:2000].lower()
    if lower.startswith("<"):
        return next((kind for kind in (".graphml", ".gexf") if f"<{kind[1:]}" in lower), "")
    for pattern, kind in ((r"[{\[]", ".json"), (r"\*(vertices|network)\b", ".net"), (r"(creator|graph)\b.*\[", ".gml")):
        if re.match(pattern, lower, re.DOTALL):
            return kind
    if b"\0" in head:
        return ""
    lines = [line for line in text.splitlines()[: -1 if len(head) == _SNIFFED_BYTES else None] if line.strip()]
    lines = [line for line in lines if line.lstrip()[0] not in "#%"][:1000]
    for separator, kind in (("\t", ".tsv"), (",", ".csv"), (";", ".csv"), (None, ".txt")):
        widths = {len(line.split(separator)) for line in lines}
        if len(widths) == 1 and widths.pop() >= 2:
            return kind
    return ""


def _find_magic(head: bytes) -> str:
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), "")


def _is_npz(path: Path) -> bool:
    """Whether a file is a NumPy archive, which is a .zip file as well."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return all(name.endswith(".npy") for name in archive.namelist())


def _find_member(name: str, path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
    if any(member.startswith("xl/") for member in names):
        raise FormatError(f"{name}: is an Excel workbook; save the sheet with the edges as CSV")
    if len(names) != 1:
        raise FormatError(f"{name}: must hold one file, but holds {len(names)}; unpack the right one")
    return names[0]


@contextmanager
def _open_packed(source: InputFile, ending: str) -> Iterator[Any]:
    """Open a compressed file for reading; of a .zip, the only file in it."""
    path = source.path
    if ending == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(_find_member(source.name, path)) as stream:
            yield stream
        return
    if ending == ".zst":
        arrow: Any = import_extra("pyarrow", "io", "reading .zst")
        with arrow.input_stream(str(path), compression="zstd") as stream:
            yield stream
        return
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    with openers[ending](path, "rb") as stream:
        yield stream
