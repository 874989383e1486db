"""Names of accounts, as they are written and as they are attacked."""

import pytest

from manela.errors import SourceError
from manela.sources.fediverse import account_of_url, as_account, check_host


@pytest.mark.parametrize(
    ("text", "account"),
    [
        ("@Ann@Example.org", "ann@example.org"),
        ("ann", "ann@home.example"),
        (" ann@example.org:8443 ", "ann@example.org:8443"),
        ("ännchen@müller.example", "ännchen@müller.example"),
        ("", None),
        ("@", None),
        ("@@example.org", None),
        ("ann@exam ple.org", None),
        ("ann@example.org@evil.example", None),
        ("an\nn@example.org", None),
        ("ann@../../etc", None),
        ("ann@-example.org", None),
        ("ann\x1b[31m@example.org", None),
        ("a" * 300 + "@example.org", None),
        ("ann@" + "a" * 300, None),
        (None, None),
        (7, None),
    ],
)
def test_an_account_is_name_at_host_or_none(text, account):
    assert as_account(text, "home.example") == account


@pytest.mark.parametrize(
    ("url", "account"),
    [
        ("https://example.org/users/Ann/statuses/1", "ann@example.org"),
        ("https://example.org/@ann", "ann@example.org"),
        ("https://user:pass@example.org/@ann/7", "ann@example.org"),
        ("https://example.org/notes/1", None),
        ("https:///users/ann", None),
        ("https://[broken/users/ann", None),
        ("javascript:alert(1)", None),
        ({"id": 1}, None),
    ],
)
def test_a_url_tells_its_account_or_none(url, account):
    assert account_of_url(url) == account


@pytest.mark.parametrize("host", ["", "exam ple", "a/b", "a';--", "@", "a\n"])
def test_what_is_no_host_is_refused(host):
    with pytest.raises(SourceError, match=r"example\.org"):
        check_host(host)
