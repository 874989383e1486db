"""QuerySource: the base class of sources that read edges with a query to a database."""

from __future__ import annotations

from manela.errors import SourceError
from manela.sources.rows import Rows
from manela.sources.secret import hide_secret, refuse_password
from manela.sources.source import Source


class QuerySource(Source):
    """The rows of a query, each of which is an edge: `own, other[, weight]`, by position.

    Parameters
    ----------
    url : str
        The URL of the database, without a password.
    query : str
    secret : str or None
        The password.
    """

    def __init__(self, url: str, query: str, secret: str | None) -> None:
        refuse_password(url)
        self.url, self.query, self.secret = url, query, secret
        self._rows = Rows()

    def describe(self) -> str:
        """Return how many rows there were, and how many of them were left out."""
        return self._rows.describe()

    def _explain(self, error: Exception) -> SourceError:
        """Return a driver's error as one line without the password."""
        return SourceError(f"{self.url}: cannot be read: {hide_secret(str(error), self.secret)}")
