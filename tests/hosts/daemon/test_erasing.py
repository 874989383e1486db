"""Erasure between hosts: requests, receipts, limits, and two daemons of which one removes a node."""

import asyncio
import logging
import socket

import numpy as np
import pytest
from harness import connect, draw_graph, make_terms, split_over

from manela.errors import (
    MalformedError,
    OutputError,
    PeerError,
    RefusedError,
    TooLargeError,
    TooOftenError,
    TooSlowError,
)
from manela.hosts.daemon.daemon import Daemon
from manela.hosts.daemon.erasing import Eraser
from manela.hosts.folder.config import Config
from manela.hosts.folder.erasure import erase_nodes, find_requests, list_requests
from manela.hosts.folder.home import STARTS, export, init
from manela.hosts.folder.identity import CERTIFICATE, read_certificate
from manela.hosts.folder.store import Store
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.erasure import MOST_ERASED, Erasure, Receipt
from manela.hosts.state.neighbourhood import Edge
from manela.hosts.state.terms import PeerOptions, RateLimits
from manela.hosts.wire.calls import FORGET
from manela.hosts.wire.codec import LARGEST_ERASURE, encode


def services_of(forget, rates=None):
    hosts, _ = split_over(draw_graph(1), 2, make_terms(dimensions=8))
    return connect(hosts, rates, forget=forget)


def test_a_peer_is_asked_by_the_name_that_its_certificate_gives():
    asked = []

    def forget(peer, names):
        asked.append((peer, names))
        return Receipt("abc", 5)

    services = services_of(forget)
    assert asyncio.run(services["h0"].ask_to_forget("h1", ["ann", "bob"])) == Receipt("abc", 5)
    assert asked == [("h0", ("ann", "bob"))]


def test_a_request_has_its_own_bound():
    service = services_of(None)["h0"]
    assert service.bound_request("h1", FORGET) == LARGEST_ERASURE
    with pytest.raises(MalformedError, match="there is no call named Forget"):  # of a host without files
        asyncio.run(service.serve("h1", FORGET, encode(Erasure(("ann",)))))


@pytest.mark.parametrize("content", [b"", b"\xff", encode(Erasure(("a\n",)))])
def test_nonsense_is_refused_before_anything_is_done(content):
    service = services_of(lambda peer, names: pytest.fail("was asked"))["h0"]
    with pytest.raises(RefusedError):
        asyncio.run(service.serve("h1", FORGET, content))


def test_a_flood_is_refused():
    rates = RateLimits(requests=101.0, longest_wait=1e-3, at_once=40)
    service = services_of(lambda peer, names: Receipt("abc", 5), rates)["h0"]
    content = encode(Erasure(("ann",)))

    async def flood():
        calls = (service.serve("h1", FORGET, content) for _ in range(40))
        return await asyncio.gather(*calls, return_exceptions=True)

    answers = asyncio.run(flood())
    assert {type(answer) for answer in answers} == {bytes, TooOftenError}


def test_a_disk_that_is_full_is_not_the_peers_fault():
    def forget(peer, names):
        raise OutputError("disk full")

    with pytest.raises(TooSlowError, match="cannot forget nodes now"):
        asyncio.run(services_of(forget)["h0"].serve("h1", FORGET, encode(Erasure(("ann",)))))


# waiting requests


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "alpha"
    init(folder, Config("alpha", "127.0.0.1:0", {"dimensions": 8}))
    with Store(folder) as store:
        store.add_peer("beta", "b:1", "PEM")
        store.put(STARTS, "1")
        store.add_edges(Edge(f"n{i}", ("x", "beta")) for i in range(MOST_ERASED + 1))
    erase_nodes(folder, [f"n{i}" for i in range(MOST_ERASED + 1)])
    return folder


class Peer:
    """Stands for a service; fails until `failures` are used up."""

    def __init__(self, failures=()):
        self.failures, self.asked = list(failures), []

    async def ask_to_forget(self, peer, names):
        self.asked.append((peer, len(names)))
        if self.failures:
            raise self.failures.pop(0)
        return Receipt("abc", 5)


async def look_until(eraser, service, is_over, peers=("beta",)):
    while not is_over():
        eraser.look(service, peers)
        await asyncio.sleep(0)
    await eraser.end()


def test_all_is_asked_in_messages_of_bounded_size(home):
    service = Peer()
    with Store(home) as store, Store(home) as second:
        eraser = Eraser(store, second, 1.0)
        asyncio.run(asyncio.wait_for(look_until(eraser, service, lambda: not find_requests(store)), 240))
        assert service.asked == [("beta", MOST_ERASED), ("beta", 1)]
        assert {request.receipt for request in list_requests(store)} == {"abc"}


def test_a_peer_that_is_away_or_refuses_is_asked_again_after_a_restart(home):
    service = Peer([PeerError("away")])
    with Store(home) as store, Store(home) as second:
        eraser = Eraser(store, second, 1.0)
        asyncio.run(asyncio.wait_for(look_until(eraser, service, lambda: not service.failures), 240))
        assert find_requests(store)
        eraser = Eraser(store, second, 1.0)
        asyncio.run(asyncio.wait_for(look_until(eraser, service, lambda: not find_requests(store)), 240))


def test_who_is_no_peer_now_is_not_asked(home):
    service = Peer([TooLargeError("full")])

    async def look():
        eraser.look(service, ["gamma"])
        await eraser.end()

    with Store(home) as store, Store(home) as second:
        eraser = Eraser(store, second, 1.0)
        asyncio.run(look())
    assert service.asked == []


# two daemons

RING = [(f"n{i}", f"n{(i + step) % 12}") for i in range(12) for step in (1, 3)]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def pair(tmp_path):
    """Two hosts with edges between nodes of the same name."""
    homes, ports = {name: tmp_path / name for name in ("alpha", "beta")}, {}
    options = PeerOptions(start=20.0, wait=1.0, finish=20.0)
    for name, home in homes.items():
        ports[name] = free_port()
        init(
            home,
            Config(name, f"127.0.0.1:{ports[name]}", {"dimensions": 8, "rounds": 3, "pairs": 2_000}, peers=options),
        )
    for name, other in (("alpha", "beta"), ("beta", "alpha")):
        with Store(homes[name]) as store:
            store.add_peer(other, f"127.0.0.1:{ports[other]}", read_certificate(homes[other] / CERTIFICATE))
            store.add_edges(Edge(one, (two, name)) for one, two in RING)
            store.add_edges(Edge(f"n{i}", (f"n{i}", other)) for i in range(12))
    return homes


class Watcher(logging.Handler):
    """Calls a function for each event of the daemons."""

    def __init__(self, watch):
        super().__init__()
        self.watch = watch

    def emit(self, record):
        self.watch(record.getMessage(), record.fields)


def test_a_node_that_is_removed_at_one_host_is_forgotten_at_the_other(pair):
    daemons, done, seen = {}, [], []

    def watch(event, fields):
        seen.append((event, fields))
        if event == "done":
            done.append(event)
            if len(done) == 2:
                erase_nodes(pair["alpha"], ["n0"])
        taken = [row for row, (event, fields) in enumerate(seen) if event == "edges taken" and fields["nodes"] == 11]
        is_learned = bool(taken) and any(event == "done" for event, _ in seen[taken[0] :])
        has_receipt = any(fields.get("action") == "receipt" for event, fields in seen if event == "action")
        if is_learned and has_receipt:
            for daemon in daemons.values():
                daemon.learner.end()

    async def run():
        await asyncio.wait_for(asyncio.gather(*(daemon.run(False) for daemon in daemons.values())), 240)

    logger, watcher = logging.getLogger("manela.daemon"), Watcher(watch)
    level = logger.level
    logger.addHandler(watcher)
    logger.setLevel(logging.INFO)
    try:
        with Store(pair["alpha"]) as alpha, Store(pair["beta"]) as beta:
            daemons |= {name: Daemon(pair[name], store) for name, store in (("alpha", alpha), ("beta", beta))}
            asyncio.run(run())
    finally:
        logger.removeHandler(watcher)
        logger.setLevel(level)
    with Store(pair["beta"]) as store:
        assert {edge.other for edge in store.edges("alpha")} == {(f"n{i}", "alpha") for i in range(1, 12)}
        assert store.nodes() == {f"n{i}" for i in range(12)}  # its own n0 is another node
        assert store.add_edges([Edge("n1", ("n0", "alpha"))]).erased == 1
        assert store.add_edges([Edge("n1", ("n0", "beta"))]).erased == 0
        store.check()
    with Store(pair["alpha"]) as store:
        (request,) = list_requests(store)
        assert (request.peer, len(request.receipt)) == ("beta", 32)
        assert find_requests(store) == {}
        store.check()
    assert "n0" not in VectorsFile(pair["alpha"]).load().names
    assert np.isfinite(export(pair["beta"]).vectors).all()
