"""MastodonApiSource: reads who follows whom from the API of a Mastodon server, page by page, within its rate limits."""

from __future__ import annotations

import email.utils
import hashlib
import http.client
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from manela.errors import ManelaWarning, SourceError
from manela.sources.edges import Edges
from manela.sources.fediverse import as_account, check_host
from manela.sources.secret import hide_secret
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

    directed = True

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
    return entry.get(name) if isinstance(entry, dict) else None


def _check_id(number: Any) -> str | None:
    """Return a Mastodon id if it is alphanumeric, otherwise None, as other characters could change the path."""
    is_id = isinstance(number, str) and number.isascii() and number.isalnum() and len(number) <= _ID_LENGTH
    return number if is_id else None


_LOCAL = {"localhost", "127.0.0.1", "::1"}
_MOST_BYTES = 1 << 23
"""Most bytes of an answer; longer ones are refused before they are parsed."""
_MOST_TRIES = 8
"""Attempts at a request that fails for a reason that may pass; more wait longer for a server that is down."""
_LONGEST_WAIT = 3600.0
"""Longest wait in seconds, even if the server asks for more."""
_FIRST_WAIT = 1.0
"""Seconds before the first retry; each further retry waits twice as long."""
_NOTICED_WAIT = 2.0
"""Seconds from which a wait is announced; if larger, shorter ones look as if nothing happened."""
_LIMITED_WAIT = 60.0
"""Seconds to wait if the server limits requests but does not say for how long."""
_LINK = re.compile(r"<([^<>]*)>((?:\s*;[^,]*)*)")
_WAITING = (429, 500, 502, 503, 504)


class Page(NamedTuple):
    """The answer of a server: the status, the JSON, and the path of the next page, None on the last."""

    status: int
    data: Any
    next_path: str | None


class Pages:
    """Requests to one server; the token is sent with each, and never to another server.

    Plain http is allowed only for this machine. `clock` and `sleep` return the seconds since 1970, and wait for some.

    Examples
    --------
    >>> import time
    >>> Pages("https://Example.org/", None, time.time, time.sleep).origin
    'https://example.org'
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        timeout: float = 30.0,
    ) -> None:
        self._scheme, self._host, self._port = _check_url(url)
        if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token):
            raise SourceError("a token must be printable ASCII without white space")
        self._token, self._clock, self._sleep, self._timeout = token, clock, sleep, timeout

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        is_default_port = self._port == (443 if self._scheme == "https" else 80)
        return f"{self._scheme}://{host}" + ("" if is_default_port else f":{self._port}")

    def get(self, path: str) -> Page:
        """Fetch a path; wait if the server asks for it, and retry failures that may pass."""
        wait = _FIRST_WAIT
        for retries_left in range(_MOST_TRIES - 1, -1, -1):
            try:
                status, headers, body = self._ask(path)
            except (OSError, http.client.HTTPException) as error:
                if retries_left == 0:
                    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
                    raise SourceError(f"{self.origin}: did not answer: {hide_secret(reason, self._token)}") from error
                self._pause(wait, "does not answer")
                wait *= 2
                continue
            if status in _WAITING and retries_left > 0:
                self._pause(self._limit_wait(headers) if status == 429 else wait, f"answers with status {status}")
                wait *= 2
                continue
            self._check_status(status, path, headers)
            if headers.get("X-RateLimit-Remaining", "").strip() == "0":
                self._pause(self._limit_wait(headers), "allows no more requests for now")
            return Page(status, self._parse(body, path), self._find_next(headers))
        raise AssertionError("the last try returns or raises")

    def _pause(self, seconds: float, reason: str) -> None:
        """Wait before the next request; a wait that a person would notice is announced."""
        if seconds >= _NOTICED_WAIT:
            warnings.warn(f"{self.origin} {reason}; waiting {seconds:.0f} s", ManelaWarning, stacklevel=2)
        self._sleep(seconds)

    def _ask(self, path: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        kind = http.client.HTTPSConnection if self._scheme == "https" else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self._timeout)
        headers = {"Accept": "application/json", "User-Agent": "manela"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            body = response.read(_MOST_BYTES + 1)
        finally:
            connection.close()
        if len(body) > _MOST_BYTES:
            raise SourceError(f"{self.origin}{path}: an answer must have at most {_MOST_BYTES:,} bytes, got more")
        return response.status, response.headers, body

    def _check_status(self, status: int, path: str, headers: http.client.HTTPMessage) -> None:
        where = f"{self.origin}{path.partition('?')[0]}"
        if status in (200, 404):
            return
        if status in (401, 403):
            raise SourceError(
                f"{where}: the token is missing or does not allow this (status {status}); make one with the required "
                "scopes in the server's settings under Development"
            )
        if 300 <= status < 400:
            target = hide_secret(headers.get("Location", "elsewhere"), self._token)
            raise SourceError(f"{where}: redirects to {target}, which is not followed; pass that server's address")
        raise SourceError(f"{where}: answered with status {status}; try again later")

    def _parse(self, body: bytes, path: str) -> Any:
        try:
            return json.loads(body) if body.strip() else None
        except (ValueError, RecursionError):
            raise SourceError(f"{self.origin}{path.partition('?')[0]}: did not answer with JSON") from None

    def _limit_wait(self, headers: http.client.HTTPMessage) -> float:
        after, reset = headers.get("Retry-After", "").strip(), headers.get("X-RateLimit-Reset", "").strip()
        seconds = _LIMITED_WAIT
        try:
            if after.isdecimal():
                seconds = float(after)
            elif after:
                seconds = email.utils.parsedate_to_datetime(after).timestamp() - self._clock()
            elif reset:
                moment = datetime.fromisoformat(reset)
                seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - self._clock()
        except (ValueError, OverflowError):
            pass
        return min(max(seconds, 0.0), _LONGEST_WAIT)

    def _find_next(self, headers: http.client.HTTPMessage) -> str | None:
        """Return the path of the next page, or None; refuse one on another server."""
        for link in _LINK.finditer(headers.get("Link", "")[:8192]):
            if re.search(r'rel\s*=\s*"?next"?(?:\s|;|$)', link[2]):
                try:
                    if _check_url(link[1]) != (self._scheme, self._host, self._port):
                        raise SourceError("another origin")
                    parts = urlsplit(link[1])
                except (SourceError, ValueError):
                    raise SourceError(
                        f"{self.origin}: the next page must be on the same server, got {link[1][:80]!r}"
                    ) from None
                path = f"{parts.path or '/'}?{parts.query}"
                if not re.fullmatch(r"[\x21-\x7e]{1,2048}", path):
                    raise SourceError(f"{self.origin}: the next page must have a plain address, got {path[:80]!r}")
                return path
        return None


def _check_url(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a server; refuse plain http to other machines."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise SourceError(f"the URL must look like https://example.org: {error}") from None
    if parts.scheme not in ("https", "http") or not host or parts.username is not None:
        raise SourceError(f"the URL must look like https://example.org, got {hide_secret(url, None)[:80]!r}")
    if parts.scheme == "http" and host not in _LOCAL:
        raise SourceError(
            f"the URL must begin with https://, so that nobody can read the token in transit, got {url[:80]!r}"
        )
    return parts.scheme, host, port or (443 if parts.scheme == "https" else 80)
