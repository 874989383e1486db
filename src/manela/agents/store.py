"""Store: what a host must not lose, in SQLite: its nodes and edges, its peers, and what was refused.

A digest of all that an operator wrote down is kept beside it, so that a damaged file is never taken for a true one.
"""

from __future__ import annotations

import datetime
import hashlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from manela.agents.config import FILE, read_config
from manela.agents.names import check_host_name
from manela.agents.neighbourhood import Edge
from manela.errors import AgentError, OutputError
from manela.private import create_private

NAME, BACKUP = "store.db", "backup.tar"
"""The file, and the backup that a daemon makes of what an operator wrote down, whenever that has changed."""
VERSION = 3
HOST, SECRET = "host", "secret"
"""Names of facts: the host's name, and from what it draws when it goes at its own pace."""
_DIGEST = "digest"
_MOST_AUDITED = 100_000
_MOST_AUDITED_OF_ONE = 5_000
"""Lines of one peer; with more, one that floods would push out what others did."""
_SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE peers (name TEXT PRIMARY KEY, address TEXT NOT NULL, nodes INTEGER) WITHOUT ROWID;
CREATE TABLE certificates (peer TEXT NOT NULL REFERENCES peers ON DELETE CASCADE, pem TEXT NOT NULL UNIQUE);
CREATE TABLE nodes (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE edges (
    own TEXT NOT NULL, other TEXT NOT NULL, host TEXT NOT NULL, weight REAL NOT NULL, PRIMARY KEY (own, other, host)
) WITHOUT ROWID;
CREATE INDEX edges_by_other ON edges (other, host);
CREATE TABLE audit (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, peer TEXT NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL
);
CREATE INDEX audit_by_peer ON audit (peer, id);
PRAGMA user_version = {VERSION};
"""
_UPGRADES = {
    1: "ALTER TABLE peers ADD COLUMN nodes INTEGER; PRAGMA user_version = 2;",
    2: """
CREATE TABLE nodes (name TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT OR IGNORE INTO nodes SELECT own FROM edges;
INSERT OR IGNORE INTO nodes SELECT other FROM edges WHERE host = (SELECT value FROM meta WHERE name = 'host');
DELETE FROM edges WHERE host = '';
CREATE INDEX edges_by_other ON edges (other, host);
CREATE INDEX audit_by_peer ON audit (peer, id);
PRAGMA user_version = 3;
""",
}
"""What makes a store of a version one of the next."""
_COLUMNS = {
    "peers": ("name", "address", "nodes"),
    "certificates": ("peer", "pem"),
    "nodes": ("name",),
    "edges": ("own", "other", "host", "weight"),
    "meta": ("name", "value"),
}
"""What the digest is over; of the facts, those that never change."""
_DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises where a file is no database, or a damaged one."""
_FACTS = f"name IN ('{HOST}', '{SECRET}')"


class Store:
    """A host's store in a folder; close it by `close`, or use it in a `with` block.

    Another process may write to it at the same time: `changes` tells. Threads wait for each other: one that must not
    wait for another's writing needs a Store of its own. `create` is the name of the host for which one is
    made where there is none.
    """

    def __init__(self, folder: Path, create: str | None = None) -> None:
        self.folder, self.file = folder, folder / NAME
        if create is None and not self.file.exists():
            raise AgentError(f"{folder}: holds no host; make one with `manela agent init`")
        create_private(self.file)
        if create is not None:
            self.file.chmod(0o600)
        self._tally, self._lock = 0, threading.RLock()
        try:
            self._database = sqlite3.connect(self.file, timeout=10.0, isolation_level=None, check_same_thread=False)
            try:
                self._open(create)
            except BaseException:
                self._database.close()
                raise
        except _DAMAGE as error:
            raise AgentError(f"{self.file}: cannot be used: {error}; {name_backup(folder)}") from error

    def _open(self, create: str | None) -> None:
        database = self._database
        database.execute("PRAGMA foreign_keys = ON")
        database.execute("PRAGMA recursive_triggers = ON")  # so that rows that are replaced are seen to go
        version = database.execute("PRAGMA user_version").fetchone()[0]
        database.execute("PRAGMA journal_mode = WAL")  # whoever writes keeps nobody from reading
        database.execute("PRAGMA synchronous = FULL")
        if create is not None and version == 0:
            database.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
            version = VERSION
            database.execute("INSERT INTO meta VALUES (?, '0')", (_DIGEST,))
        elif version in _UPGRADES:
            self._upgrade(version)
            version = VERSION
        if version != VERSION:
            raise AgentError(f"{self.file}: must be of version {VERSION}, got {version}: update manela, or this folder")
        self._watch_rows()
        if create is not None and self.get(HOST) is None:
            self.put(HOST, create)

    def _watch_rows(self) -> None:
        """Have every row that comes or goes by this connection added to the digest."""
        database = self._database
        database.create_function("manela_tally", -1, self._count_row)
        for table, columns in _COLUMNS.items():
            for event, row, sign in (("INSERT", "NEW", 1), ("DELETE", "OLD", -1)):
                values = ", ".join(f"{row}.{column}" for column in columns)
                condition = f"WHEN {row}.{_FACTS}" if table == "meta" else ""
                database.execute(
                    f"CREATE TEMP TRIGGER {table}_{event} AFTER {event} ON main.{table} {condition} "
                    f"BEGIN SELECT manela_tally({sign}, '{table}', {values}); END"
                )
            before, after = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
            condition = f"WHEN NEW.{_FACTS}" if table == "meta" else ""
            database.execute(
                f"CREATE TEMP TRIGGER {table}_UPDATE AFTER UPDATE ON main.{table} {condition} BEGIN "
                f"SELECT manela_tally(-1, '{table}', {before}); SELECT manela_tally(1, '{table}', {after}); END"
            )

    def _count_row(self, sign: int, *row: Any) -> None:
        self._tally += sign * _hash(row)

    def _upgrade(self, version: int) -> None:
        """Make the store of an older version one of this; a copy of it as it was stays beside it."""
        host = read_config(self.folder / FILE).name
        copy = self.folder / f"store-{version}.db"
        create_private(copy)
        with closing(sqlite3.connect(copy)) as other:
            self._database.backup(other)
        with self._write() as database:
            database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (HOST, host))
            for step in range(version, VERSION):
                for statement in filter(str.strip, _UPGRADES[step].split(";")):
                    database.execute(statement)
            database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_DIGEST, f"{self._find_digest():x}"))

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

    @property
    def digest(self) -> str:
        """Of all that an operator wrote down."""
        return self.get(_DIGEST) or ""

    def check(self) -> None:
        """Refuse a store that is damaged."""
        try:
            with self._lock:
                # what PRAGMA quick_check looks at, and the indices
                found = [words for (words,) in self._database.execute("PRAGMA integrity_check(5)")]
                self._database.execute("BEGIN")
                try:
                    same = f"{self._find_digest():x}" == self.digest
                finally:
                    self._database.execute("ROLLBACK")
        except (*_DAMAGE, AgentError) as error:
            raise AgentError(f"{self.file}: is damaged: {error}; {name_backup(self.folder)}") from error
        if found != ["ok"]:
            raise AgentError(f"{self.file}: is damaged: {found[0]}; {name_backup(self.folder)}")
        if not same:
            raise AgentError(
                f"{self.file}: is damaged, or was changed by another program: its nodes, edges or peers are not those "
                f"that were written down; {name_backup(self.folder)}"
            )

    def _find_digest(self) -> int:
        total = 0
        for table, columns in _COLUMNS.items():
            rows = f"SELECT '{table}', {', '.join(columns)} FROM {table}" + f" WHERE {_FACTS}" * (table == "meta")
            for row in self._database.execute(rows):
                total += _hash(row)
        return total % 2**128

    def copy_to(self, path: Path) -> None:
        """Write a whole copy, while others may go on writing here."""
        create_private(path)
        try:
            with closing(sqlite3.connect(path)) as other:
                self._database.backup(other)
                other.execute("PRAGMA journal_mode = DELETE")
        except _DAMAGE as error:
            raise OutputError(f"{path}: cannot be written: {error}") from error

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

    def remove_peer(self, name: str) -> tuple[int, int]:
        """Forget a peer: its certificates, the edges with its nodes, what it was refused; returns edges and lines."""
        with self._write() as database:
            if database.execute("DELETE FROM peers WHERE name = ?", (name,)).rowcount == 0:
                raise AgentError(f"{name}: no such peer; `manela agent peer list` names them")
            edges = database.execute("DELETE FROM edges WHERE host = ?", (name,)).rowcount
            return edges, database.execute("DELETE FROM audit WHERE peer = ?", (name,)).rowcount

    def remove_certificate(self, name: str, certificate: str) -> None:
        """Forget one of a peer's certificates."""
        with self._write() as database:
            done = database.execute("DELETE FROM certificates WHERE peer = ? AND pem = ?", (name, certificate))
            if done.rowcount == 0:
                raise AgentError(f"{name}: has no such certificate; `manela agent peer list` names them")

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

    # nodes and edges

    def add_edges(self, edges: Iterable[Edge]) -> int:
        """Keep edges with their nodes, all or none; returns how many. The weight of one that is there changes.

        An edge without an other end is a node.
        """
        found, host = list(edges), self.get(HOST)
        names = {edge.own for edge in found} | {edge.other[0] for edge in found if edge.other and edge.other[1] == host}
        rows = [(edge.own, *edge.other, edge.weight) for edge in found if edge.other is not None]
        with self._write() as database:
            database.executemany("INSERT OR IGNORE INTO nodes VALUES (?)", ((name,) for name in sorted(names)))
            database.executemany("INSERT OR REPLACE INTO edges VALUES (?, ?, ?, ?)", rows)
        return len(found)

    def remove_edge(self, edge: Edge) -> int:
        """Forget an edge, or for one without an other end all edges of the node; returns how many there were.

        Nodes stay.
        """
        with self._write() as database:
            if edge.other is None:
                return self._remove_edges_of(database, edge.own)
            ends = [(edge.own, *edge.other)]
            if edge.other[1] == self.get(HOST):
                ends.append((edge.other[0], edge.own, edge.other[1]))
            return database.executemany("DELETE FROM edges WHERE own = ? AND other = ? AND host = ?", ends).rowcount

    def remove_node(self, name: str) -> int:
        """Forget a node with all its edges; returns how many there were."""
        with self._write() as database:
            if database.execute("DELETE FROM nodes WHERE name = ?", (name,)).rowcount == 0:
                raise AgentError(f"{name}: no such node of this host")
            return self._remove_edges_of(database, name)

    def _remove_edges_of(self, database: sqlite3.Connection, name: str) -> int:
        done = database.execute(
            "DELETE FROM edges WHERE own = ? OR (other = ? AND host = ?)", (name, name, self.get(HOST))
        )
        return done.rowcount

    def has_node(self, name: str) -> bool:
        """Whether a node is there."""
        return bool(self._read("SELECT 1 FROM nodes WHERE name = ?", name))

    def edges(self, peer: str | None = None) -> Iterator[Edge]:
        """All edges, one by one, and the nodes that have none as edges without an other end; or those with a peer."""
        if peer is None:
            yield from self._stream(
                "SELECT name, '', '', 1.0 FROM nodes WHERE NOT EXISTS (SELECT 1 FROM edges WHERE own = name) "
                "AND NOT EXISTS (SELECT 1 FROM edges WHERE other = name AND host = ?)", self.get(HOST),
            )  # fmt: skip
        yield from self._stream(
            "SELECT own, other, host, weight FROM edges WHERE ?1 IS NULL OR host = ?1 ORDER BY own, host, other", peer
        )

    def _stream(self, statement: str, *values: Any) -> Iterator[Edge]:
        try:
            with self._lock:
                for own, other, host, weight in self._database.execute(statement, values):
                    yield Edge(own, (other, host) if host else None, weight)
        except _DAMAGE as error:
            raise AgentError(f"{self.file}: cannot be read: {error}; {name_backup(self.folder)}") from error

    # what was refused

    def audit(self, refusals: Iterable[tuple[str, str, str]]) -> None:
        """Write refusals down, each with its peer, reason and detail; the oldest make room.

        No peer has more than its share of lines, so that none can push out what others did.
        """
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        rows = [(now, *refusal) for refusal in refusals]
        with self._write() as database:
            database.executemany("INSERT INTO audit (time, peer, reason, detail) VALUES (?, ?, ?, ?)", rows)
            for peer in {row[1] for row in rows}:
                database.execute(
                    "DELETE FROM audit WHERE peer = ?1 AND id <= coalesce((SELECT id FROM audit WHERE peer = ?1 "
                    "ORDER BY id DESC LIMIT 1 OFFSET ?2), -1)",
                    (peer, _MOST_AUDITED_OF_ONE),
                )
            database.execute(
                "DELETE FROM audit WHERE id <= coalesce((SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET ?), -1)",
                (_MOST_AUDITED,),
            )

    def audited(self, most: int = 100) -> list[tuple[str, str, str, str]]:
        """The latest refusals: time, peer, reason, detail."""
        return self._read("SELECT time, peer, reason, detail FROM audit ORDER BY id DESC LIMIT ?", most)

    def _read(self, statement: str, *values: Any) -> list[Any]:
        try:
            with self._lock:
                return self._database.execute(statement, values).fetchall()
        except _DAMAGE as error:
            raise AgentError(f"{self.file}: cannot be read: {error}; {name_backup(self.folder)}") from error

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """All of a block or nothing of it; the digest goes with it. One thread at a time: they share a connection."""
        with self._lock:
            yield from self._write_alone()

    def _write_alone(self) -> Iterator[sqlite3.Connection]:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._tally = 0
            try:
                yield self._database
                if self._tally:
                    digest = f"{(int(self.digest or '0', 16) + self._tally) % 2**128:x}"
                    self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_DIGEST, digest))
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
        except _DAMAGE as error:
            raise OutputError(f"{self.file}: cannot be written: {error}") from error


def name_backup(folder: Path) -> str:
    """What to do about a store that is damaged."""
    if (folder / BACKUP).exists():
        return f"restore the last good one with `manela agent restore {folder / BACKUP} --home {folder}`"
    return f"restore a backup with `manela agent restore FILE --home {folder}`"


def _hash(row: tuple[Any, ...]) -> int:
    """128 bits of a row; the digest is their sum, in whatever order rows come and go."""
    return int.from_bytes(hashlib.blake2b(repr(row).encode(errors="surrogatepass"), digest_size=16).digest(), "big")
