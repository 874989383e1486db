"""MastodonDatabaseSource: reads who follows whom from the database of a Mastodon server."""

from __future__ import annotations

from collections.abc import Iterator

from manela.sources.fediverse import check_host
from manela.sources.sql import SqlSource
from manela.sources.state import ImportState
from manela.sources.ties import Ties

_QUERY = """
SELECT lower(follower.username) || '@' || lower(coalesce(follower.domain, '{domain}')),
       lower(followed.username) || '@' || lower(coalesce(followed.domain, '{domain}'))
FROM follows
JOIN accounts AS follower ON follower.id = follows.account_id
JOIN accounts AS followed ON followed.id = follows.target_account_id
WHERE follower.suspended_at IS NULL AND followed.suspended_at IS NULL
"""


class MastodonDatabaseSource:
    """The follows that a Mastodon server knows; an edge leads from the follower to the followed account.

    The tables `follows` and `accounts` are read in a read-only transaction. Suspended accounts are left out.

    Parameters
    ----------
    url : str
        The database, as for `SqlSource`, as in `postgresql://mastodon@/mastodon_production`.
    domain : str
        The server's domain in its users' addresses; the database does not store it.
    secret : str, optional
        The password.

    Examples
    --------
    >>> MastodonDatabaseSource("postgresql://mastodon@/mastodon_production", "Example.org").key
    'mastodon-database postgresql://mastodon@/mastodon_production example.org'
    """

    adds = False

    def __init__(self, url: str, domain: str, secret: str | None = None) -> None:
        self.domain = check_host(domain)
        self.own_hosts = frozenset({self.domain})
        self._source = SqlSource(url, _QUERY.format(domain=self.domain), secret)

    @property
    def key(self) -> str:
        """The key: the URL of the database and the server's domain."""
        return f"mastodon-database {self._source.url} {self.domain}"

    def read(self, state: ImportState) -> Iterator[Ties]:
        """Yield all edges in batches."""
        yield from self._source.read(state)

    def describe(self) -> str:
        """Return how many follows there are."""
        return self._source.describe()
