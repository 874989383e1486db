"""What hosts could find out of other hosts' edges: attacks on what one host of four sees, by exchange and noise."""

import math
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from benchmarks.table import table
from manela import Graph, ManelaWarning
from manela.analysis.classification import classify
from manela.formats.datasets import stochastic_block_model
from manela.formats.loading import load_graph, load_labels
from manela.hosts.exposure import Record, attack, average_precision, count_common, read_record
from manela.hosts.federation import assign, split_graph
from manela.hosts.folder.config import Config
from manela.hosts.state.driver import drive
from manela.hosts.state.host import Host
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.noise import find_epsilon
from manela.hosts.state.terms import PeerOptions
from manela.hosts.walks.host import make_host
from manela.hosts.wire.calls import decode_reply, encode_reply

NOISES = (0.0, PeerOptions().noise)
EPSILONS = (1.0, 3.0, 10.0, 30.0, 0.0)
"""Bounds on what means and sums disclose; 0 for none."""
MOST_SEEN = 2000
"""Nodes whose pairs are scored; with more, the table of pairs does not fit."""


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    blocks, communities = stochastic_block_model(nodes=1024, communities=16, inside=0.1, between=0.005)
    networks: list[tuple[str, Graph, Any, str]] = [
        ("SBM", blocks, sp.csr_matrix(np.eye(16)[communities]), "community"),
        ("PPI", load_graph("ppi"), load_labels("ppi").of(load_graph("ppi").nodes), "community"),
        ("BlogCatalog", load_graph("blogcatalog", unweighted=True), None, "random"),
    ]
    networks[2] = (*networks[2][:2], load_labels("blogcatalog").of(networks[2][1].nodes), networks[2][3])
    for name, graph, labels, by in networks:
        where = assign(graph, 4, by, 0)
        with table(
            f"{name}, 4 hosts, split: {by}", "attack", "average precision", "over chance", "AUC", "micro-F1"
        ) as rows:  # fmt: skip
            for noise in sorted(set(NOISES)):
                _try_messages(rows, graph, labels, where, noise)
            _try_walks(rows, graph, labels, where)
        print()
    print("Edges between nodes of other hosts that one host has seen. By messages no vector of any other node travels.")
    print()
    with table(
        "epsilon of means and sums (delta 1e-5)", "what a start and its rounds spent", *(name for name, *_ in networks)
    ) as rows:
        for epsilon in EPSILONS:
            found = [_try_epsilon(graph, labels, epsilon) for _, graph, labels, _ in networks]
            spent = max(spent for _, spent in found)
            rows.row(f"{epsilon:g}" if epsilon else "no bound", f"{spent:.3g}", *(f"{score:.4f}" for score, _ in found))
    print()
    differences()


def _try_epsilon(graph: Graph, labels: Any, epsilon: float) -> tuple[float, float]:
    """Micro-F1 of four hosts of random nodes, and the largest epsilon that one of them spent."""
    hosts, _, vectors = _learn(graph, assign(graph, 4, "random", 0), {}, PeerOptions(epsilon=epsilon, share=1.0), None)
    spent = max(host.noise.ledger.spent for host in hosts.values())
    return float(classify(vectors, labels, jobs=2).micro.mean()), find_epsilon(math.sqrt(spent), PeerOptions().delta)


def differences() -> None:
    """What two sums of which only one holds a vector tell of it; the attacker knows all other vectors."""
    with table(
        "the vector of a node that no peer sees, by differences of moments",
        "shown",
        "cosine: total",
        "products",
        "products: with another node",
    ) as rows:
        for name, hidden, act in (
            ("one hidden: a peer shows its edges in two steps, or two peers pool", 1, None),
            ("20 hidden: two peers pool", 20, None),
            ("60 hidden: one of them is removed, in the same frame", 60, "remove"),
            ("60 hidden: one of them is removed, and the host starts again", 60, "restart"),
            ("60 hidden: both, in 16 releases each", 60, "releases"),
        ):
            found = np.array([_subtract(seed, hidden, act) for seed in range(9)])
            shown = "moments" if found.any() else "none"
            cosines = (f"{value:.3f}" for value in np.median(found, axis=0))
            rows.row(name, shown, *(cosines if found.any() else ("", "", "")))


def _subtract(seed: int, hidden: int, act: str | None) -> tuple[float, float, float]:
    """The cosines of two guesses of a hidden node's vector with what it is, and of the second with another's."""
    random = np.random.default_rng(seed)
    names = [f"n{row}" for row in range(hidden + 64)]
    edges = [Edge(name, ("x", "b")) for name in names[hidden:]]
    edges += [Edge(names[row], (names[int(random.integers(0, row))], "a")) for row in range(1, len(names))]
    host: Any = make_host(
        Config("a", "a:1", {"start": "random"}, peers=PeerOptions()).terms(seed), Neighbourhood.build("a", edges)
    )
    drive({"a": host})
    target, other = (row / np.linalg.norm(row) for row in (host.vectors[0, 0], host.vectors[hidden // 2, 0]))
    sums = []
    for step in range(2):
        if step == 1 and act in ("remove", "restart", "releases"):
            kept = [edge for edge in edges if names[0] not in (edge.own, edge.other[0] if edge.other else "")]
            kept += [Edge(name, None) for name in names[1:]]
            host = host.renew(Neighbourhood.build("a", kept))
            if act != "remove":
                host.publisher.sums = type(host.publisher.sums)()
        total, products = 0.0, 0.0
        for _ in range(16 if act == "releases" else 1):
            host.version += 1
            host.publisher._means_due = 0
            host.publisher.show()
            published = list(host.publisher._published.steps.values())[-1]
            if not host.trust.show_totals(host.own, host.own - len(host.edge_rows)) or not published.moments:
                return 0.0, 0.0, 0.0
            total = total + published.moments[0].total.astype(float)
            products = products + published.moments[0].products.astype(float)
        sums.append((total, products))
    total, products = (before - after for before, after in zip(*sums, strict=True))
    if not np.any(total):
        return 1e-9, 1e-9, 1e-9  # nothing has changed
    values, directions = np.linalg.eigh(products)
    guess = directions[:, np.argmax(np.abs(values))]
    return abs(float(total @ target) / np.linalg.norm(total)), abs(float(guess @ target)), abs(float(guess @ other))


def _try_messages(rows: Any, graph: Graph, labels: Any, where: list[str], noise: float) -> None:
    disclosures: list[dict[str, Any]] = []
    hosts, numbers, vectors = _learn(graph, where, {}, PeerOptions(noise=noise, share=1.0), disclosures)
    near = hosts["host1"].neighbourhood
    score = f"{classify(vectors, labels, jobs=2).micro.mean():.4f}"
    ids = np.array([numbers[node] for node in near.remotes])
    some = np.sort(np.random.default_rng(0).permutation(len(ids))[:MOST_SEEN])
    truth = _truth(graph, ids[some])
    best: dict[str, tuple[float, Any]] = {}
    record = _choose(read_record(disclosures, near), some)
    upper = np.triu_indices(len(some), 1)
    common = count_common(near)[np.ix_(some, some)]
    for name, scores in {**attack(record, near), "own edges: common neighbours": common}.items():
        found = scores[: len(some)][upper]
        kind = name.partition(" by ")[0] + (", " + name.partition(", ")[2] if " by " in name else "")
        precision = average_precision(truth, found)
        if precision > best.get(kind, (-1.0, None))[0]:
            best[kind] = (precision, found)
    for kind, (precision, found) in best.items():
        auc = roc_auc_score(truth, found)
        rows.row(
            f"by messages, noise {noise:g}", kind, f"{precision:.3f}", f"{precision / truth.mean():.1f}x",
            f"{auc:.3f}", score,
        )  # fmt: skip


def _choose(record: Record, some: np.ndarray) -> Record:
    """What is known of some of the nodes that were seen, and of own ones."""
    rows = np.concatenate((some, np.arange(record.seen, len(record.nodes))))
    views = {at: view[rows] for at, view in record.views.items()}
    return Record([record.nodes[row] for row in rows], len(some), views)


def _try_walks(rows: Any, graph: Graph, labels: Any, where: list[str]) -> None:
    """Equal bits of vectors seen as a neighbour and at the end of a walk; and vectors of nodes outside the circle."""
    owners: dict[bytes, int] = {}
    seen: dict[int, np.ndarray] = {}
    certain: set[tuple[int, int]] = set()
    hosts, numbers, vectors = _learn(
        graph, where, {"exchange": "walks", "rounds": 20, "pairs": 600 * graph.number_of_nodes},
        PeerOptions(half=False, share=1.0), None, lambda hosts, numbers: _spy(hosts, numbers, owners, seen, certain),
    )  # fmt: skip
    near = hosts["host1"].neighbourhood
    score = f"{classify(vectors, labels, jobs=2).micro.mean():.4f}"
    inside = {numbers[node] for node in near.remotes}
    others = graph.to_scipy()[sorted(inside)][:, sorted(inside)].nnz // 2
    found = {(a, b) for a, b in certain if a in inside and b in inside}
    rows.row("by walks", "equal bits: edges found with certainty", f"{len(found) / max(1, others):.3f}", "", "", score)
    own = {numbers[node, "host1"] for node in near.nodes}
    ids = np.array(sorted(set(seen) - inside - own))
    if len(ids) > 1:
        some = np.sort(np.random.default_rng(0).permutation(len(ids))[:MOST_SEEN])
        truth = _truth(graph, ids[some])
        rows_of = np.stack([seen[row] for row in ids[some].tolist()])
        units = rows_of / np.linalg.norm(rows_of, axis=1, keepdims=True)
        cosines = (units @ units.T)[np.triu_indices(len(some), 1)]
        if truth.any():
            precision = average_precision(truth, cosines)
            rows.row(
                "by walks", f"outside the circle, {len(ids):,} nodes: cosine", f"{precision:.3f}",
                f"{precision / truth.mean():.1f}x", f"{roc_auc_score(truth, cosines):.3f}", score,
            )  # fmt: skip


def _spy(hosts: dict[str, Any], numbers: Any, owners: Any, seen: Any, certain: Any) -> None:
    """Look at what host1 gets by walks, knowing whose vector each is, as the worst of attackers would find out."""

    def remember() -> None:
        for name, host in hosts.items():
            for node, vector in zip(host.neighbourhood.nodes, host.vectors[:, 0], strict=True):
                owners[vector.tobytes()] = numbers[node, name]

    remember()
    for host in hosts.values():
        commit = host._commit

        def watch(plan: Any, commit: Any = commit) -> None:
            commit(plan)
            remember()

        host._commit = watch
    spy = hosts["host1"]
    receive = spy.receive

    def take(peer: str, request: Any, reply: Any) -> Any:
        link = spy.peers.links[peer]
        known = {vector.tobytes() for vector in reply.neighbours[:, 0]}
        for place, target in enumerate(reply.index.tolist()):
            if target >= 0:
                content = reply.vectors[target, 0].tobytes()
                owner = owners.get(content)
                if owner is not None:
                    seen[owner] = reply.vectors[target, 0]
                    if place < len(request.edges) and request.steps[place] == 1:
                        through = spy.neighbourhood.name_arc(int(link.arcs[request.edges[place]]))[1]
                        pair = sorted((numbers[through], owner))
                        certain.add((pair[0], pair[1]))
                known.add(content)
        return receive(peer, request, reply)

    spy.receive = take


def _truth(graph: Graph, ids: np.ndarray) -> np.ndarray:
    """Which pairs of some nodes have an edge."""
    joined = graph.to_scipy()[ids][:, ids].toarray() > 0
    return np.asarray(joined[np.triu_indices(len(ids), 1)])


def _carry(asker: Host, answerer: Host, request: Any, reply: Any) -> Any:
    """A reply as it comes out of the bytes that daemons send."""
    return decode_reply(asker, answerer.name, request, encode_reply(answerer, asker.name, reply))


def _learn(
    graph: Graph,
    where: list[str],
    parameters: dict[str, Any],
    options: PeerOptions,
    disclosures: list[dict[str, Any]] | None,
    prepare: Any = lambda *_: None,
) -> tuple[dict[str, Any], Any, np.ndarray]:
    """Hosts that move by turns and speak by the same bytes as daemons do; host1 is the curious one."""
    pieces, numbers = split_graph(graph, where)
    sizes = {name: where.count(name) for name in pieces}
    hosts = {}
    for seed, (name, edges) in enumerate(pieces.items()):
        config = Config(name, "a:1", parameters, weighted=graph.is_weighted, peers=options)
        hosts[name] = make_host(config.terms(seed), Neighbourhood.build(name, edges), sizes=sizes)
    if disclosures is not None:
        hosts["host1"].on_disclosure = lambda **disclosure: disclosures.append(_copy(disclosure))
    prepare(hosts, numbers)

    drive(hosts, carry=_carry)
    vectors = np.zeros((graph.number_of_nodes, hosts["host1"].terms.settings.dimensions), np.float32)
    for name, host in hosts.items():
        saved = host.save()
        rows = [numbers[node, name] for node in saved.names]
        vectors[rows] = saved.vectors[:, 0] if saved.smoothed is None else saved.smoothed
    return hosts, numbers, vectors


def _copy(disclosure: dict[str, Any]) -> dict[str, Any]:
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in disclosure.items()}
