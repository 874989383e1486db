"""Pages: fetches JSON pages from an HTTP server, within its rate limits."""

from __future__ import annotations

import email.utils
import http.client
import json
import re
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from manela.errors import ManelaWarning, SourceError
from manela.sources.secret import hide_secret

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

    Parameters
    ----------
    url : str
        The server, such as `https://example.org`; http is allowed only for this machine.
    token : str or None
        An access token.
    clock, sleep : callable
        Return the seconds since 1970, and wait for a number of seconds.
    timeout : float
        Seconds to wait for data from the server.

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
        """Send one request; return status, headers and a bounded body."""
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
        """Raise SourceError unless the status is 200 or 404."""
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
        """Return the JSON of a body, None if it is empty."""
        try:
            return json.loads(body) if body.strip() else None
        except (ValueError, RecursionError):
            raise SourceError(f"{self.origin}{path.partition('?')[0]}: did not answer with JSON") from None

    def _limit_wait(self, headers: http.client.HTTPMessage) -> float:
        """Return how many seconds the server asks to wait."""
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
