"""MastodonDatabaseSource: who follows whom, in the database of a Mastodon server."""

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
    """The follows that a Mastodon server knows of; an edge leads from the one who follows.

    The tables `follows` and `accounts` are read, in a transaction that cannot write. Suspended accounts are left out.

    Parameters
    ----------
    url : str
        The database, as `SqlSource` takes it, as in `postgresql://mastodon@/mastodon_production`.
    domain : str
        The server's own, as in its users' addresses; in the database they have none.
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
        """The address of the database and the server's domain."""
        return f"mastodon-database {self._source.url} {self.domain}"

    def read(self, state: ImportState) -> Iterator[Ties]:
        """The edges, in batches; each reading yields all of them."""
        yield from self._source.read(state)

    def describe(self) -> str:
        """How many follows there are."""
        return self._source.describe()
