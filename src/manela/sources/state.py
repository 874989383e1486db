"""ImportState: how far a source was read, and what came of it, in SQLite; an import is kept whole or not at all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import OutputError, SourceError
from manela.private import create_private
from manela.sources.ties import BATCH, Ties

Numbers = npt.NDArray[np.uint64]

PATIENCE = 10.0
"""Seconds for which another import with the same state is waited for."""
_VERSION = 1
_SCHEMA = f"""
CREATE TABLE marks (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE ties (
    own TEXT NOT NULL, other TEXT NOT NULL, weight REAL NOT NULL, turn INTEGER NOT NULL, PRIMARY KEY (own, other)
) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""
_KEY, _TURN, _SEEN = "key", "turn", "seen"


class ImportState:
    """What earlier imports of a source left; use it in a `with` block.

    Without a path it begins empty and is forgotten at the end, and edges are not kept in it. Without a key it is one of
    whatever source, to be looked at only.

    Attributes
    ----------
    keeps : bool
        Whether edges are kept, so that a source may yield only what is new.
    """

    def __init__(self, path: Path | None, key: str | None) -> None:
        self.path, self.keeps = path, path is not None
        if path is not None:
            create_private(path)
        try:
            self._database = sqlite3.connect(path or ":memory:", timeout=PATIENCE, isolation_level=None)
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
            return SourceError(f"{self.path}: another import is using it; wait until it has ended")
        if isinstance(error, sqlite3.OperationalError):
            return OutputError(f"{self.path}: cannot be written: {error}")
        return SourceError(f"{self.path}: cannot be used as the state of an import: {error}")

    def _open(self, key: str | None) -> None:
        version = self._execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise SourceError(f"{self.path}: must be of version {_VERSION}, got {version}: update manela")
        self._execute("BEGIN IMMEDIATE")  # whoever imports at the same time waits, and then gives up
        if version == 0:
            if self._execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise SourceError(f"{self.path}: is a database of another kind; name another file for the state")
            for statement in filter(str.strip, _SCHEMA.split(";")):
                self._execute(statement)
            self.put(_KEY, key)
        if key is not None and self.get(_KEY) != key:
            raise SourceError(
                f"{self.path}: is the state of another import ({self.get(_KEY)}; now it is {key}): use another file, "
                "or remove it to begin anew"
            )
        self._turn = self.get(_TURN, 0) + 1
        self.put(_TURN, self._turn)

    def __enter__(self) -> ImportState:
        return self

    def __exit__(self, *_: object) -> None:
        """Forget what was not committed."""
        if self._database.in_transaction:
            self._execute("ROLLBACK")
        self._database.close()

    def commit(self) -> None:
        """Keep all that was put, seen and added since the last time, whole."""
        self._execute("COMMIT")
        self._execute("BEGIN IMMEDIATE")

    def get(self, name: str, default: Any = None) -> Any:
        """A mark that a source left."""
        found = self._execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        return default if found is None else json.loads(found[0])

    def put(self, name: str, value: Any) -> None:
        """Leave a mark: whatever JSON can hold."""
        self._execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (name, json.dumps(value)))

    def read_seen(self) -> Numbers:
        """Digests of the messages that were counted, in order."""
        found = self._execute("SELECT value FROM marks WHERE name = ?", (_SEEN,)).fetchone()
        return np.frombuffer(b"" if found is None else found[0], dtype=np.uint64)

    def keep_seen(self, digests: Numbers) -> None:
        """Keep the digests of all messages that were counted, in order."""
        self._execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (_SEEN, digests.tobytes()))

    def continue_turn(self) -> None:
        """Go on with the reading before this one, which was not finished: the edges that it kept count as new.

        For a source that commits on its way, because it takes hours.
        """
        self._turn -= 1
        self.put(_TURN, self._turn)

    def fade(self, factor: float) -> None:
        """Multiply the weights of all edges that are kept."""
        self._execute("UPDATE ties SET weight = weight * ?", (factor,))

    def add(self, ties: Ties, adds: bool) -> None:
        """Keep edges; `adds` is whether weights add to those that are there, or take their place.

        Edges that come twice in one turn add up in any case.
        """
        weights = np.ones(len(ties.own)) if ties.weights is None else ties.weights
        old = "weight" if adds else "CASE turn WHEN excluded.turn THEN weight ELSE 0 END"
        self._execute_many(
            "INSERT INTO ties VALUES (?, ?, ?, ?) ON CONFLICT (own, other) DO UPDATE SET "
            f"weight = excluded.weight + {old}, turn = excluded.turn",
            (
                (str(own), str(other), weight, self._turn)
                for own, other, weight in zip(ties.own, ties.other, weights.tolist(), strict=True)
            ),
        )

    def remove_old(self, adds: bool, least: float) -> list[tuple[str, str]]:
        """Forget edges below a weight and, unless what is read `adds`, those that are not there any more.

        Returns them.
        """
        condition = "weight < ?" + ("" if adds else f" OR turn < {self._turn}")
        return self._execute(f"DELETE FROM ties WHERE {condition} RETURNING own, other", (least,)).fetchall()

    def read_ties(self) -> Iterator[Ties]:
        """All edges that are kept."""
        cursor = self._execute("SELECT own, other, weight FROM ties ORDER BY own, other")
        while rows := cursor.fetchmany(BATCH):
            own, other, weights = zip(*rows, strict=True)
            yield Ties(own, other, np.array(weights))
