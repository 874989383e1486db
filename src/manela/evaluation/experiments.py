"""The paper's experiments: each part is run piece by piece, and every piece that is done is kept in a ledger."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.manifold import TSNE
from sklearn.metrics import f1_score

from manela.datasets.generators import stochastic_block_model
from manela.datasets.loading import load_graph, load_labels
from manela.errors import ManelaWarning
from manela.estimators.embedder import Embedder
from manela.estimators.relational_neighbors import RelationalNeighbors
from manela.evaluation.classification import TRAIN_RATIOS, classify, split, take_best
from manela.evaluation.frequencies import explain, fit_power_law
from manela.evaluation.heuristics import HEURISTICS
from manela.evaluation.ledger import Ledger
from manela.evaluation.links import Split, hide_edges, rank_links, sample_nodes, score_vectors
from manela.evaluation.methods import make_embedder, make_scorer
from manela.evaluation.separation import measure_separation
from manela.evaluation.tuning import tune
from manela.graph import Graph
from manela.params import PAPER

FIRST_RATIO = {"blogcatalog": 0.7, "ppi": 0.1, "wikipedia": 0.3}
BIASES = {"blogcatalog": (0.25, 0.25), "ppi": (4.0, 1.0), "wikipedia": (4.0, 0.5)}
"""The paper's r₁, and its p and q, for node classification."""
LINK_RATIO, LINK_BIASES = 0.4, (4.0, 4.0)
"""The same for link prediction."""


@dataclass(frozen=True)
class Plan:
    """How much of everything is done."""

    networks: tuple[str, ...] = ("blogcatalog", "ppi", "wikipedia")
    train_ratios: tuple[float, ...] = TRAIN_RATIOS
    shuffles: int = 10
    walks: int = 10
    pairs_per_node: int = 7450
    link_runs: int = 10
    related: str = "blogcatalog"
    sweep: tuple[float, ...] = tuple(k / 10 for k in range(11))
    sweep_shuffles: int = 3
    tuned_seeds: int = 3


FULL = Plan()
QUICK = Plan(
    networks=("ppi",), train_ratios=(0.1, 0.5, 0.9), shuffles=2, walks=2, pairs_per_node=1500, link_runs=1,
    related="ppi", sweep=(0.0, 0.5, 1.0), sweep_shuffles=1, tuned_seeds=1,
)  # fmt: skip

Tell = Callable[[str], None]
Results = dict[str, Any]


def run_part(part: str, plan: Plan, ledger: Ledger, jobs: int, tell: Tell) -> Results:
    """Do what is not done yet of a part, and return all its results."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManelaWarning)
        return _PARTS[part](_Laboratory(plan, ledger, jobs, tell))


@dataclass(frozen=True)
class _Laboratory:
    """What every part needs."""

    plan: Plan
    ledger: Ledger
    jobs: int
    tell: Tell

    def get(self, part: str, compute: Callable[[], Any], **about: Any) -> Any:
        words = [f"{name}={value}" for name, value in about.items() if isinstance(value, str | int | float)]
        self.tell(f"{part}: {' '.join(words)}")
        return self.ledger.get(part, about, compute)

    def parameters(self, method: str, graph_nodes: int, r1: float, p: float, q: float, seed: int = 0) -> dict[str, Any]:
        if method == "manela":
            pairs = self.plan.pairs_per_node * graph_nodes
            return {"ratios": [r1, round(1 - r1, 10)], "pairs": pairs, "random_state": seed}
        biases = {"p": p, "q": q} if method == "node2vec" else {}
        return {"walks": self.plan.walks, **biases, "random_state": seed}


def _classification(lab: _Laboratory) -> Results:
    """Results by network and method: a row for each train ratio."""
    results: Results = {}
    for network in lab.plan.networks:
        plain, labels = _load(network)
        weighted = load_graph(network)
        results[network] = {}
        for method in ("manela", "deepwalk", "node2vec"):
            # the bar for node2vec is with weights; the paper does not say
            graph = weighted if method == "node2vec" else plain
            parameters = lab.parameters(method, graph.number_of_nodes, FIRST_RATIO[network], *BIASES[network])

            def compute(
                network: str = network, method: str = method, graph: Graph = graph, labels: Any = labels,
                parameters: Any = parameters,
            ) -> Any:  # fmt: skip
                model = _fit(method, parameters, graph, lab.jobs)
                rows = []
                for ratio in lab.plan.train_ratios:
                    lab.tell(f"classification: {network} {method} {ratio:.0%}")
                    scores = classify(
                        model.embedding_, labels, train_ratio=ratio, shuffles=lab.plan.shuffles, jobs=lab.jobs
                    )
                    rows.append({"train_ratio": ratio, **{k: v.tolist() for k, v in asdict(scores).items()}})
                return {"rows": rows, "pairs": model.provenance_["pairs_made"]}

            found = lab.get(
                "classification", compute, network=network, method=method, parameters=parameters,
                weighted=graph.is_weighted, train_ratios=lab.plan.train_ratios, shuffles=lab.plan.shuffles,
            )  # fmt: skip
            results[network][method] = {**found, "parameters": parameters}
        for method in ("relational-neighbors", "most-frequent"):

            def count(method: str = method, plain: Graph = plain, labels: Any = labels) -> Any:
                return {"rows": list(_classify_without_vectors(method, plain, labels, lab.plan))}

            results[network][method] = lab.get(
                "classification", count, network=network, method=method,
                train_ratios=lab.plan.train_ratios, shuffles=lab.plan.shuffles, random_state=0,
            )  # fmt: skip
    return results


def _classify_without_vectors(
    method: str, graph: Graph, labels: npt.NDArray[np.bool_], plan: Plan
) -> Iterable[dict[str, Any]]:
    """Relational Neighbors, or the labels that are most frequent in the training part; same splits as with vectors."""
    kept = np.flatnonzero(labels.any(axis=1))
    for ratio in plan.train_ratios:
        micro: list[float] = []
        macro: list[float] = []
        for train, test in split(len(kept), ratio, plan.shuffles):
            given = np.zeros_like(labels)
            given[kept[train]] = labels[kept[train]]
            if method == "relational-neighbors":
                predicted = RelationalNeighbors().fit(graph, given).predict(labels.sum(axis=1))
            else:
                chances = np.tile(given.mean(axis=0), (len(labels), 1))
                predicted = take_best(chances, labels.sum(axis=1))
            for scores, average in ((micro, "micro"), (macro, "macro")):
                found = f1_score(labels[kept[test]], predicted[kept[test]], average=average, zero_division=0)
                scores.append(float(found))
        yield {"train_ratio": ratio, "micro": micro, "macro": macro}


def _links(lab: _Laboratory) -> Results:
    """Results by method: scores of each run, on 1,024 nodes and on all."""
    graph, _ = _load("ppi")
    methods = ("manela", "deepwalk", "node2vec", *HEURISTICS)
    results: Results = {method: [] for method in methods}
    for run in range(lab.plan.link_runs):

        def compute(run: int = run) -> Any:
            hidden = hide_edges(graph, random_state=run)
            with ThreadPoolExecutor(lab.jobs) as threads:
                scores = threads.map(lambda name: _score_links(lab, hidden, name, run), methods)
                return dict(zip(methods, scores, strict=True))

        about = {"network": "ppi", "run": run, "share": 0.2, "nodes": 1024, "walks": lab.plan.walks}
        about |= {"pairs_per_node": lab.plan.pairs_per_node, "first_ratio": LINK_RATIO, "biases": LINK_BIASES}
        done = lab.get("links", compute, **about)
        for method in methods:
            results[method].append(done[method])
    return results


def _score_links(lab: _Laboratory, hidden: Split, method: str, run: int) -> Results:
    parameters = lab.parameters(method, hidden.graph.number_of_nodes, LINK_RATIO, *LINK_BIASES, seed=run)
    if method in HEURISTICS:
        scorer = make_scorer(method, hidden.graph, {})
    else:
        scorer = score_vectors(_fit(method, parameters, hidden.graph, 1).embedding_)
    return {
        name: asdict(rank_links(scorer, hidden, sample_nodes(hidden, count, run), random_state=run))
        for name, count in (("sampled", 1024), ("all", None))
    }


def _visualisation(lab: _Laboratory) -> Results:
    """Results by r₁: points on the plane, communities, and how clear the boundaries are."""
    graph, communities = stochastic_block_model()
    results: Results = {}
    for r1 in (1.0, 0.75, 0.5):
        parameters = lab.parameters("manela", graph.number_of_nodes, r1, 1.0, 1.0)

        def compute(parameters: Any = parameters) -> Any:
            vectors = _fit("manela", parameters, graph, lab.jobs).embedding_
            directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
            points = TSNE(init="pca", perplexity=30, random_state=0).fit_transform(directions)
            return {
                "points": np.round(points, 2).tolist(),
                "communities": communities.tolist(),
                "vectors": asdict(measure_separation(vectors, communities)),
                "plane": asdict(measure_separation(points, communities, "euclidean")),
            }

        found = lab.get("visualisation", compute, network="sbm", parameters=parameters)
        results[str(r1)] = {**found, "edges": graph.number_of_edges}
    return results


def _relationship(lab: _Laboratory) -> Results:
    """Results by method: how often each node's vector was updated, beside its degree."""
    graph, _ = _load(lab.plan.related)
    results: Results = {"degrees": graph.degrees.tolist(), "network": lab.plan.related, "methods": {}}
    for method in ("deepwalk", "manela"):
        parameters = lab.parameters(method, graph.number_of_nodes, FIRST_RATIO[lab.plan.related], 1.0, 1.0)

        def compute(method: str = method, parameters: Any = parameters) -> Any:
            model: Any = _fit(method, parameters, graph, lab.jobs)
            return {
                "updates": model.updates_.tolist(),
                "law": asdict(fit_power_law(model.updates_)),
                "explained": explain(graph.degrees, model.updates_),
            }

        results["methods"][method] = lab.get(
            "relationship", compute, network=lab.plan.related, method=method, parameters=parameters
        )
    return results


def _sweep(lab: _Laboratory) -> Results:
    """Results by network: micro-F1 at 50 % for each r₁."""
    results: Results = {}
    for network in lab.plan.networks:
        graph, labels = _load(network)
        results[network] = []
        for r1 in lab.plan.sweep:
            parameters = lab.parameters("manela", graph.number_of_nodes, r1, 1.0, 1.0)

            def compute(graph: Graph = graph, labels: Any = labels, parameters: Any = parameters) -> Any:
                vectors = _fit("manela", parameters, graph, lab.jobs).embedding_
                scores = classify(vectors, labels, shuffles=lab.plan.sweep_shuffles, jobs=lab.jobs)
                return {"micro": scores.micro.tolist(), "macro": scores.macro.tolist()}

            found = lab.get(
                "sweep", compute, network=network, first_ratio=r1, parameters=parameters,
                shuffles=lab.plan.sweep_shuffles,
            )  # fmt: skip
            results[network].append({"first_ratio": r1, **found})
    return results


def _tuned(lab: _Laboratory) -> Results:
    """Results by network: the best of what tuning tries, with edge weights, and its scores on other splits."""
    results: Results = {}
    for network in lab.plan.networks:
        graph = load_graph(network)
        labels = load_labels(network).of(graph.nodes)

        def choose(network: str = network, graph: Graph = graph, labels: Any = labels) -> Any:
            trials = tune(
                graph, labels, pairs_per_node=lab.plan.pairs_per_node, preset=PAPER, max_seconds=float("inf"),
                n_jobs=lab.jobs,
                tell=lambda trial: lab.tell(f"tuned: {network} {trial.candidate} {trial.score:.4f}"),
            )  # fmt: skip
            return [{**asdict(trial), "named": str(trial.candidate)} for trial in trials]

        trials = lab.get("tuned", choose, network=network, pairs_per_node=lab.plan.pairs_per_node, random_state=0)
        best = trials[-1]["candidate"]
        results[network] = {**best, "trials": trials, "seeds": []}
        for seed in range(lab.plan.tuned_seeds):
            parameters = {**best, "pairs": lab.plan.pairs_per_node * graph.number_of_nodes, "random_state": seed}

            def compute(graph: Graph = graph, labels: Any = labels, parameters: Any = parameters) -> Any:
                vectors = _fit("manela", parameters, graph, lab.jobs).embedding_
                scores = classify(vectors, labels, shuffles=lab.plan.shuffles, jobs=lab.jobs)
                return {"micro": scores.micro.tolist(), "macro": scores.macro.tolist()}

            found = lab.get(
                "tuned", compute, network=network, parameters=parameters, shuffles=lab.plan.shuffles, seed=seed
            )
            results[network]["seeds"].append(found)
    return results


_PARTS: dict[str, Callable[[_Laboratory], Results]] = {
    "classification": _classification,
    "links": _links,
    "visualisation": _visualisation,
    "relationship": _relationship,
    "sweep": _sweep,
    "tuned": _tuned,
}
PARTS = tuple(_PARTS)


def _load(network: str) -> tuple[Graph, npt.NDArray[np.bool_]]:
    """A network without weights, and its labels."""
    graph = load_graph(network, unweighted=True)
    return graph, load_labels(network).of(graph.nodes)


def _fit(method: str, parameters: dict[str, Any], graph: Graph, jobs: int) -> Embedder:
    """Fit a method: MANELA as the paper has it, the walking ones with one thread so that a seed gives the same bits."""
    if method == "manela":
        parameters = {**PAPER, **parameters}
    model = make_embedder(method, {**parameters, "n_jobs": jobs if method == "manela" else 1})
    fitted: Embedder = model.fit(graph)
    return fitted
