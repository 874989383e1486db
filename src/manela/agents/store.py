"""Store: what a host must not lose, in SQLite (peers, edges, what was refused) and in a file of vectors."""

from __future__ import annotations

import csv
import datetime
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from manela.agents.host import Saved
from manela.agents.names import Node, check_host_name, is_name
from manela.agents.neighbourhood import Edge
from manela.errors import AgentError, FormatError, OutputError
from manela.formats.arrays import read_arrays, write_arrays
from manela.formats.files import replace_file
from manela.params import LEAST_WEIGHT, MOST_WEIGHT, WEIGHT_RULE

VERSION = 2
_MOST_AUDITED = 100_000
_SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE peers (name TEXT PRIMARY KEY, address TEXT NOT NULL, nodes INTEGER) WITHOUT ROWID;
CREATE TABLE certificates (peer TEXT NOT NULL REFERENCES peers ON DELETE CASCADE, pem TEXT NOT NULL UNIQUE);
CREATE TABLE edges (
    own TEXT NOT NULL, other TEXT NOT NULL, host TEXT NOT NULL, weight REAL NOT NULL, PRIMARY KEY (own, other, host)
) WITHOUT ROWID;
CREATE TABLE audit (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, peer TEXT NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL
);
PRAGMA user_version = {VERSION};
"""


class Store:
    """A host's store in a folder; close it by `close`, or use it in a `with` block.

    Another process may write to it at the same time: `changes` tells.
    """

    def __init__(self, folder: Path, create: bool = False) -> None:
        self.folder = folder
        self._names: list[str] | None = None
        self._lines = np.zeros(0, np.uint8)
        self.file = folder / "store.db"
        if not create and not self.file.exists():
            raise AgentError(f"{folder}: holds no host; make one with `manela agent init`")
        try:
            self._database = sqlite3.connect(self.file, timeout=10.0, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA foreign_keys = ON")
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if create:
                self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            if create and version == 0:
                self._database.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
                version = VERSION
        except sqlite3.Error as error:
            raise AgentError(f"{self.file}: cannot be used: {error}") from error
        if version != VERSION:
            self._database.close()
            raise AgentError(f"{self.file}: must be of version {VERSION}, got {version}: update manela, or this folder")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    @property
    def changes(self) -> int:
        """A number that is another one after another process has written."""
        return int(self._read("PRAGMA data_version")[0][0])

    # facts

    def get(self, name: str) -> str | None:
        """A fact."""
        found = self._read("SELECT value FROM meta WHERE name = ?", name)
        return str(found[0][0]) if found else None

    def put(self, name: str, value: str) -> None:
        """Keep a fact."""
        with self._write() as database:
            database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    # peers

    def add_peer(self, name: str, address: str, certificate: str, nodes: int | None = None) -> None:
        """Keep a peer; one that is known gets the address, and the certificate besides those it has.

        `nodes` is how many nodes it has, for which it counts at most; None to leave that as it is.
        """
        check_host_name(name)
        with self._write() as database:
            owner = database.execute("SELECT peer FROM certificates WHERE pem = ?", (certificate,)).fetchone()
            if owner and owner[0] != name:
                raise AgentError(f"this certificate is that of {owner[0]}: one host, one name")
            database.execute(
                "INSERT INTO peers VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET address = excluded.address, "
                "nodes = coalesce(excluded.nodes, nodes)",
                (name, address, nodes),
            )
            database.execute("INSERT OR IGNORE INTO certificates VALUES (?, ?)", (name, certificate))

    def remove_peer(self, name: str, certificate: str | None = None) -> None:
        """Forget a peer, or only one of its certificates."""
        with self._write() as database:
            if certificate is None:
                done = database.execute("DELETE FROM peers WHERE name = ?", (name,))
            else:
                done = database.execute("DELETE FROM certificates WHERE peer = ? AND pem = ?", (name, certificate))
            if done.rowcount == 0:
                raise AgentError(f"{name}: no such peer; `manela agent peer list` names them")

    def peers(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Address and certificates of each peer."""
        found: dict[str, tuple[str, tuple[str, ...]]] = {
            name: (address, ()) for name, address in self._read("SELECT name, address FROM peers ORDER BY name")
        }
        for name, pem in self._read("SELECT peer, pem FROM certificates ORDER BY rowid"):
            if name in found:  # it may have been removed just now
                found[name] = (found[name][0], (*found[name][1], pem))
        return found

    def sizes(self) -> dict[str, int]:
        """How many nodes each peer has, where that was written down."""
        return dict(self._read("SELECT name, nodes FROM peers WHERE nodes IS NOT NULL"))

    # edges

    def add_edges(self, edges: Iterable[Edge]) -> int:
        """Keep edges, all or none; returns how many. The weight of one that is there changes."""
        rows = [(edge.own, *(edge.other or ("", "")), edge.weight) for edge in edges]
        with self._write() as database:
            database.executemany("INSERT OR REPLACE INTO edges VALUES (?, ?, ?, ?)", rows)
        return len(rows)

    def remove_edge(self, edge: Edge, host: str) -> int:
        """Forget an edge, or for one without an other end the node with all its edges; returns how many there were.

        The nodes of an edge that is forgotten stay, alone if need be.
        """
        with self._write() as database:
            if edge.other is None:
                done = database.execute(
                    "DELETE FROM edges WHERE own = ? OR (other = ? AND host = ?)", (edge.own, edge.own, host)
                )
                return done.rowcount
            ends = [(edge.own, *edge.other)]
            if edge.other[1] == host:
                ends.append((edge.other[0], edge.own, host))
            done = database.executemany("DELETE FROM edges WHERE own = ? AND other = ? AND host = ?", ends)
            if done.rowcount:
                for name, *_ in ends:
                    database.execute(
                        "INSERT INTO edges SELECT ?, '', '', 1.0 WHERE NOT EXISTS "
                        "(SELECT 1 FROM edges WHERE own = ? OR (other = ? AND host = ?))",
                        (name, name, name, host),
                    )
            return done.rowcount

    def edges(self) -> Iterator[Edge]:
        """All edges, one by one."""
        try:
            for own, other, host, weight in self._database.execute("SELECT own, other, host, weight FROM edges"):
                yield Edge(own, (other, host) if host else None, weight)
        except sqlite3.Error as error:
            raise AgentError(f"{self.file}: cannot be read: {error}") from error

    # what was refused

    def audit(self, refusals: Iterable[tuple[str, str, str]]) -> None:
        """Write refusals down, each with its peer, reason and detail; the oldest make room."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        rows = [(now, *refusal) for refusal in refusals]
        with self._write() as database:
            database.executemany("INSERT INTO audit (time, peer, reason, detail) VALUES (?, ?, ?, ?)", rows)
            database.execute("DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?", (_MOST_AUDITED,))

    def audited(self, most: int = 100) -> list[tuple[str, str, str, str]]:
        """The latest refusals: time, peer, reason, detail."""
        return self._read("SELECT time, peer, reason, detail FROM audit ORDER BY id DESC LIMIT ?", most)

    # vectors

    @property
    def vectors_file(self) -> Path:
        """The file of vectors."""
        return self.folder / "vectors.npz"

    def save(self, saved: Saved) -> None:
        """Keep vectors; those before stay until the new ones are whole."""
        notes = {
            "format": VERSION, "round": saved.round, "version": saved.version, "pairs": saved.pairs,
            "falls_at": saved.falls_at,
        }  # fmt: skip
        if self._names is not saved.names:
            self._names, self._lines = saved.names, np.frombuffer("\n".join(saved.names).encode(), np.uint8)
        arrays: dict[str, Any] = {"names": self._lines, "vectors": saved.vectors}
        if saved.smoothed is not None and saved.whole is not None:
            arrays |= {"smoothed": saved.smoothed, "whole": saved.whole.astype(np.uint8)}
        with replace_file(self.vectors_file) as file:
            write_arrays(file, arrays, notes, "host")

    def load(self) -> Saved | None:
        """The vectors kept, None where there are none yet."""
        if not self.vectors_file.exists():
            return None
        try:
            arrays, notes = read_arrays(self.vectors_file, "host")
            vectors = arrays["vectors"]
            if notes["format"] != VERSION:
                raise AgentError(f"{self.vectors_file}: must be of version {VERSION}, got {notes['format']}")
            names = arrays["names"].tobytes().decode().split("\n")
            if vectors.ndim != 3 or vectors.dtype != np.float32 or len(vectors) != len(names):
                raise AgentError(f"{self.vectors_file}: does not hold a vector for each name")
            smoothed, whole = arrays.get("smoothed"), arrays.get("whole")
            if smoothed is not None and (
                whole is None or smoothed.shape != vectors[:, 0].shape or len(whole) != len(names)
            ):
                raise AgentError(f"{self.vectors_file}: does not hold a smoothed vector for each name")
            return Saved(
                names, vectors, int(notes["round"]), int(notes["version"]), int(notes["pairs"]), notes["falls_at"],
                smoothed, None if whole is None else whole.astype(bool),
            )  # fmt: skip
        except FormatError as error:
            raise AgentError(f"{error}; restore it from a backup, or remove it to begin anew") from error
        except (KeyError, TypeError, ValueError) as error:
            raise AgentError(f"{self.vectors_file}: is damaged: {error!r}") from error

    def _read(self, statement: str, *values: Any) -> list[Any]:
        try:
            return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise AgentError(f"{self.file}: cannot be read: {error}") from error

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """All of a block or nothing of it."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise OutputError(f"{self.file}: cannot be written: {error}") from error


def read_edges(path: Path, host: str) -> list[Edge]:
    """Edges of a CSV file: `own node, other node@host, weight`; without `@host` the other is an own node too.

    A line with one field is a node without edges. `#` begins a comment; the weight is 1 unless given.
    """
    edges = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, fields in enumerate(csv.reader(file, skipinitialspace=True, strict=True), 1):
                if fields and not fields[0].startswith("#"):
                    edges.append(parse_edge([one.strip() for one in fields], host, f"{path}, line {number}"))
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"{path}: must be CSV in UTF-8: {error}") from error
    return edges


def parse_edge(fields: list[str], host: str, source: str) -> Edge:
    """An edge of one to three fields."""
    if not 1 <= len(fields) <= 3:
        raise FormatError(f"{source}: must be `own node, other node@host, weight`, got {len(fields)} fields")
    own, other, weight = [*fields, "", ""][:3]
    name, at, where = other.rpartition("@")
    node: Node | None = (name, where) if at else (other, host)
    if other == "":
        node = None
    for one in (own, *((node[0],) if node else ())):
        if not is_name(one):
            raise FormatError(f"{source}: a name must be 1 to 256 bytes of printable text, got {one[:50]!r}")
    if node and at:
        check_host_name(where)
    try:
        number = float(weight) if weight else 1.0
    except ValueError:
        raise FormatError(f"{source}: a weight must be a number, got {weight[:50]!r}") from None
    if not LEAST_WEIGHT <= number <= MOST_WEIGHT:
        raise FormatError(f"{source}: a weight must be {WEIGHT_RULE}, got {weight[:50]!r}")
    return Edge(own, node, number)


def read_numbers(path: Path) -> dict[Node, int]:
    """Numbers of nodes for a lock-step run: lines `name@host,number`."""
    found: dict[Node, int] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            node, _, number = line.rpartition(",")
            name, _, host = node.rpartition("@")
            found[name, host] = int(number)
    except (OSError, ValueError) as error:
        raise AgentError(f"{path}: lock-step needs lines `name@host,number` there: {error}") from error
    return found
