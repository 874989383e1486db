"""Readers and writers of embeddings, by the ending of the file's name."""

from __future__ import annotations

import csv
import datetime
import decimal
import hashlib
import io
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from manela.embedding import Embedding
from manela.errors import FormatError, ManelaError, OutputError, import_extra
from manela.formats.arrays import read_arrays, write_arrays
from manela.formats.files import check_writable, replace_file

_PIECE = 4096
_NOTES = "provenance"
_WORD2VEC = (".txt", ".emb", ".w2v")


def write_embedding(embedding: Embedding, path: Path) -> None:
    """Write an embedding; the file appears whole or not at all."""
    check_output(path).write(embedding)


@dataclass(frozen=True)
class Output:
    """A file that an embedding can be written to, as `check_output` found."""

    path: Path

    def check_ids(self, nodes: npt.NDArray[Any]) -> None:
        """Raise OutputError if the format cannot hold these ids; `write` would, after the work."""
        ending = self.path.suffix.lower()
        if ending in (*_WORD2VEC, ".bin"):
            _words(nodes, self.path)
        elif ending in (".npz", ".npy", ".parquet"):
            _plain_ids(nodes, self.path)

    def write(self, embedding: Embedding) -> None:
        """Write an embedding; the file appears whole or not at all."""
        with replace_file(self.path) as file:
            _WRITERS[self.path.suffix.lower()](embedding, file, self.path)
        if self.path.suffix.lower() == ".npy":
            _ids_before(self.path).unlink(missing_ok=True)


def check_output(path: Path) -> Output:
    """The file to write to, if its ending names a format and it can be written."""
    ending = path.suffix.lower()
    if ending not in _WRITERS:
        raise OutputError(f"{path}: the format must be one of {' '.join(_WRITERS)}, got {path.suffix!r}")
    if ending == ".parquet":
        import_extra("pyarrow.parquet", "io", "writing .parquet")
    check_writable(path)
    if ending == ".npy":
        check_writable(_ids_beside(path))
    return Output(path)


def read_embedding(path: Path) -> Embedding:
    """Read an embedding that `write_embedding` or another program wrote."""
    if path.is_dir():
        raise FormatError(f"{path}: must be a file, but it is a folder")
    if not path.exists():
        raise FormatError(f"{path}: no such file")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise FormatError(f"{path}: the format must be one of {' '.join(_READERS)}, got {path.suffix!r}")
    try:
        embedding = reader(path)
    except ManelaError:
        raise
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:
        raise FormatError(f"{path}: is not a readable {path.suffix} file: {error or type(error).__name__}") from error
    if embedding.vectors.ndim != 2 or len(embedding.vectors) != len(embedding.nodes) or embedding.vectors.size == 0:
        shape = embedding.vectors.shape
        raise FormatError(f"{path}: must hold a vector for each node, got {len(embedding.nodes):,} nodes and {shape}")
    if not np.isfinite(embedding.vectors).all():
        raise FormatError(f"{path}: holds vectors that are not finite numbers")
    return embedding


def _write_npz(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    nodes, kind = _plain_ids(embedding.nodes, path)
    arrays: dict[str, npt.NDArray[Any]] = {"nodes": nodes, "vectors": embedding.vectors}
    if embedding.context is not None:
        arrays["context"] = embedding.context
    write_arrays(file, arrays, {**embedding.provenance, "node_ids": kind}, _NOTES)


def _read_npz(path: Path) -> Embedding:
    arrays, notes = read_arrays(path, _NOTES)
    if not {"nodes", "vectors"} <= set(arrays):
        raise FormatError(f"{path}: must hold 'nodes' and 'vectors', got {', '.join(arrays)}")
    nodes = _typed_ids(arrays["nodes"], notes.pop("node_ids"))
    return Embedding(nodes, arrays["vectors"], arrays.get("context"), notes)


def _write_npy(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    """Vectors, and their ids in a file beside them, which says of which vectors they are.

    The two cannot be replaced at once: until the new vectors are there, the ids of those before stay beside them too.
    """
    nodes, kind = _plain_ids(embedding.nodes, path)
    sha = hashlib.sha256()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f4", "fortran_order": False, "shape": embedding.vectors.shape}
    )
    for rows in _pieces(embedding.vectors):
        content = rows.astype("<f4", copy=False).tobytes()
        sha.update(content)
        file.write(content)
    beside = {
        "nodes": nodes.tolist(), "node_ids": kind, "provenance": dict(embedding.provenance), "sha256": sha.hexdigest()
    }  # fmt: skip
    ids = _ids_beside(path)
    if ids.exists() and not _has_ids_before(path):
        with replace_file(_ids_before(path)) as before:
            before.write(ids.read_bytes())
    with replace_file(ids) as written:
        written.write(json.dumps(beside, ensure_ascii=False, sort_keys=True).encode())


def _read_npy(path: Path) -> Embedding:
    ids = _ids_beside(path)
    if not ids.exists():
        raise FormatError(f"{path}: needs its ids beside it in {ids.name}, which is not there")
    vectors = np.load(path, allow_pickle=False)
    sha = hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest()
    for file in (ids, _ids_before(path)):
        if file.exists():
            beside = json.loads(file.read_bytes())
            if beside.get("sha256", sha) == sha:
                break
    else:
        raise FormatError(f"{path}: the ids in {ids.name} are those of other vectors; write both anew")
    kind = beside["node_ids"]
    nodes = np.array(beside["nodes"], dtype=np.int64 if kind == "integer" else object)
    return Embedding(_typed_ids(nodes, kind), vectors.astype(np.float32, copy=False), None, beside["provenance"])


def _has_ids_before(path: Path) -> bool:
    """Whether the ids of the vectors that are there are those before: a write was killed between the two files."""
    try:
        known = json.loads(_ids_before(path).read_bytes()).get("sha256")
        vectors = np.load(path, allow_pickle=False)
        return bool(known == hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest())
    except (OSError, ValueError, AttributeError):
        return False


def _ids_before(path: Path) -> Path:
    return path.with_suffix(".nodes.before.json")


def _ids_beside(path: Path) -> Path:
    return path.with_suffix(".nodes.json")


def _write_word2vec(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    file.write(f"{embedding.vectors.shape[0]} {embedding.vectors.shape[1]}\n".encode())
    for line in _lines(embedding, path, " "):
        file.write(line)


def _write_word2vec_binary(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    file.write(f"{embedding.vectors.shape[0]} {embedding.vectors.shape[1]}\n".encode())
    for node, row in zip(_words(embedding.nodes, path), embedding.vectors, strict=True):
        file.write(node.encode() + b" " + row.astype("<f4", copy=False).tobytes() + b"\n")


def _read_word2vec(path: Path) -> Embedding:
    with path.open("rb") as file:
        size, dimensions = _read_sizes(path, file.readline())
        ids: list[str] = []
        vectors = np.empty((size, dimensions), dtype=np.float32)
        for row in range(size):
            fields = file.readline().decode().split()
            if len(fields) != dimensions + 1:
                raise FormatError(f"{path}:{row + 2}: a line must be an id and {dimensions} numbers")
            ids.append(fields[0])
            vectors[row] = [float(field) for field in fields[1:]]
    return Embedding(_ids_of_words(ids), vectors)


def _read_word2vec_binary(path: Path) -> Embedding:
    data = path.read_bytes()
    end = data.index(b"\n")
    size, dimensions = _read_sizes(path, data[: end + 1])
    ids: list[str] = []
    vectors = np.empty((size, dimensions), dtype=np.float32)
    at = end + 1
    for row in range(size):
        end = data.index(b" ", at)
        ids.append(data[at:end].lstrip(b"\n").decode())
        at = end + 1 + 4 * dimensions
        vectors[row] = np.frombuffer(data[end + 1 : at], dtype="<f4")
    return Embedding(_ids_of_words(ids), vectors)


def _read_sizes(path: Path, line: bytes) -> tuple[int, int]:
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        raise FormatError(f"{path}:1: must be the number of nodes and of dimensions, got {line[:40]!r}")
    size, dimensions = int(fields[0]), int(fields[1])
    if size * dimensions * 2 > path.stat().st_size:
        raise FormatError(f"{path}:1: {size:,} vectors of {dimensions:,} numbers cannot be in a file of this size")
    return size, dimensions


def _write_table(separator: str) -> Callable[[Embedding, BinaryIO, Path], None]:
    def write(embedding: Embedding, file: BinaryIO, _: Path) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        table = csv.writer(text, delimiter=separator, lineterminator="\n")
        table.writerow(["node", *(f"d{i}" for i in range(embedding.vectors.shape[1]))])
        for node, row in zip(embedding.nodes.tolist(), embedding.vectors, strict=True):
            table.writerow([node, *(f"{value:.9g}" for value in row.tolist())])
        text.detach()

    return write


def _read_table(separator: str) -> Callable[[Path], Embedding]:
    def read(path: Path) -> Embedding:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.reader(file, delimiter=separator)
            first = next(rows, [])
            width = len(first)
            ids: list[str] = []
            vectors: list[npt.NDArray[np.float32]] = []
            for row in rows if _is_heading(first) else chain([first], rows):
                if len(row) != width or width < 2:
                    raise FormatError(f"{path}:{rows.line_num}: a line must have {width} fields, got {len(row)}")
                ids.append(row[0])
                vectors.append(np.array(row[1:], dtype=np.float32))
        return Embedding(_ids_of_words(ids), np.array(vectors, dtype=np.float32))

    return read


def _is_heading(row: list[str]) -> bool:
    """Whether these are names of columns, or their numbers, rather than a node and its vector."""
    try:
        return [float(field) for field in row[1:]] == list(range(len(row) - 1))
    except ValueError:
        return True


def _write_parquet(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    arrow: Any = import_extra("pyarrow", "io", "writing .parquet")
    parquet: Any = import_extra("pyarrow.parquet", "io", "writing .parquet")
    nodes, kind = _plain_ids(embedding.nodes, path)
    width = embedding.vectors.shape[1]
    flat = arrow.array(np.ascontiguousarray(embedding.vectors).reshape(-1))
    table = arrow.table({"node": nodes.tolist(), "vector": arrow.FixedSizeListArray.from_arrays(flat, width)})
    notes = json.dumps({**embedding.provenance, "node_ids": kind}, sort_keys=True)
    parquet.write_table(table.replace_schema_metadata({"manela": notes}), file)


def _read_parquet(path: Path) -> Embedding:
    parquet: Any = import_extra("pyarrow.parquet", "io", "reading .parquet")
    table = parquet.read_table(path)
    if not {"node", "vector"} <= set(table.column_names):
        raise FormatError(f"{path}: must have columns 'node' and 'vector', got {', '.join(table.column_names)}")
    notes = json.loads((table.schema.metadata or {}).get(b"manela", b"{}"))
    ids = table["node"].to_pylist()
    kind = notes.pop("node_ids", "integer" if all(type(node) is int for node in ids) else "string")
    nodes = np.array(ids, dtype=np.int64 if kind == "integer" else object)
    vectors = np.array(table["vector"].combine_chunks().flatten(), dtype=np.float32).reshape(len(ids), -1)
    return Embedding(_typed_ids(nodes, kind), vectors, None, notes)


_WRITERS: dict[str, Callable[[Embedding, BinaryIO, Path], None]] = {
    ".npz": _write_npz,
    ".npy": _write_npy,
    **dict.fromkeys(_WORD2VEC, _write_word2vec),
    ".bin": _write_word2vec_binary,
    ".csv": _write_table(","),
    ".tsv": _write_table("\t"),
    ".parquet": _write_parquet,
}
_READERS: dict[str, Callable[[Path], Embedding]] = {
    ".npz": _read_npz,
    ".npy": _read_npy,
    **dict.fromkeys(_WORD2VEC, _read_word2vec),
    ".bin": _read_word2vec_binary,
    ".csv": _read_table(","),
    ".tsv": _read_table("\t"),
    ".parquet": _read_parquet,
}


def _plain_ids(nodes: npt.NDArray[Any], path: Path) -> tuple[npt.NDArray[Any], str]:
    """Ids as an array without objects, and what they are: integers, strings, or other things as JSON."""
    if nodes.dtype != object:
        return nodes, "integer"
    ids = nodes.tolist()
    if all(type(node) is str for node in ids):
        return np.array(ids, dtype=np.str_), "string"
    try:
        return np.array([json.dumps(_to_json(node)) for node in ids], dtype=np.str_), "json"
    except TypeError as error:
        raise OutputError(f"{path}: cannot hold these ids: {error}") from error


def _typed_ids(nodes: npt.NDArray[Any], kind: str) -> npt.NDArray[Any]:
    if kind == "integer":
        return nodes.astype(np.int64, copy=False)
    ids = np.empty(len(nodes), dtype=object)
    for place, node in enumerate(nodes.tolist()):
        ids[place] = _from_json(json.loads(node)) if kind == "json" else node
    return ids


_TYPES: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "uuid": (uuid.UUID, str, uuid.UUID),
    "datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
    "path": (PurePath, str, Path),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
}
"""Types of ids that come back as they were, by their text."""


def _to_json(node: Any) -> Any:
    """A tuple becomes a list, and what has a text form an object with it; no id is a list or a dict."""
    if isinstance(node, tuple):
        return [_to_json(part) for part in node]
    if node is None or type(node) in (bool, int, float, str):
        return node
    for name, (kind, write, _) in _TYPES.items():
        if isinstance(node, kind):
            return {name: write(node)}
    raise TypeError(
        f"an id must be a number, a text, a UUID, a date, bytes, None or a tuple of these to be saved, got "
        f"{type(node).__name__}; make it a text by str(…) before fitting"
    )


def _from_json(node: Any) -> Any:
    if isinstance(node, dict):
        [(name, text)] = node.items()
        return _TYPES[name][2](text)
    return tuple(_from_json(part) for part in node) if isinstance(node, list) else node


def _words(nodes: npt.NDArray[Any], path: Path) -> list[str]:
    """Ids as words; the word2vec formats have no way to write white space within one."""
    words = [str(node) for node in nodes.tolist()]
    for word in words:
        if word.split() != [word]:
            raise OutputError(f"{path}: ids must not have white space in this format, got {word!r}; use .npz or .csv")
    return words


def _ids_of_words(words: list[str]) -> npt.NDArray[Any]:
    """Integers if all words are written as integers are printed, otherwise strings."""
    try:
        values = [int(word) for word in words]
    except ValueError:
        values = []
    if values and [str(value) for value in values] == words and max(map(abs, values)) < 2**63:
        return np.array(values, dtype=np.int64)
    ids = np.empty(len(words), dtype=object)
    ids[:] = words
    return ids


def _lines(embedding: Embedding, path: Path, separator: str) -> Iterator[bytes]:
    form = separator.join(["%s"] + ["%.9g"] * embedding.vectors.shape[1]) + "\n"
    for word, row in zip(_words(embedding.nodes, path), embedding.vectors, strict=True):
        yield (form % (word, *row.tolist())).encode()


def _pieces(vectors: npt.NDArray[np.float32]) -> Iterator[npt.NDArray[np.float32]]:
    for first in range(0, len(vectors), _PIECE):
        yield vectors[first : first + _PIECE]
