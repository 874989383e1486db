"""Reads and writes embeddings in the format given by the suffix of the file name."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from manela.data.embedding import Embedding
from manela.errors import FormatError, ManelaError, ManelaWarning, OutputError, import_extra
from manela.formats import vectors
from manela.formats.ids import check_texts, to_plain, to_words
from manela.formats.vectors import is_ours, read_database, write_database
from manela.system.files import check_writable, replace_file

_WORD2VEC = (".txt", ".emb", ".w2v")
_DATABASES = (".sqlite", ".db")
_PROJECTOR = ".tensorboard"
_STREAM = ".csv"
"""The default format for standard output and pipes."""

_WRITERS: dict[str, Callable[[Embedding, BinaryIO, Path], None]] = {
    ".npz": vectors.write_npz,
    ".npy": vectors.write_npy,
    **dict.fromkeys(_WORD2VEC, vectors.write_word2vec),
    ".bin": vectors.write_word2vec_binary,
    ".csv": vectors.write_table(","),
    ".tsv": vectors.write_table("\t"),
    ".parquet": vectors.write_parquet,
    **dict.fromkeys((".feather", ".arrow"), vectors.write_feather),
    ".safetensors": vectors.write_safetensors,
    **dict.fromkeys(_DATABASES, write_database),
}
_READERS: dict[str, Callable[[Path], Embedding]] = {
    ".npz": vectors.read_npz,
    ".npy": vectors.read_npy,
    **dict.fromkeys(_WORD2VEC, vectors.read_word2vec),
    ".bin": vectors.read_word2vec_binary,
    ".csv": vectors.read_table(","),
    ".tsv": vectors.read_table("\t"),
    ".parquet": vectors.read_by_arrow("parquet"),
    **dict.fromkeys((".feather", ".arrow"), vectors.read_by_arrow("feather")),
    ".safetensors": vectors.read_safetensors,
    **dict.fromkeys(_DATABASES, read_database),
    _PROJECTOR: vectors.read_projector,
}
_PACKABLE = (*_WORD2VEC, ".bin", ".csv", ".tsv")
"""Formats that may be compressed, as in .csv.gz."""
ENDINGS = tuple(_READERS)
"""The suffixes of files that embeddings are read from and written to."""
_EXTRAS = {".parquet": "pyarrow.parquet", ".feather": "pyarrow.feather", ".arrow": "pyarrow.feather",
           ".safetensors": "safetensors.numpy"}  # fmt: skip
"""The package that a format needs."""


def write_embedding(embedding: Embedding, path: Path) -> None:
    """Write an embedding; the file appears complete or not at all."""
    check_output(path).write(embedding)


@dataclass(frozen=True)
class Output:
    """A checked output file or stream of `check_output`; `kind` is the suffix of the format."""

    path: Path
    kind: str
    is_stream: bool = False

    def check_ids(self, nodes: npt.NDArray[Any]) -> None:
        """Raise OutputError if the format cannot hold these ids, before the work rather than in `write`."""
        if self.kind in (*_WORD2VEC, ".bin"):
            to_words(nodes, self.path)
        elif self.kind in (".csv", ".tsv", _PROJECTOR):
            check_texts(nodes, self.path)
        else:
            to_plain(nodes, self.path)

    def write(self, embedding: Embedding) -> None:
        """Write an embedding; a file appears complete or not at all."""
        self.check_ids(embedding.nodes)
        if embedding.context is not None and self.kind in (*_PACKABLE, ".npy", _PROJECTOR):
            warnings.warn(
                f"{self.path}: context vectors were not written, as {self.kind} cannot hold them; "
                "use .npz, .parquet, .safetensors or .sqlite",
                ManelaWarning,
                stacklevel=2,
            )
        try:
            self._write_whole(embedding)
        except UnicodeEncodeError as error:
            raise OutputError(f"{self.path}: cannot hold an id that is not valid text: {error}") from error
        except sqlite3.Error as error:
            raise OutputError(f"{self.path}: cannot be written: {error}") from error

    def _write_whole(self, embedding: Embedding) -> None:
        """Write vectors so that a crash leaves the old file or the new one."""
        if self.is_stream:
            self._write_stream(embedding)
        elif self.kind == _PROJECTOR:
            _replace_folder(self.path, lambda folder: vectors.write_projector(embedding, folder))
        else:
            with replace_file(self.path) as file:
                self._write(embedding, file)
            if self.kind == ".npy":
                vectors.ids_before(self.path).unlink(missing_ok=True)

    def _write(self, embedding: Embedding, file: BinaryIO) -> None:
        if self.path.suffix.lower() != ".gz":
            _WRITERS[self.kind](embedding, file, self.path)
            return
        # without name and time, so that equal vectors give equal bytes
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            _WRITERS[self.kind](embedding, packed, self.path)  # type: ignore[arg-type]

    def _write_stream(self, embedding: Embedding) -> None:
        try:
            if str(self.path) == "-":
                self._write(embedding, sys.stdout.buffer)
                sys.stdout.buffer.flush()
            else:
                with self.path.open("wb") as file:
                    self._write(embedding, file)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error.strerror or error}") from error


def check_output(path: Path) -> Output:
    """Check that a path has a known format and can be written; `-` is standard output."""
    kind = _find_kind(path)
    is_stream = str(path) == "-" or _is_stream(path)
    if is_stream and kind not in _PACKABLE:
        if kind in _READERS:
            raise OutputError(f"{path}: a pipe can be one of {' '.join(_PACKABLE)}, got {kind!r}")
        kind = _STREAM
    if kind not in _READERS:
        raise OutputError(f"{path}: the format must be one of {' '.join(ENDINGS)}, got {path.suffix!r}")
    if kind in _EXTRAS:
        import_extra(_EXTRAS[kind], "io", f"writing {kind}")
    if is_stream:
        return Output(path, kind, is_stream)
    if kind in _DATABASES and path.is_file() and not is_ours(path):
        raise OutputError(f"{path}: exists and does not hold vectors; name another file")
    if kind != _PROJECTOR:
        check_writable(path)
    elif not path.parent.is_dir():
        raise OutputError(f"{path}: cannot be written: no such folder: {path.parent}")
    elif path.exists() and not _is_projector(path):
        raise OutputError(f"{path}: cannot be written: it must be a new folder, or one with a previous embedding")
    if kind == ".npy":
        check_writable(vectors.ids_beside(path))
    return Output(path, kind)


def read_embedding(path: str | Path) -> Embedding:
    """Read an embedding written by `Manela.save`, `manela embed` or another program."""
    path = Path(path)
    kind = _find_kind(path)
    if path.is_dir() and not (kind == _PROJECTOR and _is_projector(path)):
        raise FormatError(f"{path}: must be a file, but it is a folder")
    if not path.exists():
        raise FormatError(f"{path}: no such file")
    reader = _READERS.get(kind)
    if reader is None:
        raise FormatError(f"{path}: the format must be one of {' '.join(ENDINGS)}, got {path.suffix!r}")
    try:
        embedding = reader(path)
    except ManelaError:
        raise
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or ' '.join(str(error).split())}") from error
    except Exception as error:
        message = " ".join(str(error).split()) or type(error).__name__
        raise FormatError(f"{path}: is not a readable {kind} file: {message}") from error
    if embedding.vectors.ndim != 2 or len(embedding.vectors) != len(embedding.nodes) or embedding.vectors.size == 0:
        shape = embedding.vectors.shape
        raise FormatError(f"{path}: must hold a vector for each node, got {len(embedding.nodes):,} nodes and {shape}")
    if not np.isfinite(embedding.vectors).all():
        raise FormatError(f"{path}: holds vectors that are not finite numbers")
    repeated = [node for node, count in Counter(embedding.nodes.tolist()).items() if count > 1]
    if repeated:
        hint = f"; {vectors.NETWORK_HINT}" if kind in (*_WORD2VEC, ".csv", ".tsv") else ""
        raise FormatError(f"{path}: must hold one vector for each node, got several for {repeated[0]!r}{hint}")
    return embedding


def _is_stream(path: Path) -> bool:
    try:
        return path.exists() and not path.is_file() and not path.is_dir()
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _find_kind(path: Path) -> str:
    """Return the suffix of the format: the one before .gz if the format may be compressed."""
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    if len(endings) == 2 and endings[1] == ".gz" and endings[0] in _PACKABLE:
        return endings[0]
    return endings[-1] if endings else ""


def _is_projector(folder: Path) -> bool:
    return folder.is_dir() and (folder / "vectors.tsv").is_file() and (folder / "metadata.tsv").is_file()


def _replace_folder(path: Path, write: Callable[[Path], None]) -> None:
    try:
        folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=".manela."))
        try:
            write(folder)
            folder.chmod(0o755)
            if path.exists():
                previous = Path(tempfile.mkdtemp(dir=path.parent, prefix=".manela."))
                path.rename(previous / "before")
                try:
                    folder.rename(path)
                except OSError:
                    (previous / "before").rename(path)
                    raise
                for file in (previous / "before").iterdir():  # keep files of other programs
                    if not (path / file.name).exists():
                        file.rename(path / file.name)
                shutil.rmtree(previous)
            else:
                folder.rename(path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error
