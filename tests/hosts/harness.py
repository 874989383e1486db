"""Hosts for tests: a network split over hosts in memory, and hosts that listen for real."""

import asyncio
from contextlib import asynccontextmanager

import numpy as np

from manela import Graph, Manela
from manela.errors import PeerError, RefusedError, TooLargeError
from manela.hosts.daemon.contacts import Contacts
from manela.hosts.daemon.learner import Learner
from manela.hosts.daemon.service import Service
from manela.hosts.federation import split_graph
from manela.hosts.folder.config import OF_MESSAGES, TWO_VIEWS
from manela.hosts.state.driver import drive
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.terms import PeerOptions, Terms
from manela.hosts.walks.host import make_host
from manela.hosts.wire.calls import bound_reply, decode_reply, encode_reply
from manela.hosts.wire.frames import LARGEST, cut, join
from manela.settings.settings import check_all


def draw_graph(seed, nodes=40, edges=110, weighted=False):
    random = np.random.default_rng(seed)
    sources, targets = random.integers(0, nodes, (2, edges))
    weights = random.lognormal(size=edges) if weighted else None
    return Graph.from_edges(sources, targets, weights, nodes=range(nodes), duplicates="first")


def make_terms(lock_step=False, weighted=False, **parameters):
    """Terms by messages; `walks=True` for the paper's. Peers may see all nodes unless `share` says less."""
    names = ("half", "pool", "away", "noise", "clip", "every", "means", "share")
    own = {"share": 1.0} | {name: parameters.pop(name) for name in names if name in parameters}
    walks = parameters.pop("walks", False)
    start = parameters.pop("start", "random" if walks or lock_step else "neighbours")
    base = Manela.paper().get_params() if walks else OF_MESSAGES
    if start == "spectral":
        base = {**base, **TWO_VIEWS}
    settings = check_all({**base, "dimensions": 8, "rounds": 5, "pairs": 5_000, "n_jobs": 1, **parameters})
    return Terms(
        settings,
        lock_step=lock_step,
        weighted=weighted,
        begins_with_means=start == "neighbours",
        peers=PeerOptions(**own),
    )


def split_over(graph, parts, terms, seed=1):
    """Hosts of a network, and the row of each node in it."""
    if isinstance(parts, int):
        parts = [
            f"h{i}" for i in np.random.default_rng(seed).permutation(np.arange(graph.number_of_nodes) % parts).tolist()
        ]
    pieces, numbers = split_graph(graph, parts)
    order = numbers if terms.lock_step else None
    hosts = {name: make_host(terms, Neighbourhood.build(name, edges, order), order) for name, edges in pieces.items()}
    return hosts, numbers


class MemoryTransport:
    """Calls the services of other hosts; `services` are those that can be reached, `carried` counts bytes."""

    def __init__(self, name, services):
        self.name, self.services = name, services
        self.carried = 0

    async def call(self, peer, kind, content, largest=LARGEST):
        """Send a request and return the reply; refuse a reply of more than `largest` bytes."""
        if peer not in self.services:
            raise PeerError(f"{peer} cannot be reached")
        try:
            answer = await self.services[peer].serve(self.name, kind, join(cut(content, 1)))
        except RefusedError as refusal:
            raise type(refusal)(f"{peer} says: {refusal}", remote=True) from refusal
        self.carried += len(content) + len(answer)
        if len(answer) > largest:
            raise TooLargeError(f"an answer may have {largest:,} bytes, got {len(answer):,}")
        return join(cut(answer, 1))


def connect(hosts, rates=None, **options):
    services = {}
    for host in hosts.values():
        services[host.name] = Service(host, MemoryTransport(host.name, services), Contacts(rates), **options)
    return services


def meet_all(hosts):
    """Have all hosts meet each other; returns their services."""
    services = connect(hosts)

    async def meet():
        for one in services:
            for two in services:
                if one != two:
                    await services[one].meet(two)

    asyncio.run(meet())
    return services


async def keep_nothing():
    pass


def learners_of(services, **options):
    options = {"wait": 0.0, "run_beside": at_once, **options}
    return [
        Learner(service, [name for name in services if name != service.host.name], keep_nothing, **options)
        for service in services.values()
    ]


def learn(hosts, **options):
    """Take all hosts through all rounds by turns, each reply in the bytes that would travel."""
    return drive(hosts, carry=carry, **options)


def carry(asker, answerer, request, reply):
    content = encode_reply(answerer, asker.name, reply)
    assert len(content) <= bound_reply(asker, answerer.name, request)
    return decode_reply(asker, answerer.name, request, content)


class TurnLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still while something can be done, and jumps to what is due next."""

    def __init__(self):
        super().__init__()
        self._now, select = 0.0, self._selector.select

        def jump(timeout=None):
            events = select(0)
            if not events and timeout:
                self._now += timeout
            return events

        self._selector.select = jump

    def time(self):
        return self._now


async def at_once(work):
    """Do the work of a host on the event loop, where a learner would take a thread."""
    work()


def run_by_turns(coroutine):
    """Run a coroutine whose waits take no time."""
    with asyncio.Runner(loop_factory=TurnLoop) as runner:
        return runner.run(coroutine)


def gather(hosts, numbers):
    """The vectors of all hosts in the order of the network, shape (n, tables, m); smoothed where they are."""
    found = np.empty((len(numbers), *next(iter(hosts.values())).vectors.shape[1:]), np.float32)
    for host in hosts.values():
        saved = host.save()
        vectors = saved.vectors if saved.smoothed is None else saved.smoothed[:, None]
        found[[numbers[name, host.name] for name in host.neighbourhood.nodes]] = vectors
    return found


@asynccontextmanager
async def listening(host, identities, peers, **options):
    """A host that listens on loopback over TLS: its server, service, and the refusals that it told."""
    from manela.hosts.transport.rpc import Endpoint, RpcServer, RpcTransport

    told = []
    deadline = options.pop("deadline", 5.0)
    known = {name: Endpoint(name, address, (identities[name].certificate.decode(),)) for name, address in peers.items()}
    contacts = Contacts()
    transport = RpcTransport(identities[host.name], known, deadline, contacts.count)
    service = Service(host, transport, contacts, tell=lambda peer, refusal: told.append((peer, refusal)), **options)
    server = RpcServer(
        "127.0.0.1:0", identities[host.name], known, service.serve, service.bound_request, service.refuse, deadline,
        contacts.count,
    )  # fmt: skip
    await server.start()
    try:
        yield server, service, told
    finally:
        await transport.close()
        await server.stop(0.1)


@asynccontextmanager
async def calling(identities, name, server, of="a", deadline=5.0):
    """What a peer of this name calls a listening host with."""
    from manela.hosts.transport.rpc import Endpoint, RpcTransport

    peers = {of: Endpoint(of, f"127.0.0.1:{server.port}", (identities[of].certificate.decode(),))}
    transport = RpcTransport(identities[name], peers, deadline, lambda *_: None)
    try:
        yield transport
    finally:
        await transport.close()


def distances(graph, row, most):
    """Nodes within some hops of a node."""
    reached, edge = {row}, {row}
    for _ in range(most):
        edge = {int(x) for v in edge for x in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]} - reached
        reached |= edge
    return reached


def circles(graph, rows, hops):
    """The edges that agents of these nodes may know: those between nodes within some hops of one of them."""
    found = set()
    for row in rows:
        near = distances(graph, row, hops)
        found |= {frozenset((v, int(x))) for v in near for x in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
                  if int(x) in near}  # fmt: skip
    return found


def draw_ring(nodes, hosts):
    """A ring where circles are small, each node tied to the next two, and each host with a piece of it."""
    rows = np.arange(nodes)
    graph = Graph.from_edges(np.tile(rows, 2), np.concatenate(((rows + 1) % nodes, (rows + 2) % nodes)))
    return graph, [f"h{row * hosts // nodes}" for row in rows]


def infer(host, disclosures, numbers, known):
    """Edges that a host was told by ids, and those told by a vector that is known to be some node's."""
    edges, by_vector = set(), set()
    for disclosure in disclosures:
        if disclosure["kind"] == "edge":
            edges.add(frozenset((numbers[disclosure["own"], host], numbers[disclosure["other"], disclosure["peer"]])))
        elif disclosure["kind"] == "walk" and disclosure["steps"] == 1 and disclosure["vector"] in known:
            by_vector.add(frozenset((numbers[disclosure["through"], disclosure["peer"]], known[disclosure["vector"]])))
    return edges, {edge for edge in by_vector if len(edge) == 2}
