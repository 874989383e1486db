"""How connections are told apart; what is hung up is in tests/hosts/daemon/test_connections.py."""

import os
import socket

import pytest

from manela.hosts.transport import connections as module
from manela.hosts.transport.connections import Connections, parse_address

needs_proc = pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"),  # noqa: PTH112
    reason="the system does not show open files",
)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("ipv4:127.0.0.1:7446", ("127.0.0.1", 7446)),
        ("ipv6:[::1]:7446", ("::1", 7446)),
        ("ipv6:%5B2001:db8::0:1%5D:80", ("2001:db8::1", 80)),
        ("ipv6:%5B::ffff:10.0.0.1%5D:80", ("10.0.0.1", 80)),  # an old address that came by the new protocol
        ("ipv6:%5Bfe80::1%25eth0%5D:80", ("fe80::1", 80)),
        ("unix:/tmp/socket:80", None),
        ("ipv4:example.org:80", None),
        ("ipv4:10.0.0.1:http", None),
        ("ipv4:10.0.0.1:-1", None),
        ("ipv4:10.0.0.1", None),
        ("ipv4:", None),
        ("", None),
    ],
)
def test_addresses_are_read_as_grpc_writes_them(address, found):
    assert parse_address(address) == found


def test_the_first_request_of_a_connection_is_told_from_later_ones():
    connections = Connections(deadline=1.0)
    assert connections.identify("ipv4:10.0.0.1:5000", "beta")
    assert not connections.identify("ipv4:10.0.0.1:5000", "beta")
    assert connections.identify("ipv4:10.0.0.1:5001", "beta")
    assert not connections.identify("ipv6:%5B::ffff:10.0.0.1%5D:5001", "beta")
    assert not connections.identify("unix:/somewhere", "beta")


def test_so_many_addresses_are_remembered_and_not_more(monkeypatch):
    monkeypatch.setattr(module, "_MOST_REMEMBERED", 10)
    connections = Connections(deadline=1.0)
    for port in range(1000):
        connections.identify(f"ipv4:10.0.0.1:{port}", "beta")
        assert len(connections._peers) <= 10


def test_an_address_that_goes_on_asking_is_remembered_whatever_others_do(monkeypatch):
    monkeypatch.setattr(module, "_MOST_REMEMBERED", 10)
    connections = Connections(deadline=1.0)
    connections.identify("ipv4:10.0.0.1:5000", "beta")
    for port in range(1000):
        connections.identify(f"ipv4:10.0.0.2:{port}", "hostile")
        assert not connections.identify("ipv4:10.0.0.1:5000", "beta")


@needs_proc
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_silent_connection_is_hung_up_and_one_by_a_known_certificate_is_not(family, host):
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with listener:
        port = listener.getsockname()[1]
        with socket.create_connection((host, port)) as known, socket.create_connection((host, port)) as silent:
            ends = [listener.accept()[0] for _ in range(2)]
            connections = Connections(deadline=-1.0)  # over before it begins
            number = known.getsockname()[1]
            connections.identify(f"ipv4:{host}:{number}" if "." in host else f"ipv6:[{host}]:{number}", "beta")
            assert connections.sweep(port) == 1
            silent.settimeout(10)
            assert silent.recv(1) == b""
            for end in ends:
                if end.getpeername()[1] == number:
                    end.sendall(b"x")
            known.settimeout(10)
            assert known.recv(1) == b"x"
            for end in ends:
                end.close()


@needs_proc
def test_where_nothing_is_open_nothing_is_hung_up():
    with socket.socket() as alone:
        alone.bind(("127.0.0.1", 0))
        assert Connections(deadline=-1.0).sweep(alone.getsockname()[1]) == 0
