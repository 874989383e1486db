"""MastodonDatabaseSource: reads who follows whom from the database of a Mastodon server."""

from __future__ import annotations

from manela.sources.fediverse import check_host
from manela.sources.sql import SqlSource

_QUERY = """
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

    def __init__(self, url: str, domain: str, secret: str | None = None) -> None:
        self.domain = check_host(domain)
        self.own_hosts = frozenset({self.domain})
        super().__init__(url, _QUERY.format(domain=self.domain), secret)

    @property
    def key(self) -> str:
        """The key: the URL of the database and the server's domain."""
        return f"mastodon-database {self.url} {self.domain}"
