"""MastodonApiSource: reads who follows whom from the API of a Mastodon server."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from manela.errors import SourceError
from manela.sources.edges import Edges
from manela.sources.fediverse import as_account, check_host
from manela.sources.http_pages import Page, Pages
from manela.sources.source import Source
from manela.sources.state import ImportState

_MARK = "mastodon"
_LIMIT = 80
"""Accounts per page; Mastodon allows no more."""
_ADMIN_LIMIT = 100
_ADMIN_PATHS = (
    f"/api/v2/admin/accounts?origin=local&status=active&limit={_ADMIN_LIMIT}",
    f"/api/v1/admin/accounts?local=true&active=true&limit={_ADMIN_LIMIT}",
)
"""Paths of the list of a server's own accounts, in the current API and in the one before."""
_ID_LENGTH = 64


class MastodonApiSource(Source):
    """The follows of the token's owner, in both directions, or those of all accounts of the server.

    An edge leads from the follower to the followed account. After each page its edges and the current position are
    committed to the state, so that an interrupted reading resumes there. Edges that no longer exist are deleted only
    when a reading is complete. The caller must add each batch to the state before it asks for the next one.

    Parameters
    ----------
    url : str
        The server, as in `https://example.org`.
    token : str
        An access token with the scope `read:accounts` and `read:follows`, or also `admin:read:accounts` for `local`.
    local : bool
        Whether to read whom each account of the server follows, instead of the follows of the token's owner.
    domain : str, optional
        The host in the addresses of the server's own accounts; by default the server is asked.
    clock, sleep : callable
        Return the seconds since 1970, and wait for a number of seconds.

    Examples
    --------
    >>> MastodonApiSource("https://example.org", "xyzzy").key
    'mastodon-api https://example.org owner 1831795a'
    """

    def __init__(
        self,
        url: str,
        token: str,
        local: bool = False,
        domain: str | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        timeout: float = 30.0,
    ) -> None:
        self.local = local
        self._pages = Pages(url, token, clock, sleep, timeout)
        self._token_hash = hashlib.blake2b(token.encode(), digest_size=4).hexdigest()
        self._domain = None if domain is None else check_host(domain)
        self.own_hosts = frozenset() if self._domain is None else frozenset({self._domain})
        self._follows = self._accounts = self._left_out = 0

    @property
    def key(self) -> str:
        """The key: the server, and whose follows are read."""
        # the token matters only if its owner's follows are read
        scope = "local" if self.local else f"owner {self._token_hash}"
        return f"mastodon-api {self._pages.origin} {scope}"

    def describe(self) -> str:
        """Return how many follows of how many accounts were read this time, and how many were left out."""
        left_out = f"; {self._left_out:,} of suspended or unreadable accounts were left out" if self._left_out else ""
        return f"{self._follows:,} follows, {self._accounts:,} accounts read to the end{left_out}"

    def read(self, state: ImportState) -> Iterator[Edges]:
        """Yield the edges of one page at a time, resuming a reading that was not finished."""
        self._follows = self._accounts = self._left_out = 0
        mark = state.get(_MARK)
        if mark is None:
            mark = self._begin()
        else:
            state.continue_turn()
        while mark["pending"] or mark["listing"]:
            if not mark["pending"]:
                mark["pending"], mark["listing"] = self._list_accounts(mark["listing"], mark["domain"])
                continue
            account, path = mark["pending"][0]["name"], mark["pending"][0]["path"]
            page = self._pages.get(path)
            batch = self._read_page(page, account, mark["pending"][0]["kind"], mark["domain"])
            if page.next_path in (None, path):
                mark["pending"] = mark["pending"][1:]
                self._accounts += 1
            else:
                _turn_page(mark["pending"][0], page.next_path, self._pages.origin)
            if batch.own:
                yield batch
            state.put(_MARK, mark)
            state.commit()
        # not committed here, so that it is one transaction with the removal of old edges
        state.put(_MARK, None)

    def _begin(self) -> dict[str, Any]:
        """Return the position at the start: pages still to read, and the next page of the list of accounts."""
        domain = self._domain or self._find_domain()
        if self.local:
            return {"domain": domain, "pending": [], "listing": _ADMIN_PATHS[0]}
        owner = self._pages.get("/api/v1/accounts/verify_credentials").data
        name = as_account(_get(owner, "acct"), domain)
        number = _check_id(_get(owner, "id"))
        if name is None or number is None:
            raise SourceError(f"{self._pages.origin}: does not say who owns the token; is this a Mastodon server?")
        pending = [_plan(number, name, "following"), _plan(number, name, "followers")]
        return {"domain": domain, "pending": pending, "listing": None}

    def _find_domain(self) -> str:
        """Return the host in the addresses of the server's accounts, which may differ from the host of its URL."""
        page = self._pages.get("/api/v2/instance")
        domain = _get(page.data, "domain") if page.status == 200 else None
        if not isinstance(domain, str):
            page = self._pages.get("/api/v1/instance")
            domain = _get(page.data, "uri") if page.status == 200 else None
        return check_host(domain if isinstance(domain, str) else self._pages.origin.partition("://")[2])

    def _list_accounts(self, path: str, domain: str) -> tuple[list[dict[str, str]], str | None]:
        """Return the accounts on a page of the list, as entries still to read, and the path of the next page."""
        page = self._pages.get(path)
        if page.status == 404 and path == _ADMIN_PATHS[0]:
            return [], _ADMIN_PATHS[1]
        if page.status == 404 or not isinstance(page.data, list):
            raise SourceError(f"{self._pages.origin}: has no list of accounts; is this a Mastodon server of version 3?")
        pending = []
        for entry in page.data:
            number, name = _check_id(_get(entry, "id")), as_account(_get(entry, "username"), domain)
            if number is None or name is None or _get(entry, "suspended") is True:
                self._left_out += 1
            else:
                pending.append(_plan(number, name, "following"))
        return pending, None if page.next_path == path else page.next_path

    def _read_page(self, page: Page, account: str, kind: str, domain: str) -> Edges:
        """Return the edges of a page of accounts that an account follows, or of its followers."""
        if page.status == 404:  # the account was deleted since it was listed
            return Edges([], [])
        if not isinstance(page.data, list):
            raise SourceError(
                f"{self._pages.origin}: a page must be a list of accounts, got {type(page.data).__name__}"
            )
        others = []
        for entry in page.data:
            name = as_account(_get(entry, "acct"), domain)
            if name is None or _get(entry, "suspended") is True:
                self._left_out += 1
            else:
                others.append(name)
        self._follows += len(others)
        own = [account] * len(others)
        return Edges(own, others) if kind == "following" else Edges(others, own)


def _plan(number: str, name: str, kind: str) -> dict[str, str]:
    """Return an entry to read: an account, the kind of its list, and the path of the first page."""
    return {"name": name, "kind": kind, "path": f"/api/v1/accounts/{number}/{kind}?limit={_LIMIT}"}


def _turn_page(entry: dict[str, Any], path: str, origin: str) -> None:
    """Move an entry to its next page; refuse pages that form a cycle.

    By Brent's algorithm: the page after 1, 2, 4, 8, … steps is remembered, and reaching it again is a cycle.
    """
    if path == entry.get("kept"):
        raise SourceError(f"{origin}: its pages form a loop, at {path[:100]}")
    entry["path"], entry["steps"] = path, entry.get("steps", 0) + 1
    if entry["steps"] & (entry["steps"] - 1) == 0:
        entry["kept"] = path


def _get(entry: Any, name: str) -> Any:
    """Return a field of an answer, None if the answer is not an object."""
    return entry.get(name) if isinstance(entry, dict) else None


def _check_id(number: Any) -> str | None:
    """Return a Mastodon id if it is alphanumeric, otherwise None, as other characters could change the path."""
    is_id = isinstance(number, str) and number.isascii() and number.isalnum() and len(number) <= _ID_LENGTH
    return number if is_id else None
