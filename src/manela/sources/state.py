"""ImportState: keeps the progress and the edges of a source in SQLite, and rolls back what is not committed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import OutputError, SourceError
from manela.sources.edges import BATCH, Edges
from manela.system.files import create_private
from manela.system.threads import Closable

Numbers = npt.NDArray[np.uint64]

PATIENCE = 10.0
"""Seconds to wait for another import with the same state; more wait longer before the error."""
_VERSION = 1
_SCHEMA = f"""
CREATE TABLE marks (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE ties (
    own TEXT NOT NULL, other TEXT NOT NULL, weight REAL NOT NULL, turn INTEGER NOT NULL, PRIMARY KEY (own, other)
) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""
_KEY, _TURN, _SEEN = "key", "turn", "seen"


class ImportState(Closable):
    """The state that earlier imports of a source have left; use it in a `with` block.

    Without a path it starts empty, is discarded at the end, and callers do not keep edges in it. Without a key it may
    belong to any source, and should only be read. `keeps` says whether edges are kept between imports, so that a source
    may yield only new ones. Another import with the same state is waited for `patience` seconds. Edges and values with
    a name for which `leaves_out` is True are not stored, and `left_out` counts those edges.
    """

    def __init__(self, path: Path | None, key: str | None, patience: float = PATIENCE) -> None:
        self.path, self.keeps = path, path is not None
        self.leaves_out: Callable[[str], bool] | None = None
        self.left_out = 0
        if path is not None:
            create_private(path)
        try:
            self._database = sqlite3.connect(path or ":memory:", timeout=patience, isolation_level=None)
            try:
                self._open(key)
            except BaseException:
                self._database.close()
                raise
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _execute_many(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        try:
            self._database.executemany(statement, rows)
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _explain(self, error: sqlite3.Error) -> SourceError | OutputError:
        if "locked" in str(error):
            return SourceError(f"{self.path}: another import is using it; wait until it ends")
        if isinstance(error, sqlite3.OperationalError):
            return OutputError(f"{self.path}: cannot be written: {error}")
        return SourceError(f"{self.path}: cannot be used as the state of an import: {error}")

    def _open(self, key: str | None) -> None:
        """Create or check the tables, and hold the file until it is closed."""
        self._execute("PRAGMA secure_delete = ON")
        version = self._execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise SourceError(f"{self.path}: must be of version {_VERSION}, got {version}: update manela")
        self._execute("BEGIN IMMEDIATE")  # another import at the same time waits, and then fails
        if version == 0:
            if self._execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise SourceError(f"{self.path}: is another kind of database; use another file for the state")
            for statement in filter(str.strip, _SCHEMA.split(";")):
                self._execute(statement)
            self.put(_KEY, key)
        if key is not None and self.get(_KEY) != key:
            raise SourceError(
                f"{self.path}: is the state of another import ({self.get(_KEY)}; now it is {key}): use another file, "
                "or remove it to start again"
            )
        self._turn = self.get(_TURN, 0) + 1
        self.put(_TURN, self._turn)

    def close(self) -> None:
        """Roll back what was not committed, and close the file."""
        if self._database.in_transaction:
            self._execute("ROLLBACK")
        self._database.close()

    def commit(self) -> None:
        """Commit all changes since the last commit as one transaction."""
        self._execute("COMMIT")
        self._execute("BEGIN IMMEDIATE")

    def get(self, name: str, default: Any = None) -> Any:
        """Return a named value that a source has stored."""
        row = self._execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        return default if row is None else json.loads(row[0])

    def put(self, name: str, value: Any) -> None:
        """Store a named value, which must be serialisable as JSON."""
        if self.leaves_out is not None:
            value = _leave_out(value, self.leaves_out)
        self._execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (name, json.dumps(value)))

    def read_seen(self) -> Numbers:
        """Return the sorted digests of the messages that were counted."""
        row = self._execute("SELECT value FROM marks WHERE name = ?", (_SEEN,)).fetchone()
        return np.frombuffer(b"" if row is None else row[0], dtype=np.uint64)

    def keep_seen(self, digests: Numbers) -> None:
        """Store the sorted digests of all messages that were counted."""
        self._execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (_SEEN, digests.tobytes()))

    def continue_turn(self) -> None:
        """Continue the last reading, which was not finished, so that the edges it has stored count as current.

        For a source that commits while reading, because it takes hours.
        """
        self._turn -= 1
        self.put(_TURN, self._turn)

    def fade(self, factor: float) -> None:
        """Multiply the weights of all stored edges by a factor."""
        self._execute("UPDATE ties SET weight = weight * ?", (factor,))

    def add(self, batch: Edges, adds: bool) -> None:
        """Store edges; with `adds`, weights are added to those of earlier turns, otherwise they replace them.

        The weights of an edge that comes twice in one turn are always added.
        """
        weights = np.ones(len(batch.own)) if batch.weights is None else batch.weights
        kept = self._find_kept(batch)
        self.left_out += len(batch.own) - len(kept)
        old = "weight" if adds else "CASE turn WHEN excluded.turn THEN weight ELSE 0 END"
        self._execute_many(
            "INSERT INTO ties VALUES (?, ?, ?, ?) ON CONFLICT (own, other) DO UPDATE SET "
            f"weight = excluded.weight + {old}, turn = excluded.turn",
            (
                (str(batch.own[position]), str(batch.other[position]), float(weights[position]), self._turn)
                for position in kept
            ),
        )

    def _find_kept(self, batch: Edges) -> Sequence[int]:
        """Return the positions of the edges of a batch that are stored."""
        if self.leaves_out is None:
            return range(len(batch.own))
        ends = zip(batch.own, batch.other, strict=True)
        return [row for row, pair in enumerate(ends) if not any(self.leaves_out(str(name)) for name in pair)]

    def purge(self, is_purged: Callable[[str], bool]) -> int:
        """Delete what is stored of names for which `is_purged` is True; return how many entries changed."""
        self._database.create_function("manela_purges", 1, is_purged, deterministic=True)
        changed = self._execute("DELETE FROM ties WHERE manela_purges(own) OR manela_purges(other)").rowcount
        for name, text in self._execute("SELECT name, value FROM marks WHERE name != ?", (_SEEN,)).fetchall():
            kept = json.dumps(_leave_out(json.loads(text), is_purged))
            if kept != text:
                changed += self._execute("UPDATE marks SET value = ? WHERE name = ?", (kept, name)).rowcount
        return changed

    def scrub(self) -> None:
        """Commit, and write the file anew, so that it holds nothing but the rows that are there."""
        self._execute("COMMIT")
        self._execute("VACUUM")
        self._execute("BEGIN IMMEDIATE")

    def remove_old(self, adds: bool, least: float) -> list[tuple[str, str]]:
        """Delete edges below a weight and, unless `adds`, those that this turn has not seen; return them."""
        condition = "weight < ?" + ("" if adds else f" OR turn < {self._turn}")
        return self._execute(f"DELETE FROM ties WHERE {condition} RETURNING own, other", (least,)).fetchall()

    def read_edges(self) -> Iterator[Edges]:
        """Yield all stored edges in batches."""
        cursor = self._execute("SELECT own, other, weight FROM ties ORDER BY own, other")
        while rows := cursor.fetchmany(BATCH):
            own, other, weights = zip(*rows, strict=True)
            yield Edges(own, other, np.array(weights))


def _leave_out(value: Any, is_left_out: Callable[[str], bool]) -> Any:
    """Return a value without the entries that hold a name to leave out: the innermost list or object goes with it."""
    if isinstance(value, dict):
        return {
            key: _leave_out(entry, is_left_out)
            for key, entry in value.items()
            if not is_left_out(key) and not _holds(entry, is_left_out)
        }
    if isinstance(value, list | tuple):
        return [_leave_out(entry, is_left_out) for entry in value if not _holds(entry, is_left_out)]
    return value


def _holds(entry: Any, is_left_out: Callable[[str], bool]) -> bool:
    """Return whether an entry is a name to leave out, or a list or object with such a name directly in it."""
    if isinstance(entry, dict):
        return any(isinstance(text, str) and is_left_out(text) for pair in entry.items() for text in pair)
    names = entry if isinstance(entry, list | tuple) else (entry,)
    return any(isinstance(text, str) and is_left_out(text) for text in names)
