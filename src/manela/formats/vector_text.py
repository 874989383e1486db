"""Readers and writers of embeddings as text: word2vec, tables, and TensorBoard's projector."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from manela.data.embedding import Embedding
from manela.errors import FormatError
from manela.formats.ids import from_words, to_words

NETWORK_HINT = "is it a network? its vectors are to be learned first"
"""What to say where text is no table of vectors, as edges are the table that people have."""


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


def _read_vector(fields: list[str], place: str) -> npt.NDArray[np.float32]:
    """Convert fields to a vector; `place` is the file and line for error messages."""
    try:
        return np.array(fields, dtype=np.float32)
    except ValueError:
        raise FormatError(f"{place}: a vector must be numbers, got {','.join(fields)[:40]!r}; {NETWORK_HINT}") from None


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
    """Open a file for reading, unpacked."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")
