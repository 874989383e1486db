"""Erasure: removes nodes for good from a host's files, has peers forget them, and keeps their receipts."""

from __future__ import annotations

import re
import secrets
import sqlite3
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from manela.errors import AgentError, FormatError, ManelaError, SourceError, TooLargeError, TooSlowError
from manela.hosts.folder.audit import record, record_within, tell_time
from manela.hosts.folder.edges import purge_imports
from manela.hosts.folder.home import STARTS, TRACE, is_running, only_one
from manela.hosts.folder.schema import HASH_KEY, HOST
from manela.hosts.folder.store import BACKUP, Store
from manela.hosts.folder.tombstones import Hasher, show_hash
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.erasure import MOST_ERASED, Receipt
from manela.hosts.state.names import HOST_NAME, is_name
from manela.sources.state import PATIENCE

_LARGEST_LIST = 1 << 26
"""Most bytes of a file of names; larger ones take more memory."""
_MOST_OF_PEER = 100_000
"""Tombstones of one peer's nodes; more would let a peer take disk space."""
_PATIENCE_OF_PEER = 2.0
"""Seconds that a peer's request waits for an import; if larger, other peers' requests wait for longer."""
_LONGEST_DETAIL = 290
"""Letters from which a line of the audit may end in the middle of a name."""


class Erased(NamedTuple):
    """Counts of an erasure: nodes and edges removed, and messages to peers that wait to be sent."""

    nodes: int
    edges: int
    messages: int


def erase_nodes(home: Path, names: Iterable[str], must_exist: bool = True, patience: float = PATIENCE) -> Erased:
    """Remove nodes with their edges and vectors, and keep only hashes, by which they are never taken again.

    The names go from the store, its audit, the import states and the backup. Peers with edges to a node are asked to
    forget it. A running daemon drops the vectors itself, after its current round. An import that runs is waited for
    `patience` seconds; nothing is changed before it has ended.
    """
    erased = sorted(set(names))
    with Store(home) as store:
        hasher, present = store.hasher(), store.nodes()
        for name in erased:
            if must_exist and name not in present:
                raise AgentError(f"{name}: is not a node of this host")
        hashes = {name: hasher.hash(name, hasher.host) for name in erased}
        texts = {*erased, *(f"{name}@{hasher.host}" for name in erased)}
        purge_imports(home, lambda text: text.strip() in texts, patience=patience)
        was_shown = store.get(STARTS) is not None
        removed = edges = messages = 0
        with store.write() as database:
            for name, value in hashes.items():
                database.execute("INSERT OR IGNORE INTO erased VALUES (?, ?)", (value, hasher.host))
                if name in present:
                    messages += _ask_peers(database, name, value) if was_shown else 0
                    removed += database.execute("DELETE FROM nodes WHERE name = ?", (name,)).rowcount
                    edges += store.remove_edges_of(database, name)
            _conceal(database, hashes, hasher)
            shown = show_hash(hashes[erased[0]]) if len(erased) == 1 else f"{len(erased):,} names"
            action = "node removed" if must_exist else "nodes denied"
            record_within(database, action, f"{shown}: {removed:,} nodes and {edges:,} edges, {messages:,} messages")
        _remove_traces(home, store, erased)
    return Erased(removed, edges, messages)


def _ask_peers(database: sqlite3.Connection, name: str, value: str) -> int:
    """Have the peers asked that know of a node; a private node is known to none."""
    return database.execute(
        "INSERT OR REPLACE INTO erasures SELECT DISTINCT host, ?2, ?1, ?3, '', '' FROM edges "
        "WHERE own = ?1 AND host IN (SELECT name FROM peers) AND own IN (SELECT name FROM nodes WHERE private = 0)",
        (name, value, tell_time()),
    ).rowcount


def _remove_traces(home: Path, store: Store, names: Collection[str]) -> None:
    """Remove vectors, copies and backups that still have erased nodes."""
    if not is_running(home):
        with only_one(home):
            file = VectorsFile(home)
            saved = file.load()
            if saved is not None and not set(names).isdisjoint(saved.names):
                file.save(saved.keep({*saved.names} - set(names)))
    for copy in home.glob("store-*.db"):  # the store as it was before an upgrade
        copy.unlink(missing_ok=True)
    store.scrub()
    (home / BACKUP).unlink(missing_ok=True)  # the daemon writes it anew, at once or when it starts


def carry_tombstones(old: Path, new: Path) -> int:
    """Take the tombstones of a store that is replaced into the new one, and remove the nodes; return how many.

    A store that cannot be read has none to take; and hashes by another key cannot be compared.
    """
    rows, requests, host, key = [], [], None, None
    with suppress(ManelaError), Store(old) as store:
        host, key = store.get(HOST), store.get(HASH_KEY)
        rows = store.read("SELECT hash, host FROM erased")
        requests = store.read("SELECT peer, hash, name, asked, receipt, answered FROM erasures")
    with Store(new) as restored:
        if not rows or restored.get(HOST) != host:
            return 0
        if restored.get(HASH_KEY) not in (None, key):
            record(restored, "tombstones lost", "those of the replaced store have another key")
            return 0
        with restored.write() as database:
            database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (HASH_KEY, key))
            database.executemany("INSERT OR IGNORE INTO erased VALUES (?, ?)", rows)
            database.executemany("INSERT OR REPLACE INTO erasures VALUES (?, ?, ?, ?, ?, ?)", requests)
        return _bury(new, restored)


def _bury(home: Path, store: Store) -> int:
    """Remove what a store and its import states have of nodes with tombstones; return how many own nodes."""
    tombstones, hasher = store.tombstones(), store.hasher()
    names = {name for name in store.nodes() if tombstones.cover(name, hasher.host)}
    others = {edge.other for edge in store.edges() if edge.other is not None and tombstones.cover(*edge.other)}
    purge_imports(home, tombstones.cover_text)
    hashes = {name: hasher.hash(name, hasher.host) for name in sorted(names)}
    hashes |= {f"{name}@{host}": hasher.hash(name, host) for name, host in sorted(others) if host != hasher.host}
    with store.write() as database:
        for name in names:
            database.execute("DELETE FROM nodes WHERE name = ?", (name,))
            store.remove_edges_of(database, name)
        database.executemany("DELETE FROM edges WHERE other = ? AND host = ?", others)
        _conceal(database, hashes, hasher)
    store.scrub()
    file = VectorsFile(home)
    saved = file.load()
    if saved is not None and not names.isdisjoint(saved.names):
        file.save(saved.keep({*saved.names} - names))
    return len(names)


def find_leftovers(home: Path) -> list[Path]:
    """Return what is in a home that may still hold erased names, and that only its operator should remove."""
    return sorted(path for path in (*home.glob("before-restore-*"), home / TRACE) if path.exists())


def _conceal(database: sqlite3.Connection, hashes: dict[str, str], hasher: Hasher) -> int:
    """Replace names in the audit by their hashes, within a transaction; return how many lines changed.

    The keys are names of own nodes, or nodes of peers as `name@host`.
    """
    changed = 0
    for table in ("audit", "actions"):
        lines = database.execute(f"SELECT id, detail FROM {table}").fetchall()
        text = "\0".join(detail for _, detail in lines)
        for name, value in hashes.items():
            if name in text:
                pattern = rf"(?<!\w){re.escape(name)}(@{re.escape(hasher.host)})?(?!\w)"
                text = re.sub(pattern, show_hash(value), text)
        for (number, before), after in zip(lines, text.split("\0") if lines else (), strict=True):
            detail = _replace_end(after, hashes) if len(before) >= _LONGEST_DETAIL else after
            if detail != before:
                changed += database.execute(f"UPDATE {table} SET detail = ? WHERE id = ?", (detail, number)).rowcount
    return changed


def _replace_end(detail: str, hashes: dict[str, str]) -> str:
    """Replace a name that is cut off at the end of a long line."""
    for name, value in hashes.items():
        lengths = (length for length in range(len(name) - 1, 3, -1) if detail.endswith(name[:length]))
        if length := next(lengths, 0):
            return detail[:-length] + show_hash(value)
    return detail


def read_names(path: Path) -> list[str]:
    """Read a list of names, one a line, from a file or with `-` from stdin; `#` begins a comment."""
    shown = "stdin" if str(path) == "-" else str(path)
    try:
        if str(path) == "-":
            content = _read_bounded(sys.stdin.buffer, shown)
        else:
            with path.open("rb") as file:
                content = _read_bounded(file, shown)
        lines = content.decode("utf-8-sig").splitlines()
    except OSError as error:
        raise FormatError(f"{shown}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{shown}: must be text in UTF-8: {error}") from error
    names = []
    for number, line in enumerate(lines, 1):
        name = line.strip()
        if not name or name.startswith("#"):
            continue
        if not is_name(name):
            raise FormatError(
                f"{shown}, line {number}: a name must be 1 to 256 bytes of printable text, got {name[:50]!r}"
            )
        names.append(name)
    return names


def _read_bounded(file: BinaryIO, shown: str) -> bytes:
    """Return what a file holds, or refuse one that is too large."""
    content = file.read(_LARGEST_LIST + 1)
    if len(content) > _LARGEST_LIST:
        raise FormatError(f"{shown}: must have at most {_LARGEST_LIST:,} bytes")
    return content


def allow_node(store: Store, text: str) -> str:
    """Let an erased node be taken again; it is an own node, or one of a peer as `name@host`. Return its hash."""
    hasher = store.hasher()
    candidates = [hasher.hash(text, hasher.host), hasher.hash_text(text)]
    with store.write() as database:
        for value in candidates:
            if database.execute("DELETE FROM erased WHERE hash = ?", (value,)).rowcount:
                record_within(database, "node allowed", show_hash(value))
                return show_hash(value)
    raise AgentError(f"{text}: was not erased or denied here")


def show_node(store: Store, text: str) -> str:
    """Return the hash that stands for a node in logs; it is an own node, or one of another host as `name@host`."""
    name, _, where = text.rpartition("@")
    is_own = text in store.nodes() or not (name and HOST_NAME.fullmatch(where))
    return store.hasher().show(f"{text}@{store.hasher().host}" if is_own else text)


def make_private(store: Store, names: Sequence[str], is_private: bool) -> int:
    """Make nodes private, or public again; return how many peers are asked to forget them.

    Names that are not nodes yet become private nodes.
    """
    hasher, messages = store.hasher(), 0
    was_shown = store.get(STARTS) is not None
    with store.write() as database:
        erased, present = store.tombstones(), store.nodes()
        for name in names:
            if not is_name(name):
                raise AgentError(f"a name must be 1 to 256 bytes of printable text, got {name[:50]!r}")
            if erased.cover(name, hasher.host):
                raise AgentError(f"{name}: was erased; allow it first with `manela agent node allow`")
            if name not in present and not is_private:
                raise AgentError(f"{name}: is not a node of this host")
            database.execute("INSERT OR IGNORE INTO nodes (name) VALUES (?)", (name,))
            if is_private and was_shown:
                messages += _ask_peers(database, name, hasher.hash(name, hasher.host))
            database.execute("UPDATE nodes SET private = ? WHERE name = ?", (int(is_private), name))
        action = "nodes made private" if is_private else "nodes made public"
        shown = ", ".join(hasher.show(f"{name}@{hasher.host}") for name in names)
        record_within(database, action, f"{len(names):,}: {shown}")
    return messages


# what peers are asked to forget


class Request(NamedTuple):
    """A node that a peer was asked to forget, by its hash; without a receipt it has not answered yet."""

    asked: str
    peer: str
    shown: str
    receipt: str
    answered: str


def find_requests(store: Store) -> dict[str, list[str]]:
    """Return the names that each peer is still to forget, as many as one message may have."""
    waiting: dict[str, list[str]] = {}
    for peer, name in store.read("SELECT peer, name FROM erasures WHERE receipt = '' AND name != '' ORDER BY 1, 2"):
        if len(names := waiting.setdefault(peer, [])) < MOST_ERASED:
            names.append(name)
    return waiting


def keep_receipt(store: Store, peer: str, names: Sequence[str], receipt: Receipt) -> None:
    """Keep a peer's receipt in place of the names."""
    answered = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(receipt.time))
    with store.write() as database:
        database.executemany(
            "UPDATE erasures SET name = '', receipt = ?, answered = ? WHERE peer = ? AND name = ? AND receipt = ''",
            ((receipt.id, answered, peer, name) for name in names),
        )
        record_within(database, "receipt", f"{peer} has forgotten {len(names):,} nodes: {receipt.id}", f"peer {peer}")
    store.scrub()


def list_requests(store: Store) -> list[Request]:
    """Return what peers were asked to forget, the latest first."""
    rows = store.read("SELECT asked, peer, hash, receipt, answered FROM erasures ORDER BY asked DESC, peer, hash")
    return [Request(asked, peer, show_hash(value), receipt, answered) for asked, peer, value, receipt, answered in rows]


# what peers ask this host to forget


def forget_for_peer(
    home: Path,
    store: Store,
    peer: str,
    names: Sequence[str],
    most: int = _MOST_OF_PEER,
    patience: float = _PATIENCE_OF_PEER,
) -> Receipt:
    """Remove the edges with nodes of a peer, and do not take them again; return the receipt.

    At most `most` nodes of the peer are kept out, and an import that runs is waited for `patience` seconds.

    The daemon makes the backup anew, since the content of the store changes.
    """
    hasher = store.hasher()
    hashes = {f"{name}@{peer}": hasher.hash(name, peer) for name in names}
    receipt = Receipt(secrets.token_hex(16), int(time.time()))
    kept = {value for (value,) in store.read("SELECT hash FROM erased WHERE host = ?", peer)}
    if kept.issuperset(hashes.values()):  # as after a receipt that was lost
        record(store, "erasure", f"{len(names):,} nodes of {peer}, again; receipt {receipt.id}", f"peer {peer}")
        return receipt
    if len(kept | set(hashes.values())) > most:
        raise TooLargeError(f"{most:,} nodes of a peer may be erased")
    try:
        purged = purge_imports(home, lambda text: text.strip() in hashes, always=False, patience=patience)
    except SourceError:
        raise TooSlowError("an import is running; ask again later") from None
    with store.write() as database:
        database.executemany("INSERT OR IGNORE INTO erased VALUES (?, ?)", ((value, peer) for value in hashes.values()))
        edges = database.executemany(
            "DELETE FROM edges WHERE other = ? AND host = ?", ((name, peer) for name in names)
        ).rowcount
        concealed = _conceal(database, hashes, hasher)
        detail = f"{len(names):,} nodes of {peer}, with {edges:,} edges; receipt {receipt.id}"
        record_within(database, "erasure", detail, f"peer {peer}")
    if edges or purged or concealed:
        store.scrub()
    return receipt
