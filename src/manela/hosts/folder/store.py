"""Store: the SQLite database in which a host keeps its nodes, edges, peers and refusals.

It holds a digest of everything that the operator entered, so that a damaged file is detected.
"""

from __future__ import annotations

import datetime
import hashlib
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from manela.errors import AgentError, OutputError
from manela.hosts.folder.config import FILE, describe_missing, read_config
from manela.hosts.folder.schema import COLUMNS, FACTS, HASH_KEY, HOST, SCHEMA, SECRET, UPGRADES, VERSION
from manela.hosts.folder.tombstones import Hasher, Tombstones
from manela.hosts.state.names import check_host_name
from manela.hosts.state.neighbourhood import Edge
from manela.system.files import create_private
from manela.system.threads import Closable

__all__ = ["BACKUP", "HOST", "NAME", "SECRET", "Added", "Store", "is_erased", "name_backup"]

NAME, BACKUP = "store.db", "backup.tar"
"""The database file, and the backup that a daemon writes when entries, key or configuration have changed."""
_DIGEST = "digest"
_MOST_AUDITED = 100_000
"""Refusals kept of all peers; more take disk space."""
_MOST_AUDITED_OF_ONE = 5_000
"""Refusals kept of one peer; with more, a peer that floods would push out those of others."""
_DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises if a file is damaged or is not a database."""


class Added(NamedTuple):
    """Counts of edges: those that were added, and those left out because a node of theirs was erased."""

    edges: int
    erased: int


class Store(Closable):
    """A host's store in a home; close it with `close`, or use it in a `with` block.

    Another process may write to the store at the same time; `changes` shows that. Threads that share a Store wait for
    each other, so a thread that must not wait needs a separate Store. With `create`, the name of a host, a missing
    store is created.
    """

    def __init__(self, home: Path, create: str | None = None) -> None:
        self.home, self.file = home, home / NAME
        if create is None and not self.file.exists():
            if (home / FILE).exists():
                raise AgentError(f"{self.file}: is missing; {name_backup(home)}")
            raise AgentError(describe_missing(home))
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
            raise AgentError(f"{self.file}: cannot be used: {error}; {name_backup(home)}") from error

    def _open(self, create: str | None) -> None:
        """Prepare the database, and create or upgrade its tables if necessary."""
        database = self._database
        database.execute("PRAGMA foreign_keys = ON")
        database.execute("PRAGMA recursive_triggers = ON")  # so that replacing a row fires its delete trigger
        database.execute("PRAGMA secure_delete = ON")  # so that no page keeps the names that were removed
        version = database.execute("PRAGMA user_version").fetchone()[0]
        database.execute("PRAGMA journal_mode = WAL")  # so that writers do not block readers
        database.execute("PRAGMA synchronous = FULL")
        if create is not None and version == 0:
            database.executescript(f"BEGIN; {SCHEMA} COMMIT;")
            version = VERSION
            database.execute("INSERT INTO meta VALUES (?, '0')", (_DIGEST,))
        elif version in UPGRADES:
            self._upgrade(version)
            self.scrub()  # older versions have left deleted rows in the file
            version = VERSION
        if version > VERSION:
            raise AgentError(
                f"{self.file}: has version {version}, but this program reads versions up to {VERSION}; update "
                f"manela or, if the file is damaged, {name_backup(self.home)}"
            )
        if version != VERSION:
            raise AgentError(f"{self.file}: is damaged: it is empty or not a store; {name_backup(self.home)}")
        self._watch_rows()
        if create is not None and self.get(HOST) is None:
            self.put(HOST, create)

    def _watch_rows(self) -> None:
        """Create triggers that update the digest for every row inserted, changed or deleted by this connection."""
        database = self._database
        database.create_function("manela_tally", -1, self._count_row)
        for table, columns in COLUMNS.items():
            for event, row, sign in (("INSERT", "NEW", 1), ("DELETE", "OLD", -1)):
                values = ", ".join(f"{row}.{column}" for column in columns)
                condition = f"WHEN {row}.{FACTS}" if table == "meta" else ""
                database.execute(
                    f"CREATE TEMP TRIGGER {table}_{event} AFTER {event} ON main.{table} {condition} "
                    f"BEGIN SELECT manela_tally({sign}, '{table}', {values}); END"
                )
            before, after = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
            condition = f"WHEN NEW.{FACTS}" if table == "meta" else ""
            database.execute(
                f"CREATE TEMP TRIGGER {table}_UPDATE AFTER UPDATE ON main.{table} {condition} BEGIN "
                f"SELECT manela_tally(-1, '{table}', {before}); SELECT manela_tally(1, '{table}', {after}); END"
            )

    def _count_row(self, sign: int, *row: Any) -> None:
        """Add a row to the digest, or subtract it; called by triggers."""
        self._tally += sign * _hash(row)

    def _upgrade(self, version: int) -> None:
        """Upgrade a store of an older version; a copy of the old one is kept beside it."""
        tables = {name for (name,) in self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        columns = {row[1] for row in self._database.execute("PRAGMA table_info(peers)")}
        if ("nodes" in columns, "nodes" in tables, "erased" in tables) != (version > 1, version > 2, False):
            raise AgentError(
                f"{self.file}: is damaged: it claims version {version}, but has the tables of another; "
                f"{name_backup(self.home)}"
            )
        host = read_config(self.home / FILE).name
        path = self.home / f"store-{version}.db"
        create_private(path)
        with closing(sqlite3.connect(path)) as copy:
            self._database.backup(copy)
        with self.write() as database:
            database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (HOST, host))
            for step in range(version, VERSION):
                for statement in filter(str.strip, UPGRADES[step].split(";")):
                    database.execute(statement)
            database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_DIGEST, f"{self._find_digest():x}"))

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    @property
    def changes(self) -> int:
        """A number that changes when another connection has written."""
        return int(self.read("PRAGMA data_version")[0][0])

    @property
    def digest(self) -> str:
        """The digest of everything that the operator entered."""
        return self.get(_DIGEST) or ""

    def check(self) -> None:
        """Refuse a store that is damaged."""
        try:
            with self._lock:
                # unlike quick_check, integrity_check also verifies the indices
                problems = [problem for (problem,) in self._database.execute("PRAGMA integrity_check(5)")]
                self._database.execute("BEGIN")
                try:
                    digest_matches = f"{self._find_digest():x}" == self.digest
                finally:
                    self._database.execute("ROLLBACK")
        except (*_DAMAGE, AgentError) as error:
            raise AgentError(f"{self.file}: is damaged: {error}; {name_backup(self.home)}") from error
        if problems != ["ok"]:
            raise AgentError(f"{self.file}: is damaged: {problems[0]}; {name_backup(self.home)}")
        if not digest_matches:
            raise AgentError(
                f"{self.file}: is damaged, or was changed by another program: its nodes, edges or peers do not match "
                f"its digest; {name_backup(self.home)}"
            )

    def _find_digest(self) -> int:
        """Return the digest over all edges, peers and values, from the rows themselves."""
        total = 0
        for table, columns in COLUMNS.items():
            rows = f"SELECT '{table}', {', '.join(columns)} FROM {table}" + f" WHERE {FACTS}" * (table == "meta")
            for row in self._database.execute(rows):
                total += _hash(row)
        return total % 2**128

    def scrub(self) -> None:
        """Write the file anew, so that it holds nothing but the rows that are there."""
        try:
            with self._lock:
                self._database.execute("VACUUM")
                self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except _DAMAGE as error:
            raise OutputError(f"{self.file}: cannot be written: {error}") from error

    def copy_to(self, path: Path) -> None:
        """Write a consistent copy, even while others write to the store."""
        create_private(path)
        try:
            with closing(sqlite3.connect(path)) as copy:
                self._database.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
        except _DAMAGE as error:
            raise OutputError(f"{path}: cannot be written: {error}") from error

    # named values in `meta`

    def get(self, name: str) -> str | None:
        """Return a value, or None if it is not set."""
        rows = self.read("SELECT value FROM meta WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    def put(self, name: str, value: str) -> None:
        """Set a value."""
        with self.write() as database:
            database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    # hashed names

    def hasher(self) -> Hasher:
        """Return what hashes names with the key of this store, which is made when it is first needed."""
        if self.get(HASH_KEY) is None:
            with self.write() as database:
                database.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (HASH_KEY, secrets.token_hex(32)))
        return Hasher((self.get(HASH_KEY) or "").encode(), self.get(HOST) or "")

    def tombstones(self) -> Tombstones:
        """Return the nodes that were erased here."""
        hashes = [value for (value,) in self.read("SELECT hash FROM erased")]
        return Tombstones(self.hasher() if hashes else Hasher(b"", ""), hashes)

    # peers

    def add_peer(self, name: str, address: str, certificate: str, nodes: int | None = None) -> None:
        """Add a peer; a known peer gets the new address, and the certificate in addition to those it has.

        `nodes` is the number of nodes for which the peer counts at most; None leaves it unchanged.
        """
        check_host_name(name)
        with self.write() as database:
            owner = database.execute("SELECT peer FROM certificates WHERE pem = ?", (certificate,)).fetchone()
            if owner and owner[0] != name:
                raise AgentError(f"this certificate already belongs to {owner[0]}; a host has one name")
            database.execute(
                "INSERT INTO peers VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET address = excluded.address, "
                "nodes = coalesce(excluded.nodes, nodes)",
                (name, address, nodes),
            )
            database.execute("INSERT OR IGNORE INTO certificates VALUES (?, ?)", (name, certificate))

    def change_peer(self, name: str, address: str | None, nodes: int | None) -> None:
        """Change the address of a known peer, or for how many nodes it counts; None leaves either unchanged."""
        with self.write() as database:
            changed = database.execute(
                "UPDATE peers SET address = coalesce(?, address), nodes = coalesce(?, nodes) WHERE name = ?",
                (address, nodes, name),
            )
            if changed.rowcount == 0:
                raise AgentError(
                    f"{name}: is not a peer; add it with the line that `manela agent invite` printed there, "
                    "or with NAME ADDRESS CERT"
                )

    def remove_peer(self, name: str) -> int:
        """Delete a peer with its certificates and edges; return how many edges there were.

        Its refusals stay, as evidence. Nodes that it was to forget are no longer named.
        """
        with self.write() as database:
            if database.execute("DELETE FROM peers WHERE name = ?", (name,)).rowcount == 0:
                raise AgentError(f"{name}: is not a peer; see `manela agent peer list`")
            unnamed = database.execute("UPDATE erasures SET name = '' WHERE peer = ? AND name != ''", (name,)).rowcount
            edges = database.execute("DELETE FROM edges WHERE host = ?", (name,)).rowcount
        if unnamed:
            self.scrub()
        return edges

    def remove_certificate(self, name: str, certificate: str) -> None:
        """Delete one of a peer's certificates."""
        with self.write() as database:
            cursor = database.execute("DELETE FROM certificates WHERE peer = ? AND pem = ?", (name, certificate))
            if cursor.rowcount == 0:
                raise AgentError(f"{name}: has no such certificate; see `manela agent peer list`")

    def peers(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Return the address and certificates of each peer."""
        peers: dict[str, tuple[str, tuple[str, ...]]] = {
            name: (address, ()) for name, address in self.read("SELECT name, address FROM peers ORDER BY name")
        }
        for name, pem in self.read("SELECT peer, pem FROM certificates ORDER BY rowid"):
            if name in peers:  # another process may have changed the peers between the two queries
                peers[name] = (peers[name][0], (*peers[name][1], pem))
        return peers

    def sizes(self) -> dict[str, int]:
        """Return the number of nodes of each peer for which the operator has entered it."""
        return dict(self.read("SELECT name, nodes FROM peers WHERE nodes IS NOT NULL"))

    # nodes and edges

    def add_edges(self, edges: Iterable[Edge]) -> Added:
        """Add edges with their nodes, all or none; an existing edge gets the new weight.

        An edge without other end adds a single node. Edges of nodes that were erased are left out.
        """
        given, host = list(edges), self.get(HOST) or ""
        with self.write() as database:
            erased = self.tombstones()
            new = [edge for edge in given if not (erased and is_erased(edge, erased, host))]
            names = {edge.own for edge in new} | {edge.other[0] for edge in new if edge.other and edge.other[1] == host}
            rows = [(edge.own, *edge.other, edge.weight) for edge in new if edge.other is not None]
            database.executemany("INSERT OR IGNORE INTO nodes (name) VALUES (?)", ((name,) for name in sorted(names)))
            database.executemany("INSERT OR REPLACE INTO edges VALUES (?, ?, ?, ?)", rows)
        return Added(len(new), len(given) - len(new))

    def remove_edge(self, edge: Edge) -> int:
        """Delete an edge, or all edges of a node if the edge has no other end; return how many there were.

        Nodes stay.
        """
        with self.write() as database:
            if edge.other is None:
                return self.remove_edges_of(database, edge.own)
            ends = [(edge.own, *edge.other)]
            if edge.other[1] == self.get(HOST):
                ends.append((edge.other[0], edge.own, edge.other[1]))
            return database.executemany("DELETE FROM edges WHERE own = ? AND other = ? AND host = ?", ends).rowcount

    def remove_node(self, name: str) -> int:
        """Delete a node with all its edges; return how many edges there were."""
        with self.write() as database:
            if database.execute("DELETE FROM nodes WHERE name = ?", (name,)).rowcount == 0:
                raise AgentError(f"{name}: is not a node of this host")
            return self.remove_edges_of(database, name)

    def remove_edges_of(self, database: sqlite3.Connection, name: str) -> int:
        """Remove all edges of an own node within a transaction; return how many there were."""
        cursor = database.execute(
            "DELETE FROM edges WHERE own = ? OR (other = ? AND host = ?)", (name, name, self.get(HOST))
        )
        return cursor.rowcount

    def nodes(self) -> set[str]:
        """Return the names of all own nodes."""
        return {name for (name,) in self.read("SELECT name FROM nodes")}

    def private(self) -> set[str]:
        """Return the names of own nodes that are never shown to peers."""
        return {name for (name,) in self.read("SELECT name FROM nodes WHERE private")}

    def edges(self, peer: str | None = None) -> Iterator[Edge]:
        """Yield the edges with a peer, or by default all edges, with nodes without edges as edges without other end."""
        if peer is None:
            yield from self._stream(
                "SELECT name, '', '', 1.0 FROM nodes WHERE NOT EXISTS (SELECT 1 FROM edges WHERE own = name) "
                "AND NOT EXISTS (SELECT 1 FROM edges WHERE other = name AND host = ?)", self.get(HOST)
            )  # fmt: skip
        yield from self._stream(
            "SELECT own, other, host, weight FROM edges WHERE ?1 IS NULL OR host = ?1 ORDER BY own, host, other", peer
        )

    def _stream(self, statement: str, *values: Any) -> Iterator[Edge]:
        """Yield the edges that a statement selects, without holding all of them."""
        try:
            with self._lock:
                for own, other, host, weight in self._database.execute(statement, values):
                    yield Edge(own, (other, host) if host else None, weight)
        except _DAMAGE as error:
            raise AgentError(f"{self.file}: cannot be read: {error}; {name_backup(self.home)}") from error

    # refusals

    def audit(
        self,
        refusals: Iterable[tuple[str, str, str]],
        most: int = _MOST_AUDITED,
        most_of_one: int = _MOST_AUDITED_OF_ONE,
    ) -> None:
        """Record refusals, each with its peer, reason and detail, and delete the oldest beyond the limits.

        Each peer has a separate limit, so that none can push out the refusals of others.
        """
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
        rows = [(now, *refusal) for refusal in refusals]
        with self.write() as database:
            database.executemany("INSERT INTO audit (time, peer, reason, detail) VALUES (?, ?, ?, ?)", rows)
            for peer in {row[1] for row in rows}:
                database.execute(
                    "DELETE FROM audit WHERE peer = ?1 AND id <= coalesce((SELECT id FROM audit WHERE peer = ?1 "
                    "ORDER BY id DESC LIMIT 1 OFFSET ?2), -1)",
                    (peer, most_of_one),
                )
            database.execute(
                "DELETE FROM audit WHERE id <= coalesce((SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET ?), -1)",
                (most,),
            )

    def audited(self, most: int = 100) -> list[tuple[str, str, str, str]]:
        """Return the latest refusals: time, peer, reason, detail."""
        return self.read("SELECT time, peer, reason, detail FROM audit ORDER BY id DESC LIMIT ?", most)

    def read(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows that a statement selects."""
        try:
            with self._lock:
                return self._database.execute(statement, values).fetchall()
        except _DAMAGE as error:
            raise AgentError(f"{self.file}: cannot be read: {error}; {name_backup(self.home)}") from error

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run a block as one transaction that also updates the digest; threads take turns on the connection."""
        with self._lock:
            yield from self._write_alone()

    def _write_alone(self) -> Iterator[sqlite3.Connection]:
        """Within this block, write in one transaction that no other process shares, and update the digest."""
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


def is_erased(edge: Edge, erased: Tombstones, host: str) -> bool:
    """Return whether an end of an edge was erased."""
    return erased.cover(edge.own, host) or (edge.other is not None and erased.cover(*edge.other))


def name_backup(home: Path) -> str:
    """Return the advice to give for a damaged store."""
    if (home / BACKUP).exists():
        return f"restore the last good one with `manela agent restore {home / BACKUP} --home {home}`"
    return f"restore a backup with `manela agent restore FILE --home {home}`"


def _hash(row: tuple[Any, ...]) -> int:
    """Return a 128-bit hash of a row; the digest is the sum over rows, so their order does not matter."""
    return int.from_bytes(hashlib.blake2b(repr(row).encode(errors="surrogatepass"), digest_size=16).digest(), "big")
