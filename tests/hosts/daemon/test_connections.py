"""Connections that never say who they are."""

import contextlib
import os
import socket
import time

import pytest

from manela.hosts.transport.connections import Connections

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not show open files")  # noqa: PTH112


@contextlib.contextmanager
def connected(count):
    """A listening socket of this process with so many connections, and their other ends."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        ends = []
        for _ in range(count):
            client = stack.enter_context(socket.create_connection(listener.getsockname()))
            accepted, _ = listener.accept()
            ends.append((client, stack.enter_context(accepted)))
        yield listener.getsockname()[1], ends


def is_open(client):
    client.settimeout(0.05)
    try:
        return client.recv(1) != b""
    except TimeoutError:
        return True


def test_silent_ones_are_hung_up_when_they_are_too_many_and_known_ones_stay(monkeypatch):
    monkeypatch.setattr("manela.hosts.transport.connections._FEW", 4)
    monkeypatch.setattr("manela.hosts.transport.connections._YOUNG", 0.0)
    with connected(10) as (port, ends):
        connections = Connections(deadline=60.0)
        host, remote = ends[0][0].getsockname()
        connections.identify(f"ipv4:{host}:{remote}", "beta")
        assert connections.sweep(port) == 0  # none is older than a moment
        time.sleep(0.01)
        assert connections.sweep(port) == 5
        still = [is_open(client) for client, _ in ends]
        assert still[0]
        assert sum(still) == 5


def test_those_over_the_deadline_are_hung_up_and_other_sockets_left_alone():
    with connected(3) as (port, ends), connected(2) as (_, others):
        connections = Connections(deadline=0.0)
        connections.sweep(port)
        time.sleep(0.01)
        assert connections.sweep(port) == 3
        assert not any(is_open(client) for client, _ in ends)
        assert all(is_open(client) for client, _ in others)


def test_a_peer_keeps_its_latest_connections(monkeypatch):
    monkeypatch.setattr("manela.hosts.transport.connections._MOST_OF_ONE", 2)
    with connected(5) as (port, ends):
        connections = Connections(deadline=60.0)
        for client, _ in ends:
            host, remote = client.getsockname()
            connections.identify(f"ipv4:{host}:{remote}", "beta")
        assert connections.sweep(port) == 3


def test_a_port_that_was_used_before_is_identified_again():
    with connected(1) as (port, ends):
        connections = Connections(deadline=0.0)
        host, remote = ends[0][0].getsockname()
        assert connections.identify(f"ipv4:{host}:{remote}", "beta")
        assert not connections.identify(f"ipv4:{host}:{remote}", "beta")
        assert connections.sweep(port) == 0
    with connected(1) as (other, _):
        assert connections.sweep(other) == 0  # and the first one is gone
        assert connections.identify(f"ipv4:{host}:{remote}", "beta")
