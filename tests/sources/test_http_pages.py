"""Asking a server: no faster than it allows, nowhere else, and never more than can be held."""

import email.utils

import pytest
from mastodon_server import TOKEN, Mastodon, serve_mastodon

from manela.errors import ManelaWarning, SourceError
from manela.sources.mastodon_api import Pages

NOW = 1_800_000_000.0
pytestmark = pytest.mark.filterwarnings("ignore:.*waiting")


@pytest.fixture
def server():
    with serve_mastodon(Mastodon({"1": ("ann", None), "2": ("bob", None)}, [("1", "2")])) as mastodon:
        yield mastodon


def ask(server, *answers, token=TOKEN):
    """What comes of a request that is first answered so, and how long it waited."""
    server.answers = list(answers)
    waits = []
    page = Pages(server.url, token, lambda: NOW, waits.append).get("/api/v2/instance")
    return page, waits


def test_a_limit_that_is_used_up_is_waited_for(server):
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "2027-01-15T08:01:00.000Z"}
    page, waits = ask(server, (200, headers, {"domain": "x"}))
    assert page.data == {"domain": "x"}
    assert waits == [60.0]
    assert ask(server, (200, {**headers, "X-RateLimit-Remaining": "7"}, {}))[1] == []


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "17"}, 17.0),
        ({"Retry-After": email.utils.formatdate(NOW + 90)}, 90.0),
        ({"X-RateLimit-Reset": "2027-01-15T08:05:00Z"}, 300.0),
        ({"X-RateLimit-Reset": "2001-01-01T00:00:00Z"}, 0.0),
        ({"Retry-After": "99999999"}, 3600.0),
        ({"Retry-After": "soon"}, 60.0),
        ({"X-RateLimit-Reset": "nonsense"}, 60.0),
        ({}, 60.0),
    ],
)
def test_too_many_requests_are_followed_by_the_wait_that_is_asked_for(server, headers, wait):
    page, waits = ask(server, (429, headers, {"error": "Too many requests"}))
    assert page.status == 200
    assert waits == [wait]


def test_what_may_pass_is_tried_again_and_then_given_up(server):
    page, waits = ask(server, (503, {}, b""), (502, {}, b"<html>"))
    assert page.status == 200
    assert waits == [1.0, 2.0]
    with pytest.raises(SourceError, match="status 503; try again later"):
        ask(server, *[(503, {}, b"")] * 20)
    assert len(server.answers) == 12
    with pytest.raises(SourceError, match="did not answer"):
        Pages("http://127.0.0.1:1", None, lambda: NOW, lambda _: None).get("/")


def test_waits_that_a_person_would_notice_are_announced(server):
    with pytest.warns(ManelaWarning) as noted:
        ask(server, (503, {}, b""), (502, {}, b""), (429, {"Retry-After": "17"}, b""))
    assert [str(note.message) for note in noted] == [
        f"{server.url} answers with status 502; waiting 2 s",
        f"{server.url} answers with status 429; waiting 17 s",
    ]


def test_a_token_that_does_not_allow_it_is_told_and_not_shown(server):
    with pytest.raises(SourceError, match=r"status 401\); make one") as caught:
        ask(server, token="wrong-sesame")
    assert "sesame" not in str(caught.value)
    with pytest.raises(SourceError, match="printable ASCII") as caught:
        Pages(server.url, "se\r\nHost: evil", lambda: NOW, lambda _: None)
    assert "evil" not in str(caught.value)


def test_redirects_are_not_followed(server):
    with pytest.raises(SourceError, match=r"redirects to https://evil\.example/"):
        ask(server, (302, {"Location": "https://evil.example/"}, b""))
    assert len(server.asked) == 1


@pytest.mark.parametrize("body", [b"<html>", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_told_in_a_line(server, body):
    with pytest.raises(SourceError, match="did not answer with JSON"):
        ask(server, (200, {}, body))


def test_an_answer_that_is_too_long_is_refused_before_it_is_parsed(server):
    with pytest.raises(SourceError, match="at most 8,388,608 bytes"):
        ask(server, (200, {}, b"[" + b" " * (1 << 23) + b"]"))


def test_the_next_page_is_the_one_that_is_called_so(server):
    link = f'<{server.url}/a?max_id=1>; rel="next", <{server.url}/a?min_id=2>; rel="prev"'
    assert ask(server, (200, {"Link": link}, []))[0].next_path == "/a?max_id=1"
    link = f'<{server.url}/a?min_id=2>; rel="prev", <{server.url}/a?max_id=1>;rel=next'
    assert ask(server, (200, {"Link": link}, []))[0].next_path == "/a?max_id=1"
    for last in (f'<{server.url}/a>; rel="prev"', "nonsense", "<>; rel=prev"):
        assert ask(server, (200, {"Link": last}, []))[0].next_path is None


@pytest.mark.parametrize(
    "target", ["https://evil.example/a", "http://127.0.0.1:1/a", "//evil.example/a", "/a", "file:///etc/passwd", ""]
)
def test_a_next_page_elsewhere_is_refused(server, target):
    with pytest.raises(SourceError, match="same server"):
        ask(server, (200, {"Link": f'<{target}>; rel="next"'}, []))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.org", "begin with https"),
        ("example.org", "https://example.org"),
        ("ftp://example.org", "https://example.org"),
        ("https://ann:xyzzy@example.org", "https://example.org"),
        ("https://", "https://example.org"),
        ("https://[broken", "https://example.org"),
        ("https://example.org:99999", "https://example.org"),
    ],
)
def test_a_server_must_be_asked_by_https_unless_it_is_this_machine(url, words):
    with pytest.raises(SourceError, match=words):
        Pages(url, "token", lambda: NOW, lambda _: None)
    assert Pages("http://[::1]:8080", None, lambda: NOW, lambda _: None).origin == "http://[::1]:8080"
