"""Readers and writers of embeddings: as text, as arrays, and as an SQLite database.

Text is word2vec, tables, and TensorBoard's projector; arrays are .npz, .npy, Parquet, Feather and safetensors.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from manela.data.embedding import Embedding
from manela.errors import FormatError, import_extra
from manela.formats.ids import from_plain, from_words, to_plain, to_words
from manela.system.arrays import read_arrays, write_arrays
from manela.system.files import replace_file

NETWORK_HINT = "if it is a network, learn its vectors first"
"""What to say where text is not a table of vectors, as edges are the table that people have."""
_PIECE = 4096
"""Vectors that are written at once; more take more memory."""
_NOTES = "provenance"


def write_word2vec(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    """Write the sizes, and a line with the id and the vector for each node."""
    file.write(f"{embedding.vectors.shape[0]} {embedding.vectors.shape[1]}\n".encode())
    form = " ".join(["%s"] + ["%.9g"] * embedding.vectors.shape[1]) + "\n"
    for word, row in zip(to_words(embedding.nodes, path), embedding.vectors, strict=True):
        file.write((form % (word, *row.tolist())).encode())


def write_word2vec_binary(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    """Write the sizes, and for each node its id and the bytes of its vector."""
    file.write(f"{embedding.vectors.shape[0]} {embedding.vectors.shape[1]}\n".encode())
    for node, row in zip(to_words(embedding.nodes, path), embedding.vectors, strict=True):
        file.write(node.encode() + b" " + row.astype("<f4", copy=False).tobytes() + b"\n")


def read_word2vec(path: Path) -> Embedding:
    """Read a text file of word2vec, by any program."""
    with _open(path) as file:
        size, dimensions = _read_sizes(path, file.readline())
        ids: list[str] = []
        vectors = np.empty((size, dimensions), dtype=np.float32)
        for row in range(size):
            fields = file.readline().decode().split()
            if len(fields) != dimensions + 1:
                raise FormatError(
                    f"{path}:{row + 2}: a line must be an id and {dimensions} numbers, got {len(fields)} fields; "
                    f"{NETWORK_HINT}"
                )
            ids.append(fields[0])
            vectors[row] = _read_vector(fields[1:], f"{path}:{row + 2}")
    return Embedding(from_words(ids), vectors)


def read_word2vec_binary(path: Path) -> Embedding:
    """Read a binary file of word2vec, by any program."""
    with _open(path) as file:
        data = file.read()
    end = data.index(b"\n")
    size, dimensions = _read_sizes(path, data[: end + 1])
    ids: list[str] = []
    vectors = np.empty((size, dimensions), dtype=np.float32)
    position = end + 1
    for row in range(size):
        end = data.index(b" ", position)
        ids.append(data[position:end].lstrip(b"\n").decode())
        position = end + 1 + 4 * dimensions
        vectors[row] = np.frombuffer(data[end + 1 : position], dtype="<f4")
    return Embedding(from_words(ids), vectors)


def _read_sizes(path: Path, line: bytes) -> tuple[int, int]:
    """Return the numbers in the first line, after checking that the file can hold so much."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        raise FormatError(f"{path}:1: must be the number of nodes and of dimensions, got {line[:40]!r}; {NETWORK_HINT}")
    size, dimensions = int(fields[0]), int(fields[1])
    most = path.stat().st_size * (1000 if path.suffix.lower() == ".gz" else 1)  # the best that gzip can compress
    if size * dimensions * 2 > most:
        raise FormatError(f"{path}:1: {size:,} vectors of {dimensions:,} numbers cannot be in a file of this size")
    return size, dimensions


def write_table(separator: str) -> Callable[[Embedding, BinaryIO, Path], None]:
    """Return a writer of tables with a header: a column of ids, and a column for each dimension."""

    def write(embedding: Embedding, file: BinaryIO, _: Path) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        table = csv.writer(text, delimiter=separator, lineterminator="\n")
        table.writerow(["node", *(f"d{i}" for i in range(embedding.vectors.shape[1]))])
        for node, row in zip(embedding.nodes.tolist(), embedding.vectors, strict=True):
            table.writerow([node, *(f"{value:.9g}" for value in row.tolist())])
        text.detach()

    return write


def read_table(separator: str) -> Callable[[Path], Embedding]:
    """Return a reader of such tables, with or without a header."""

    def read(path: Path) -> Embedding:
        with io.TextIOWrapper(_open(path), encoding="utf-8", newline="") as file:
            rows = csv.reader(file, delimiter=separator)
            first = next(rows, [])
            width = len(first)
            ids: list[str] = []
            vectors: list[npt.NDArray[np.float32]] = []
            for row in rows if _is_header(first) else chain([first], rows):
                if len(row) != width or width < 2:
                    raise FormatError(f"{path}:{rows.line_num}: a line must have {width} fields, got {len(row)}")
                ids.append(row[0])
                vectors.append(_read_vector(row[1:], f"{path}:{rows.line_num}"))
        return Embedding(from_words(ids), np.array(vectors, dtype=np.float32))

    return read


def _read_vector(fields: list[str], where: str) -> npt.NDArray[np.float32]:
    try:
        return np.array(fields, dtype=np.float32)
    except ValueError:
        raise FormatError(f"{where}: a vector must be numbers, got {','.join(fields)[:40]!r}; {NETWORK_HINT}") from None


def _is_header(row: list[str]) -> bool:
    """Whether a row holds column names or numbers, rather than a node and its vector."""
    try:
        return [float(field) for field in row[1:]] == list(range(len(row) - 1))
    except ValueError:
        return True


def write_projector(embedding: Embedding, folder: Path) -> None:
    """Write the files for TensorBoard's projector: vectors, ids, and a configuration that names both."""
    with (folder / "vectors.tsv").open("w", encoding="utf-8") as file:
        file.writelines("\t".join(f"{value:.9g}" for value in row.tolist()) + "\n" for row in embedding.vectors)
    with (folder / "metadata.tsv").open("w", encoding="utf-8") as file:  # a single column has no header
        file.writelines(" ".join(str(node).split()) + "\n" for node in embedding.nodes.tolist())
    config = 'embeddings {\n  tensor_path: "vectors.tsv"\n  metadata_path: "metadata.tsv"\n}\n'
    (folder / "projector_config.pbtxt").write_text(config, encoding="utf-8")


def read_projector(folder: Path) -> Embedding:
    """Read the files of TensorBoard's projector; ids are the first column of the metadata."""
    vectors = np.loadtxt(folder / "vectors.tsv", delimiter="\t", dtype=np.float32, ndmin=2)
    lines = (folder / "metadata.tsv").read_text(encoding="utf-8").splitlines()
    if lines and "\t" in lines[0]:
        lines = [line.partition("\t")[0] for line in lines[1:]]
    return Embedding(from_words(lines), vectors)


def _open(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")


def write_npz(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    """Write ids, vectors, context vectors and provenance as .npz."""
    nodes, kind = to_plain(embedding.nodes, path)
    arrays: dict[str, npt.NDArray[Any]] = {"nodes": nodes, "vectors": embedding.vectors}
    if embedding.context is not None:
        arrays["context"] = embedding.context
    arrays.update(embedding.further)
    write_arrays(file, arrays, {**embedding.provenance, "node_ids": kind}, _NOTES)


def read_npz(path: Path) -> Embedding:
    """Read a file of `write_npz`."""
    arrays, notes = read_arrays(path, _NOTES)
    if not {"nodes", "vectors"} <= set(arrays):
        raise FormatError(f"{path}: must hold 'nodes' and 'vectors', got {', '.join(arrays)}")
    nodes = from_plain(arrays["nodes"], notes.pop("node_ids"))
    further = {name: array for name, array in arrays.items() if name not in ("nodes", "vectors", "context")}
    return Embedding(nodes, arrays["vectors"], arrays.get("context"), notes, further)


def write_npy(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    """Write vectors as .npy, and their ids to a second file with the SHA-256 of the vectors.

    The two files cannot be replaced in one step: the previous ids are kept in a third file until the new vectors are
    in place.
    """
    nodes, kind = to_plain(embedding.nodes, path)
    sha = hashlib.sha256()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f4", "fortran_order": False, "shape": embedding.vectors.shape}
    )
    for rows in _pieces(embedding.vectors):
        content = rows.astype("<f4", copy=False).tobytes()
        sha.update(content)
        file.write(content)
    sidecar = {
        "nodes": nodes.tolist(), "node_ids": kind, "provenance": dict(embedding.provenance), "sha256": sha.hexdigest()
    }  # fmt: skip
    ids = ids_beside(path)
    if ids.exists() and not _has_ids_before(path):
        with replace_file(ids_before(path)) as previous:
            previous.write(ids.read_bytes())
    with replace_file(ids) as ids_file:
        ids_file.write(json.dumps(sidecar, ensure_ascii=False, sort_keys=True).encode())


def read_npy(path: Path) -> Embedding:
    """Read the files of `write_npy`."""
    ids = ids_beside(path)
    if not ids.exists():
        raise FormatError(f"{path}: needs its ids beside it in {ids.name}, which does not exist")
    vectors = np.load(path, allow_pickle=False)
    sha = hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest()
    for file in (ids, ids_before(path)):
        if file.exists():
            sidecar = json.loads(file.read_bytes())
            if sidecar.get("sha256", sha) == sha:
                break
    else:
        raise FormatError(f"{path}: the ids in {ids.name} belong to other vectors; write both again")
    nodes = from_plain(sidecar["nodes"], sidecar["node_ids"])
    return Embedding(nodes, vectors.astype(np.float32, copy=False), None, sidecar["provenance"])


def _has_ids_before(path: Path) -> bool:
    """Whether the present vectors belong to the previous ids, as a write was killed between the two files."""
    try:
        known = json.loads(ids_before(path).read_bytes()).get("sha256")
        vectors = np.load(path, allow_pickle=False)
        return bool(known == hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest())
    except (OSError, ValueError, AttributeError):
        return False


def ids_before(path: Path) -> Path:
    """Return the path of the ids of the vectors that a .npy file held before."""
    return path.with_suffix(".nodes.before.json")


def ids_beside(path: Path) -> Path:
    """Return the path of the ids of the vectors in a .npy file."""
    return path.with_suffix(".nodes.json")


def write_parquet(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    """Write a Parquet table."""
    parquet: Any = import_extra("pyarrow.parquet", "io", "writing .parquet")
    parquet.write_table(_to_table(embedding, path), file)


def write_feather(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    """Write a Feather table, which is Arrow's own format."""
    feather: Any = import_extra("pyarrow.feather", "io", f"writing {path.suffix}")
    feather.write_feather(_to_table(embedding, path), file, compression="uncompressed")


def read_by_arrow(module: str) -> Callable[[Path], Embedding]:
    """Return a reader of tables that uses this module of pyarrow."""

    def read(path: Path) -> Embedding:
        library: Any = import_extra(f"pyarrow.{module}", "io", f"reading {path.suffix}")
        table = library.read_table(path)
        if not {"node", "vector"} <= set(table.column_names):
            raise FormatError(f"{path}: must have columns 'node' and 'vector', got {', '.join(table.column_names)}")
        notes = json.loads((table.schema.metadata or {}).get(b"manela", b"{}"))
        ids = table["node"].to_pylist()
        kind = notes.pop("node_ids", "integer" if all(type(node) is int for node in ids) else "string")
        rows = [
            None if name not in table.column_names
            else np.array(table[name].combine_chunks().flatten(), dtype=np.float32).reshape(len(ids), -1)
            for name in ("vector", "context")
        ]  # fmt: skip
        return Embedding(from_plain(ids, kind), rows[0], rows[1], notes)  # type: ignore[arg-type]

    return read


def _to_table(embedding: Embedding, path: Path) -> Any:
    arrow: Any = import_extra("pyarrow", "io", f"writing {path.suffix}")
    nodes, kind = to_plain(embedding.nodes, path)
    columns: dict[str, Any] = {"node": nodes.tolist()}
    for name, rows in (("vector", embedding.vectors), ("context", embedding.context)):
        if rows is not None:
            flat = arrow.array(np.ascontiguousarray(rows).reshape(-1))
            columns[name] = arrow.FixedSizeListArray.from_arrays(flat, rows.shape[1])
    notes = json.dumps({**embedding.provenance, "node_ids": kind}, sort_keys=True)
    return arrow.table(columns).replace_schema_metadata({"manela": notes})


def write_safetensors(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    """Write the tensors `vectors` and `context`, with ids and provenance as metadata."""
    library: Any = import_extra("safetensors.numpy", "io", "writing .safetensors")
    nodes, kind = to_plain(embedding.nodes, path)
    tensors = {"vectors": np.ascontiguousarray(embedding.vectors)}
    if embedding.context is not None:
        tensors["context"] = np.ascontiguousarray(embedding.context)
    notes = {
        "nodes": json.dumps(nodes.tolist(), ensure_ascii=False),
        "node_ids": kind,
        _NOTES: json.dumps(dict(embedding.provenance), ensure_ascii=False, sort_keys=True),
    }
    file.write(library.save(tensors, metadata=notes))


def read_safetensors(path: Path) -> Embedding:
    """Read a file of `write_safetensors`; if it has no ids, they are the row numbers."""
    library: Any = import_extra("safetensors", "io", "reading .safetensors")
    with library.safe_open(path, framework="numpy") as file:
        notes, names = file.metadata() or {}, list(file.keys())
        name = "vectors" if "vectors" in names else names[0] if len(names) == 1 else ""
        if not name:
            raise FormatError(f"{path}: must hold a tensor 'vectors', got {', '.join(names) or 'nothing'}")
        vectors = file.get_tensor(name).astype(np.float32, copy=False)
        context = file.get_tensor("context") if "context" in names else None
    nodes = from_plain(json.loads(notes["nodes"]), notes["node_ids"]) if "nodes" in notes else np.arange(len(vectors))
    return Embedding(nodes, vectors, context, json.loads(notes.get(_NOTES, "{}")))


def _pieces(vectors: npt.NDArray[np.float32]) -> Iterator[npt.NDArray[np.float32]]:
    """Yield vectors in pieces, so that no second copy of all is made."""
    for first in range(0, len(vectors), _PIECE):
        yield vectors[first : first + _PIECE]


_TABLES = """
CREATE TABLE vectors (row INTEGER PRIMARY KEY, node NOT NULL UNIQUE, vector BLOB NOT NULL, context BLOB);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


def write_database(embedding: Embedding, file: BinaryIO, path: Path) -> None:
    """Write a table `vectors`: the id of each node, and its vector as little-endian 32-bit floats."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".manela.") as folder:
        database = Path(folder) / "vectors.db"
        _fill(embedding, database, path)
        with database.open("rb") as written:
            shutil.copyfileobj(written, file)


def _fill(embedding: Embedding, database: Path, path: Path) -> None:
    nodes, kind = to_plain(embedding.nodes, path)
    vectors = np.ascontiguousarray(embedding.vectors, dtype="<f4")
    context = None if embedding.context is None else np.ascontiguousarray(embedding.context, dtype="<f4")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executescript(_TABLES)
        rows = (
            (row, node, vectors[row].tobytes(), None if context is None else context[row].tobytes())
            for row, node in enumerate(nodes.tolist())
        )
        connection.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?)", rows)
        facts = {"node_ids": kind, "provenance": json.dumps(dict(embedding.provenance), sort_keys=True)}
        connection.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())


def read_database(path: Path) -> Embedding:
    """Read a database of `write_database`."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        try:
            facts = dict(connection.execute("SELECT name, value FROM facts"))
            rows = connection.execute("SELECT node, vector, context FROM vectors ORDER BY row").fetchall()
        except sqlite3.OperationalError as error:
            raise FormatError(f"{path}: must hold the tables 'vectors' and 'facts': {error}") from error
    nodes = from_plain([node for node, _, _ in rows], facts["node_ids"])
    vectors = np.array([np.frombuffer(vector, "<f4") for _, vector, _ in rows], dtype=np.float32)
    has_context = bool(rows) and rows[0][2] is not None
    context = (
        np.array([np.frombuffer(content, "<f4") for _, _, content in rows], dtype=np.float32) if has_context else None
    )
    return Embedding(nodes, vectors, context, json.loads(facts["provenance"]))


def is_ours(path: Path) -> bool:
    """Whether a file is empty, or a database with the tables of `write_database` and no others."""
    if path.stat().st_size == 0:
        return True
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return False
    return names == {"vectors", "facts"}
