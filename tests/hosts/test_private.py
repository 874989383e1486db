"""Private nodes: learned with inside their host, and shown to no peer, whatever it lists or asks for."""

import numpy as np
import pytest
from harness import MemoryTransport, connect, learners_of, make_terms, run_by_turns

from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.walks.host import make_host
from manela.kernels.cpu.half import to_half

HIDDEN = "hidden-node"
RING = [("n0", "n1"), ("n1", "n2"), ("n2", HIDDEN), (HIDDEN, "n0"), (HIDDEN, "n1")]


def edges_of(host, other):
    """A ring with edges to the ring of another host, of the hidden node too."""
    edges = [Edge(one, (two, host)) for one, two in RING]
    return edges + [Edge(name, (name, other)) for name in ("n0", "n1", "n2", HIDDEN)]


class Listener(MemoryTransport):
    """Keeps what a host is sent, and the vectors that the other hosts' hidden nodes had then."""

    heard = b""
    vectors: list

    async def call(self, peer, kind, content, largest=2**28):
        """Send a request and keep the answer."""
        answer = await super().call(peer, kind, content, largest)
        host = self.services[peer].host
        row = host.read_rows(host.tables, np.array([host.neighbourhood.rows[HIDDEN]]))[0, 0]
        self.vectors.append(row.copy())
        self.heard += content if self.name == "a" else answer
        return answer


def listen(walks, private):
    """Let two hosts learn; returns the hosts, and what b heard of a's hidden node."""
    terms = make_terms(walks=walks, dimensions=8, rounds=4, pairs=4_000, pool=50)
    hosts = {
        "a": make_host(terms, Neighbourhood.build("a", edges_of("a", "b"), private=private)),
        "b": make_host(terms, Neighbourhood.build("b", edges_of("b", "a"))),
    }
    services = connect(hosts)
    for name, service in services.items():
        service.transport = Listener(name, services)
        service.transport.vectors = []

    async def learn():
        learners = learners_of(services)
        for learner in learners:
            await learner.meet_all(1.0)
        for learner in learners:
            await learner.run()

    run_by_turns(learn())
    return hosts, services


@pytest.mark.parametrize("walks", [False, True])
def test_nothing_of_a_private_node_is_disclosed(walks):
    hosts, services = listen(walks, {HIDDEN})
    heard = services["b"].transport.heard + services["a"].transport.heard
    assert f"{HIDDEN}@a".encode() not in heard
    for vector in services["b"].transport.vectors:
        assert vector.tobytes() not in heard
        assert to_half(vector).tobytes() not in heard
    assert "not adjacent" in services["a"].contacts["b"].refusals  # b lists the edge, and is refused
    assert {name for name, _ in hosts["b"].neighbourhood.remotes} >= {HIDDEN}
    assert hosts["a"].sessions.count_neighbours("b") == 3
    assert len(hosts["a"].peers["b"].link.arcs) == 3
    start = make_host(hosts["a"].terms, hosts["a"].neighbourhood)
    row = start.neighbourhood.rows[HIDDEN]
    assert not np.array_equal(start.vectors[row], hosts["a"].vectors[row])  # it has learned


@pytest.mark.parametrize("walks", [False, True])
def test_the_same_node_is_disclosed_while_it_is_public(walks):
    _, services = listen(walks, set())
    heard = services["b"].transport.heard + services["a"].transport.heard
    assert f"{HIDDEN}@a".encode() in heard
    assert any(
        vector.tobytes() in heard or to_half(vector).tobytes() in heard for vector in services["b"].transport.vectors
    )


def test_a_change_of_privacy_is_a_change_of_the_neighbourhood():
    public, private = (Neighbourhood.build("a", [Edge("x", ("y", "a"))], private=names) for names in ((), ("x", "z")))
    assert public.digest != private.digest
    assert private.is_private.tolist() == [True, False]
    assert private.private == {"x"}
