"""Reads and writes embeddings as an SQLite database, which other programs can query."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import numpy as np

from manela.data.embedding import Embedding
from manela.errors import FormatError
from manela.formats.ids import from_plain, to_plain

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
