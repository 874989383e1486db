"""Readers and writers of embeddings as arrays: .npz, .npy, Parquet, Feather, safetensors.

Also: Reads and writes embeddings as an SQLite database, which other programs can query.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from manela.data.embedding import Embedding
from manela.errors import FormatError, import_extra
from manela.formats.ids import from_plain, to_plain
from manela.system.arrays import read_arrays, write_arrays
from manela.system.files import replace_file

_PIECE = 4096
"""Vectors that are written at once; more take more memory."""
_NOTES = "provenance"


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
        raise FormatError(f"{path}: needs its ids beside it in {ids.name}, which is not there")
    vectors = np.load(path, allow_pickle=False)
    sha = hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest()
    for file in (ids, ids_before(path)):
        if file.exists():
            sidecar = json.loads(file.read_bytes())
            if sidecar.get("sha256", sha) == sha:
                break
    else:
        raise FormatError(f"{path}: the ids in {ids.name} are those of other vectors; write both anew")
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
    """Convert to an Arrow table: ids, vectors as lists of fixed length, and context vectors if there are any."""
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
    """Write vectors and their provenance to a new SQLite file."""
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
