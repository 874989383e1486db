"""SqlSource: reads edges with an SQL query; MastodonDatabaseSource: with the one for a Mastodon server."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from manela.errors import SourceError, import_extra
from manela.sources.edges import Edges
from manela.sources.fediverse import check_host
from manela.sources.rows import FETCHED, QuerySource, Rows, check_columns
from manela.sources.state import ImportState

_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
"""Default drivers of URLs without one."""


class SqlSource(QuerySource):
    """The rows of a query, each of which is an edge: `own, other[, weight]`, by position.

    The query runs in a read-only transaction (PostgreSQL, SQLite), and rows are fetched in batches, so that memory does
    not grow with their number. A row in which an end or the weight is NULL, or an end is empty, is left out and
    counted. Integer ends stay integers; ends of any other type become text.

    Parameters
    ----------
    url : str
        An SQLAlchemy URL without a password, as in `postgresql://reader@db.example.org/social`.
    query : str
        A single SELECT.
    secret : str, optional
        The password.

    Examples
    --------
    >>> SqlSource("sqlite:///social.db", "SELECT payer, payee FROM payments").key
    'sql sqlite:///social.db SELECT payer, payee FROM payments'
    """

    def __init__(self, url: str, query: str, secret: str | None = None) -> None:
        super().__init__(url, query.strip().rstrip(";").rstrip(), secret)

    @property
    def key(self) -> str:
        """The key: the URL and the query."""
        return f"sql {self.url} {' '.join(self.query.split())}"

    def read(self, state: ImportState) -> Iterator[Edges]:  # noqa: ARG002
        """Yield all edges in batches."""
        self._rows = Rows()
        sqlalchemy: Any = import_extra("sqlalchemy", "sources", "reading a database")
        engine = self._make_engine(sqlalchemy)
        options = {"stream_results": True, "no_parameters": True, "yield_per": FETCHED}
        if engine.dialect.name == "postgresql":
            options["postgresql_readonly"] = True
        try:
            with engine.connect().execution_options(**options) as connection:
                for rows in _fetch(connection, self.query):
                    yield from self._rows.take(rows)
        except (sqlalchemy.exc.SQLAlchemyError, engine.dialect.loaded_dbapi.Error) as error:
            raise self._explain(_find_cause(error)) from None
        finally:
            engine.dispose()

    def _make_engine(self, sqlalchemy: Any) -> Any:
        """Create an engine that has the password, and opens SQLite files read-only."""
        try:
            url = sqlalchemy.engine.make_url(self.url)
            url = url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))
            if self.secret is not None:
                url = url.set(password=self.secret)
            options: dict[str, Any] = {"poolclass": sqlalchemy.pool.NullPool}
            if url.get_backend_name() == "sqlite":
                uri = _as_read_only(url.database)
                options["creator"] = lambda: sqlite3.connect(uri, uri=True, timeout=10.0)
            return sqlalchemy.create_engine(url, **options)
        except ModuleNotFoundError as error:
            raise SourceError(
                f"{self.url}: needs the driver {error.name}, which is not installed: pip install {error.name}"
            ) from error
        except (sqlalchemy.exc.SQLAlchemyError, ValueError) as error:
            raise self._explain(_find_cause(error)) from None


def _find_cause(error: Exception) -> Exception:
    cause: Exception | None = getattr(error, "orig", None)
    return cause or error


def _fetch(connection: Any, query: str) -> Iterator[Sequence[Any]]:
    if connection.dialect.driver == "psycopg":
        # use the driver's tuples: converting them to SQLAlchemy rows would take most of the time
        connection.begin()
        with connection.connection.cursor(name="manela") as cursor:
            cursor.execute(query)
            check_columns([column.name for column in cursor.description])
            while rows := cursor.fetchmany(FETCHED):
                yield rows
        return
    result = connection.exec_driver_sql(query)
    if not result.returns_rows:
        raise SourceError(f"a query must be a SELECT that returns rows, got {query[:80]!r}")
    check_columns(list(result.keys()))
    yield from result.partitions(FETCHED)


def _as_read_only(database: str | None) -> str:
    if not database or database == ":memory:":
        raise SourceError("a SQLite URL must name a file, for example sqlite:///social.db, got none")
    if not Path(database).is_file():
        raise SourceError(f"{database}: no such file")
    return f"file:{quote(database)}?mode=ro"


_FOLLOWS = """
SELECT lower(follower.username) || '@' || lower(coalesce(follower.domain, '{domain}')),
       lower(followed.username) || '@' || lower(coalesce(followed.domain, '{domain}'))
FROM follows
JOIN accounts AS follower ON follower.id = follows.account_id
JOIN accounts AS followed ON followed.id = follows.target_account_id
WHERE follower.suspended_at IS NULL AND followed.suspended_at IS NULL
"""


class MastodonDatabaseSource(SqlSource):
    """The follows that a Mastodon server knows; an edge leads from the follower to the followed account.

    The tables `follows` and `accounts` are read in a read-only transaction. Suspended accounts are left out.

    Parameters
    ----------
    url, secret
        As in `SqlSource`.
    domain : str
        The server's domain in its users' addresses; the database does not store it.

    Examples
    --------
    >>> MastodonDatabaseSource("postgresql://mastodon@/mastodon_production", "Example.org").key
    'mastodon-database postgresql://mastodon@/mastodon_production example.org'
    """

    directed = True

    def __init__(self, url: str, domain: str, secret: str | None = None) -> None:
        self.domain = check_host(domain)
        self.own_hosts = frozenset({self.domain})
        super().__init__(url, _FOLLOWS.format(domain=self.domain), secret)

    @property
    def key(self) -> str:
        """The key: the URL of the database and the server's domain."""
        return f"mastodon-database {self.url} {self.domain}"
