"""Mastodon's API: pages, all accounts of a server, and readings that are killed and go on."""

import subprocess
import sys
import threading

import pytest
from mastodon_server import TOKEN, Mastodon, serve_mastodon

from manela.errors import SourceError
from manela.sources.mastodon_api import MastodonApiSource
from manela.sources.source import import_to_file
from manela.sources.state import ImportState

pytestmark = pytest.mark.filterwarnings("ignore:.*waiting")

ACCOUNTS = {"1": ("Ann", None), "2": ("bob", "Other.Example"), "3": ("cem", None)}
ACCOUNTS |= {str(number): (f"user{number}", "far.example") for number in range(10, 19)}
FOLLOWS = [("1", str(number)) for number in range(10, 19)] + [("2", "1"), ("3", "1"), ("1", "3"), ("3", "2")]
OWNER_EDGES = sorted(
    [f"ann@home.example,user{number}@far.example,1" for number in range(10, 19)]
    + [
        "ann@home.example,cem@home.example,1",
        "bob@other.example,ann@home.example,1",
        "cem@home.example,ann@home.example,1",
    ]
)
LOCAL_EDGES = sorted(
    [line for line in OWNER_EDGES if not line.startswith("bob")] + ["cem@home.example,bob@other.example,1"]
)
CHILD = """
import sys
from pathlib import Path
from manela.sources.mastodon_api import MastodonApiSource
from manela.sources.source import import_to_file
import_to_file(MastodonApiSource(sys.argv[1], sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
"""


@pytest.fixture
def server():
    with serve_mastodon(Mastodon(ACCOUNTS, list(FOLLOWS))) as mastodon:
        yield mastodon


def make_source(server, **options):
    return MastodonApiSource(server.url, TOKEN, sleep=lambda _: None, **options)


def import_lines(source, folder):
    import_to_file(source, folder / "edges.csv", folder / "state")
    return sorted((folder / "edges.csv").read_text().splitlines()[1:])


def follow_pages(server):
    return [path for path in server.asked if path.startswith("/api/v1/accounts/1/")]


def stop_after(source, folder, batches):
    """Import as `import_to_file` does, and stop when so many batches were added."""
    with ImportState(folder / "state", source.key) as state:
        for number, batch in enumerate(source.read(state)):
            if number == batches:
                return
            state.add(batch, source.adds)
    raise AssertionError("the reading ended by itself")


def test_all_pages_are_read_in_both_directions(server, tmp_path):
    source = make_source(server)
    assert import_lines(source, tmp_path) == OWNER_EDGES
    assert source.describe() == "12 follows, 2 accounts read to the end"
    assert len(follow_pages(server)) == 5 + 1
    assert all("limit=80" in path for path in follow_pages(server))


def test_all_accounts_of_the_server_are_read(server, tmp_path):
    server.page = 1
    assert import_lines(make_source(server, local=True), tmp_path) == LOCAL_EDGES


def test_the_list_of_accounts_of_older_servers_is_read(server, tmp_path):
    usual = server.answer

    def answer(path, query):
        if path.startswith("/api/v2/"):
            return 404, {}, {"error": "Record not found"}
        if path == "/api/v1/instance":
            return 200, {}, {"uri": "home.example"}
        return usual(path.replace("/v1/admin", "/v2/admin"), query)

    server.answer = answer
    assert import_lines(make_source(server, local=True), tmp_path) == LOCAL_EDGES


def test_a_domain_that_is_given_counts(server, tmp_path):
    assert "ann@given.example,cem@given.example,1" in import_lines(
        make_source(server, domain="Given.example"), tmp_path
    )


@pytest.mark.parametrize("batches", range(1, 6))
def test_a_reading_that_was_stopped_goes_on_with_the_page_that_was_not_kept(server, tmp_path, batches):
    stop_after(make_source(server), tmp_path, batches)
    server.asked.clear()
    assert import_lines(make_source(server), tmp_path) == OWNER_EDGES
    assert len(follow_pages(server)) == 6 - batches
    assert "/api/v1/accounts/verify_credentials" not in server.asked


@pytest.mark.parametrize("batches", range(1, 6))
def test_a_reading_of_all_accounts_goes_on_too(server, tmp_path, batches):
    stop_after(make_source(server, local=True), tmp_path, batches)
    assert import_lines(make_source(server, local=True), tmp_path) == LOCAL_EDGES


def test_a_process_that_is_killed_in_the_middle_of_a_page_goes_on(server, tmp_path):
    arrived, may_answer = threading.Event(), threading.Event()

    def hold_fourth_page(path):
        if "/following" in path and "max_id=6" in path:
            arrived.set()
            may_answer.wait()

    server.before_answer = hold_fourth_page
    arguments = [server.url, TOKEN, str(tmp_path / "edges.csv"), str(tmp_path / "state")]
    process = subprocess.Popen([sys.executable, "-c", CHILD, *arguments])
    try:
        assert arrived.wait(120)
    finally:
        process.kill()
        process.wait()
        may_answer.set()
    assert not (tmp_path / "edges.csv").exists()
    server.before_answer = lambda path: None
    server.asked.clear()
    assert import_lines(make_source(server), tmp_path) == OWNER_EDGES
    assert len(follow_pages(server)) == 3


def test_a_finished_reading_replaces_what_was_and_an_unfinished_one_does_not(server, tmp_path):
    import_lines(make_source(server), tmp_path)
    server.follows.remove(("1", "10"))
    server.follows.append(("10", "1"))
    source = make_source(server)
    stop_after(source, tmp_path, 2)
    with ImportState(tmp_path / "state", source.key) as state:
        kept = {(own, other) for batch in state.read_edges() for own, other in zip(batch.own, batch.other, strict=True)}
    assert ("ann@home.example", "user10@far.example") in kept
    changed = set(OWNER_EDGES) - {"ann@home.example,user10@far.example,1"}
    changed |= {"user10@far.example,ann@home.example,1"}
    assert import_lines(make_source(server), tmp_path) == sorted(changed)
    assert import_lines(make_source(server), tmp_path) == sorted(changed)


def test_an_error_on_the_way_loses_no_page(server, tmp_path):
    usual = server.answer
    server.answer = lambda path, query: (500, {}, {}) if query.get("max_id") == ["4"] else usual(path, query)
    with pytest.raises(SourceError, match="status 500"):
        import_lines(make_source(server), tmp_path)
    server.answer = usual
    server.asked.clear()
    assert import_lines(make_source(server), tmp_path) == OWNER_EDGES
    assert len(follow_pages(server)) == 4


@pytest.mark.parametrize(
    "data",
    [
        {}, None, "x", 7, [None, 7, "x", [], {}, {"acct": 5}, {"acct": "@"}, {"acct": "a@b@c"}, {"acct": "a/../b"}],
        [{"acct": "spam@far.example", "suspended": True}],
    ],
)  # fmt: skip
def test_odd_pages_are_told_or_passed_over(server, tmp_path, data):
    usual = server.answer
    server.answer = lambda path, query: (200, {}, data) if path.endswith("/followers") else usual(path, query)
    if isinstance(data, list):
        assert len(import_lines(make_source(server), tmp_path)) == 10
    else:
        with pytest.raises(SourceError, match="a page must be a list of accounts"):
            import_lines(make_source(server), tmp_path)


@pytest.mark.parametrize("number", ["../../admin", "1?x=", "", None, 5, "9" * 100])
def test_an_id_never_changes_the_address_that_is_asked(server, tmp_path, number):
    usual = server.answer
    server.answer = lambda path, query: (
        (200, {}, {"id": number, "acct": "ann"}) if path.endswith("verify_credentials") else usual(path, query)
    )
    with pytest.raises(SourceError, match="who owns the token"):
        import_lines(make_source(server), tmp_path)


def test_a_page_that_leads_to_itself_is_the_last(server, tmp_path):
    usual = server.answer

    def answer(path, query):
        status, headers, data = usual(path, query)
        if path.endswith("/followers"):
            headers["Link"] = f'<{server.url}{path}?limit=80>; rel="next"'
        return status, headers, data

    server.answer = answer
    assert import_lines(make_source(server), tmp_path) == OWNER_EDGES
