"""The way to a Ray cluster, without one: addresses, and room on machines; a real one is in tests/e2e."""

import os
import signal
import socket
import types

import pytest

from manela.engines.ray.connection import (
    bring_token,
    check_store,
    connect,
    count,
    is_client,
    last_line,
    machines,
    share_out,
)
from manela.errors import ClusterError


class Ray:
    """What a cluster answers: a double of Ray, which would take seconds to start."""

    exceptions = types.SimpleNamespace(RayError=type("RayError", (Exception,), {}))

    def __init__(self, *answers, initialized=False, nodes=()):
        self.answers, self.initialized, self._nodes = list(answers), initialized, nodes
        self.asked = []

    def is_initialized(self):
        return self.initialized

    def init(self, **options):
        self.asked.append(options["address"])
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as Ray puts its own in place
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        self.initialized = True

    def nodes(self):
        return self._nodes


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("RAY_ADDRESS", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_gcs_rpc_server_connect_timeout_s"):
        monkeypatch.setenv(name, os.environ.get(name, "0"))


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_process_that_is_connected_stays_so():
    ray = Ray(initialized=True)
    assert connect(ray, "10.0.0.1:1") is False
    assert ray.asked == []


def test_without_an_address_ray_is_started_here_or_where_the_environment_says(monkeypatch):
    ray = Ray()
    assert connect(ray, None) is True
    assert ray.asked == ["local"]
    monkeypatch.setenv("RAY_ADDRESS", "somewhere")
    ray = Ray()
    connect(ray, None)
    assert ray.asked == ["somewhere"]


def test_an_address_where_somebody_listens_is_connected_to(port):
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        ray = Ray()
        assert connect(ray, address)
        assert ray.asked == [address]


def test_an_address_where_nobody_listens_is_told_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ray = Ray()
        with pytest.raises(ClusterError, match=f"no Ray cluster answers at {address}"):
            connect(ray, address)
    assert ray.asked == []


@pytest.mark.parametrize("address", ["127.0.0.1:port", "127.0.0.1:99999", "ray://127.0.0.1:"])
def test_an_address_that_is_none_is_told(address):
    with pytest.raises(ClusterError, match="no Ray cluster answers at"):
        connect(Ray(), address)


def test_an_address_from_outside_needs_a_port():
    with pytest.raises(ClusterError, match=r"must be ray://HOST:PORT, as in ray://10.0.0.1:10001, got ray://head"):
        connect(Ray(), "ray://head")


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, OSError, Ray.exceptions.RayError])
def test_what_ray_says_is_told_in_one_line_with_a_hint_from_outside(port, kind):
    with pytest.raises(ClusterError) as caught:
        connect(Ray(kind("trace\ntrace\n  the reason")), f"127.0.0.1:{port}")
    assert str(caught.value) == f"no Ray cluster answers at 127.0.0.1:{port}: the reason"
    with pytest.raises(ClusterError, match="the reason; if it asks for a token, set RAY_AUTH_MODE=token"):
        connect(Ray(kind("the reason")), f"ray://127.0.0.1:{port}")
    with pytest.raises(ClusterError, match="no Ray cluster answers on this machine: the reason"):
        connect(Ray(kind("the reason")), None)


def test_from_outside_a_connection_that_was_aborted_is_tried_once_more(port):
    ray = Ray(ConnectionAbortedError())
    assert connect(ray, f"ray://127.0.0.1:{port}")
    assert len(ray.asked) == 2
    with pytest.raises(ClusterError):
        connect(Ray(ConnectionAbortedError(), ConnectionAbortedError("gone")), f"ray://127.0.0.1:{port}")


@pytest.mark.parametrize("answers", [(), (RuntimeError("x"),)])
def test_what_the_program_does_on_sigterm_stays(answers):
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, handler := lambda *_: None)
        if answers:
            with pytest.raises(ClusterError):
                connect(Ray(*answers), None)
        else:
            connect(Ray(), None)
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_addresses_for_machines_outside_are_told_by_their_beginning():
    assert is_client("ray://10.0.0.1:10001")
    assert not is_client("10.0.0.1:6379")
    assert not is_client("auto")
    assert not is_client(None)


def test_a_token_is_shown_where_there_is_one(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    bring_token()
    assert "RAY_AUTH_MODE" not in os.environ
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("x")
    bring_token()
    assert os.environ.pop("RAY_AUTH_MODE") == "token"
    (tmp_path / ".ray" / "auth_token").unlink()
    monkeypatch.setenv("RAY_AUTH_TOKEN", "x")
    bring_token()
    assert os.environ["RAY_AUTH_MODE"] == "token"
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    bring_token()
    assert os.environ["RAY_AUTH_MODE"] == "disabled"


def test_machines_are_those_that_live_and_have_a_processor():
    nodes = [
        {"Alive": True, "Resources": {"CPU": 4.0}}, {"Alive": False, "Resources": {"CPU": 8.0}},
        {"Alive": True, "Resources": {"CPU": 0.5}}, {"Alive": True, "Resources": {"GPU": 1.0}},
    ]  # fmt: skip
    assert machines(Ray(nodes=nodes)) == [{"CPU": 4.0}]


@pytest.mark.parametrize(
    ("cores", "workers", "threads", "found"),
    [
        ([8], None, None, (1, 8)),
        ([8, 4], None, None, (2, 4)),
        ([8, 4], 1, None, (1, 4)),
        ([8, 4], 3, None, (3, 4)),
        ([8, 8], 3, None, (3, 4)),
        ([3, 3], 4, None, (4, 1)),
        ([8, 4], None, 3, (3, 3)),
        ([8, 4], 2, 1, (2, 1)),
        ([1], 1, 1, (1, 1)),
    ],
)
def test_workers_and_threads_fit_the_machines(cores, workers, threads, found):
    assert share_out([{"CPU": float(core)} for core in cores], workers, threads) == found
    assert sum(core // found[1] for core in cores) >= found[0]


@pytest.mark.parametrize(
    ("cores", "workers", "threads", "words"),
    [
        ([4], 5, None, "5 workers with 1 thread each do not fit: the cluster's machines have 4 cores, room for 4"),
        ([4, 2], 1, 5, "1 worker with 5 threads each do not fit: the cluster's machines have 4, 2 cores, room for 0"),
        ([4], None, 8, "0 workers with 8 threads each do not fit"),
        ([4], 0, None, "0 workers with 4 threads each do not fit"),
        ([], None, None, "no machine of the Ray cluster has a free CPU"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_there_is(cores, workers, threads, words):
    with pytest.raises(ClusterError) as caught:
        share_out([{"CPU": core} for core in cores], workers, threads)
    assert words in str(caught.value)


def test_the_smallest_object_store_decides():
    found = [{"CPU": 1, "object_store_memory": 5e6}, {"CPU": 1, "object_store_memory": 3e6}]
    check_store(found, 3_000_000)
    with pytest.raises(ClusterError, match="must hold 4 MB on every machine, and one has 3 MB"):
        check_store(found, 4_000_000)
    with pytest.raises(ClusterError, match="one has 0 MB"):
        check_store([{"CPU": 1}], 1_000_000)


def test_numbers_of_things_and_last_lines():
    assert [count(number, "worker") for number in (0, 1, 2)] == ["0 workers", "1 worker", "2 workers"]
    assert last_line(ValueError("a\n\n b \n\n")) == "b"
    assert last_line(ValueError()) == "ValueError"
    assert len(last_line(ValueError("x" * 1000))) == 200
