"""What a daemon tells on an address of its machine."""

import contextlib
import http.client
import json
import socket
import threading
import time

import numpy as np
import pytest
from harness import make_terms
from prometheus_client.parser import text_string_to_metric_families

from manela.errors import AgentError
from manela.hosts.daemon.status_server import Answering, StatusServer, make_book, write_metrics
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.walks.host import make_host

STATUS = {
    "name": "alpha", "state": "learning", "trouble": "", "round": 3, "rounds": 150, "pairs": 12345, "nodes": 30,
    "arcs": 90, "noise": 1.0, "expires": 1800000000.0, "history": [[1790000000, 9]],
    "began": 1790000000.5, "updated": 1790000009.25, "pairs_per_second": 9, "sent": 17, "received": 5,
    "refusals": {"beta": {"not adjacent": 2, "too fast": 1}, 'odd "\\\n': {"unknown": 4}},
    "peers": {
        "beta": {
            "state": "here", "trouble": "", "seen": 1790000009.0, "nodes": 7, "edges_agreed": 8, "edges_disagreed": 1,
            "shown_nodes": 6, "expires": 1800000001.0, "sent": 10, "received": 5, "alarms": {"outliers": 7},
            "believed": True, "comparable": True, "alike": 0.98,
        },
        "gamma": {
            "state": "away", "trouble": "no answer", "seen": None, "nodes": None, "edges_agreed": 0,
            "edges_disagreed": 0, "shown_nodes": 0, "expires": None, "sent": 7, "received": 0,
            "believed": False, "comparable": None, "alike": None,
        },
    },
}  # fmt: skip


@pytest.fixture
def page():
    found = StatusServer("127.0.0.1:0", lambda: STATUS)
    yield found
    found.close()


def ask(page, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", int(page.url.split(":")[2].strip("/")), timeout=60)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()


def test_prometheus_reads_the_metrics():
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(write_metrics(STATUS))
        for sample in family.samples
    }
    assert found["manela_round",] == 3
    assert found["manela_rounds",] == 150
    assert found["manela_pairs_total",] == 12345
    assert found["manela_start_time_seconds",] == 1790000000.5
    assert found["manela_updated_seconds",] == 1790000009.25
    assert found["manela_trouble",] == 0
    assert found["manela_noise",] == 1.0
    assert found["manela_frame_info", ("frame", "none")] == 1
    assert found["manela_certificate_end_seconds", ("peer", "")] == 1800000000.0
    assert found["manela_certificate_end_seconds", ("peer", "beta")] == 1800000001.0
    assert ("manela_certificate_end_seconds", ("peer", "gamma")) not in found
    assert found["manela_peer_edges", ("agreed", "no"), ("peer", "beta")] == 1
    assert found["manela_shown_nodes", ("peer", "beta")] == 6
    states = {key[1][1]: value for key, value in found.items() if key[0] == "manela_state"}
    assert states["learning"] == 1
    assert sum(states.values()) == 1
    assert found["manela_peer_here", ("peer", "beta")] == 1
    assert found["manela_peer_here", ("peer", "gamma")] == 0
    assert found["manela_peer_believed", ("peer", "beta")] == 1
    assert found["manela_peer_believed", ("peer", "gamma")] == 0
    assert found["manela_peer_alike", ("peer", "beta")] == 0.98
    assert ("manela_peer_alike", ("peer", "gamma")) not in found
    assert found["manela_sent_bytes_total", ("peer", "gamma")] == 7
    assert found["manela_refusals_total", ("peer", "beta"), ("reason", "not adjacent")] == 2
    assert found["manela_alarms_total", ("kind", "outliers"), ("peer", "beta")] == 7
    assert found["manela_refusals_total", ("peer", 'odd "\\\n'), ("reason", "unknown")] == 4


def test_there_are_a_page_its_numbers_and_metrics(page):
    status, text, headers = ask(page, "/")
    assert status == 200
    assert "<title>manela host</title>" in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    status, text, headers = ask(page, "/status.json?now")
    assert (status, json.loads(text)) == (200, STATUS)
    assert headers["Content-Type"].startswith("application/json")
    status, text, headers = ask(page, "/metrics")
    assert (status, text) == (200, write_metrics(STATUS))
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert ask(page, "/metrics", "HEAD")[:2] == (200, "")
    assert ask(page, "/../agent.toml")[0] == 404
    assert ask(page, "/status.json", "POST")[0] == 501


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:7447", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("evil.example", 421), ("[", 421), ("", 421)],
)
def test_a_name_that_is_not_this_machines_is_refused(page, host, status):
    assert ask(page, "/status.json", Host=host)[0] == status


def test_whoever_says_nothing_or_little_keeps_nobody_else_out_for_long():
    page = StatusServer("127.0.0.1:0", lambda: STATUS, patience=0.5)
    port = int(page.url.split(":")[2].strip("/"))
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
    try:
        until = time.monotonic() + 60
        while True:
            for one in idle[:16]:
                with contextlib.suppress(OSError):
                    one.send(b"G")
            try:
                assert ask(page, "/metrics")[0] == 200
                break
            except (OSError, http.client.HTTPException):
                assert time.monotonic() < until
                time.sleep(0.05)
        assert sum("process_request_thread" in thread.name for thread in threading.enumerate()) <= 16
    finally:
        for one in idle:
            one.close()
        page.close()


def test_where_no_thread_can_be_had_the_place_is_free_again(page, monkeypatch):
    def fail(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        for _ in range(20):
            with pytest.raises((OSError, http.client.HTTPException)):
                ask(page, "/metrics")
    assert ask(page, "/metrics")[0] == 200


def test_an_address_that_is_taken_is_said(page):
    with pytest.raises(AgentError, match=r"watch: cannot listen on 127\.0\.0\.1:\d+: Address already in use"):
        StatusServer(f"127.0.0.1:{page.url.split(':')[2].strip('/')}", lambda: STATUS)


def test_nothing_listens_when_it_is_closed():
    page = StatusServer("localhost:0", lambda: STATUS)
    assert ask(page, "/")[0] == 200
    page.close()
    with pytest.raises(OSError, match="refused"):
        ask(page, "/")


@pytest.fixture
def host():
    edges = [Edge("a", ("b", "alpha")), Edge("b", ("c", "alpha")), Edge("a", ("x", "beta")), Edge("c", ("y", "gamma"))]
    made = make_host(make_terms(dimensions=8), Neighbourhood.build("alpha", edges), None, {})
    made.can_be_saved = True
    return made


def test_a_book_has_own_nodes_and_their_neighbours_and_those_not_shown_are_not_found(host):
    book = make_book(host)
    assert list(book.names) == ["a", "b", "c", "x@beta", "y@gamma"]
    np.testing.assert_array_equal(book.vectors[:3], host.vectors[:, 0])
    assert not book.vectors[3:].any()
    assert {near.node for near in book.recommend("a", 10)} == {"c"}
    book.vectors[:] = 7  # a copy
    assert not (host.vectors == 7).any()


def test_nothing_is_answered_until_it_is_turned_on_nor_after_it_was_turned_off(host):
    answering = Answering("alpha")
    answering.look(host)
    assert answering.find("/api/near", {"node": "a"}) is None
    answering.turn(True)
    assert answering.find("/api/near", {"node": "a"}).status == 503
    answering.look(host)
    found = json.loads(answering.find("/api/near", {"node": "a"}).text)
    assert {near["node"] for near in found["near"]} == {"b", "c"}
    answering.turn(False)
    assert answering.find("/api/near", {"node": "a"}) is None


def test_vectors_in_the_middle_of_a_round_are_not_taken(host):
    answering = Answering("alpha")
    answering.turn(True)
    host.can_be_saved = False
    answering.look(host)
    assert answering.find("/api/near", {"node": "a"}).status == 503
