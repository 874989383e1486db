"""Neo4jSource: reads edges from a Neo4j database with a Cypher query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from manela.errors import SourceError, import_extra
from manela.sources.edges import Edges
from manela.sources.rows import FETCHED, QuerySource, Rows, check_columns
from manela.sources.state import ImportState

QUERY = (
    "MATCH (a)-[r]->(b) RETURN coalesce(a.name, elementId(a)) AS own, coalesce(b.name, elementId(b)) AS other, "
    "coalesce(r.weight, 1.0) AS weight"
)
"""All relationships; a node is named by its property `name`, or by its element id if it has none."""
_SCHEMES = ("neo4j://", "neo4j+s://", "neo4j+ssc://", "bolt://", "bolt+s://", "bolt+ssc://")


class Neo4jSource(QuerySource):
    """The records of a Cypher query, each of which is an edge: `own, other[, weight]`, by position.

    Records are fetched in batches in a session for reading. A record in which a value is null, or an end is empty, is
    left out and counted.

    Parameters
    ----------
    url : str
        A URL of Neo4j's driver without a password, as in `neo4j+s://db.example.org`.
    query : str
        A Cypher query; by default all relationships.
    user : str
        The user name.
    secret : str, optional
        The password; without one there is no authentication.
    database : str, optional
        The database; by default that of the server.

    Examples
    --------
    >>> Neo4jSource("bolt://localhost:7687", "MATCH (a)--(b) RETURN a.id, b.id").key
    'neo4j bolt://localhost:7687 MATCH (a)--(b) RETURN a.id, b.id'
    """

    def __init__(
        self, url: str, query: str = QUERY, user: str = "neo4j", secret: str | None = None, database: str | None = None
    ) -> None:
        super().__init__(url, query, secret)
        if not url.startswith(_SCHEMES):
            raise SourceError(f"the URL must begin with one of {', '.join(_SCHEMES)}, got {url[:80]!r}")
        self.user, self.database = user, database

    @property
    def key(self) -> str:
        """The key: the URL, the database and the query."""
        where = self.url if self.database is None else f"{self.url} {self.database}"
        return f"neo4j {where} {' '.join(self.query.split())}"

    def read(self, state: ImportState) -> Iterator[Edges]:  # noqa: ARG002
        """Yield all edges in batches."""
        self._rows = Rows()
        neo4j: Any = import_extra("neo4j", "sources", "reading Neo4j")
        credentials = None if self.secret is None else (self.user, self.secret)
        try:
            with (
                neo4j.GraphDatabase.driver(
                    self.url, auth=credentials, user_agent="manela", telemetry_disabled=True
                ) as driver,
                driver.session(
                    database=self.database, default_access_mode=neo4j.READ_ACCESS, fetch_size=FETCHED
                ) as session,
                session.begin_transaction() as transaction,
            ):
                result = transaction.run(self.query)
                check_columns(result.keys())
                while records := result.fetch(FETCHED):
                    yield from self._rows.take([record.values() for record in records])
        except (neo4j.exceptions.Neo4jError, neo4j.exceptions.DriverError, OSError, ValueError) as error:
            raise self._explain(error) from None
