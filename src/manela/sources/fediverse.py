"""Account names of the fediverse: parses their various forms to name@host in lower case."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from manela.errors import SourceError

_NAME = re.compile(r"[^\s@/:?#\x00-\x1f\x7f]{1,255}")
_HOST = re.compile(r"(?=.{1,253}$)[^\W_](?:[\w.-]*[^\W_])?(?::\d{1,5})?")
_PATH = re.compile(r"/(?:users/|@)([^/@?#]{1,255})(?:/|$)")


def as_account(text: object, host: str) -> str | None:
    """Return `@User@Server`, or a `user` of this host, as `user@server`; None if it is not an account name.

    Examples
    --------
    >>> as_account("@Ann@Example.org", "here.example"), as_account("bob", "here.example"), as_account("@", "a.b")
    ('ann@example.org', 'bob@here.example', None)
    """
    if not isinstance(text, str):
        return None
    name, _, server = text.strip().removeprefix("@").partition("@")
    server = server or host
    if not _NAME.fullmatch(name) or not _HOST.fullmatch(server) or not name.isprintable():
        return None
    return f"{name}@{server}".lower()


def account_of_url(url: object) -> str | None:
    """Return the account that a URL of Mastodon or compatible software belongs to; None if the URL does not say.

    Examples
    --------
    >>> account_of_url("https://example.org/users/Ann/statuses/1"), account_of_url("https://example.org/1")
    ('ann@example.org', None)
    """
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
        match = _PATH.match(parts.path)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return None
    return as_account(match[1], host) if match and host else None


def check_host(host: str) -> str:
    """Return a host's name in lower case; raise SourceError if it is invalid.

    Examples
    --------
    >>> check_host("Example.org")
    'example.org'
    """
    if not _HOST.fullmatch(host):
        raise SourceError(f"a host must be a name such as example.org, got {host[:80]!r}")
    return host.lower()
