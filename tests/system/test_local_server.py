"""A web server for this machine; what it holds back is tested in tests/hosts/daemon/test_status_server.py."""

import http.client
import socket

import pytest

from manela.errors import AgentError
from manela.system.local_server import LocalServer, Reply, is_local


@pytest.fixture
def server():
    found = LocalServer("127.0.0.1:0", lambda path, query: Reply("text/plain", f"{path} {sorted(query.items())}"))
    yield found
    found.close()


def ask(server, path):
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.split(":")[2].strip("/")), timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_paths_and_queries_arrive_as_they_were_meant(server):
    assert ask(server, "/near?node=a%20b%26c&count=3&empty=") == (
        200, "/near [('count', '3'), ('empty', ''), ('node', 'a b&c')]",
    )  # fmt: skip


@pytest.mark.parametrize("query", ["&".join(f"f{number}=1" for number in range(30)), "node=%ff%fe"])
def test_a_query_that_is_none_is_refused(server, query):
    assert ask(server, f"/near?{query}")[0] == 400


def test_only_names_of_this_machine_are_local():
    assert [is_local(host) for host in ("127.0.0.1", "::1", "localhost", "10.0.0.1", "example.org", "")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


def test_whoever_is_connected_and_says_nothing_does_not_hold_up_the_end():
    server = LocalServer("127.0.0.1:0", lambda path, query: Reply("text/plain", path), patience=3600.0)
    with socket.create_connection(("127.0.0.1", int(server.url.split(":")[2].strip("/")))) as idle:
        idle.send(b"GET /status.json HTTP/1.1\r\n")
        server.close()


def test_an_address_that_is_taken_is_said(server):
    with pytest.raises(AgentError, match="cannot listen on"):
        LocalServer(server.url.removeprefix("http://").strip("/"), lambda *_: Reply("text/plain", ""))


@pytest.mark.parametrize("port", [65536, 99999])
def test_a_port_that_is_none_is_said(port):
    with pytest.raises(AgentError, match=f"cannot listen on 127.0.0.1:{port}: a port must be from 0 to 65535, got"):
        LocalServer(f"127.0.0.1:{port}", lambda *_: Reply("text/plain", ""))
