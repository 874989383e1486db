"""The laboratory: the amount of work of each experiment, and the ledger of finished work, which survives a kill."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela import __version__
from manela.analysis.classification import TRAIN_RATIOS
from manela.analysis.methods import make_embedder
from manela.data.graph import Graph
from manela.errors import FormatError, OutputError
from manela.estimators.embedder import Embedder
from manela.formats.loading import load_graph, load_labels
from manela.settings.parameters import PAIRS_PER_NODE, PAPER
from manela.system.threads import count_cores

FIRST_RATIO = {"blogcatalog": 0.7, "ppi": 0.1, "wikipedia": 0.3}
BIASES = {"blogcatalog": (0.25, 0.25), "ppi": (4.0, 1.0), "wikipedia": (4.0, 0.5)}
"""The paper's r₁, and its p and q, for node classification."""

Tell = Callable[[str], None]
Results = dict[str, Any]


@dataclass(frozen=True)
class Laboratory:
    """The plan, the ledger of finished work, the number of threads, and a function that reports progress."""

    plan: Plan
    ledger: Ledger
    jobs: int
    tell: Tell

    def get(self, part: str, compute: Callable[[], Any], **about: Any) -> Any:
        """Return the result from the ledger, or call `compute` and store its result there."""
        parts = [f"{name}={value}" for name, value in about.items() if isinstance(value, str | int | float)]
        self.tell(f"{part}: {' '.join(parts)}")
        return self.ledger.get(part, about, compute)

    def choose_parameters(
        self, method: str, nodes: int, r1: float, p: float = 1.0, q: float = 1.0, seed: int = 0
    ) -> dict[str, Any]:
        """Return the parameters of a method on a network of `nodes` nodes, with the budget of the plan."""
        if method == "manela":
            pairs = self.plan.pairs_per_node * nodes
            return {"ratios": split_ratio(r1), "pairs": pairs, "random_state": seed}
        biases = {"p": p, "q": q} if method == "node2vec" else {}
        return {"walks": self.plan.walks, **biases, "random_state": seed}


def split_ratio(r1: float) -> list[float]:
    """Return r₁ and 1 − r₁, the share of targets two hops away."""
    return [r1, round(1 - r1, 10)]


def load_plain(network: str) -> tuple[Graph, npt.NDArray[np.bool_]]:
    """Load a network without weights, and its labels."""
    graph = load_graph(network, unweighted=True)
    return graph, load_labels(network).of(graph.nodes)


def fit(method: str, parameters: dict[str, Any], graph: Graph, jobs: int) -> Embedder:
    """Fit a method: MANELA with the paper's settings, others with one thread, so that a seed gives the same bits."""
    if method == "manela":
        parameters = {**PAPER, **parameters}
    model = make_embedder(method, {**parameters, "n_jobs": jobs if method == "manela" else 1})
    fitted: Embedder = model.fit(graph)
    return fitted


class Ledger:
    """Results by experiment and parameters.

    Each line holds `part`, `about` (all parameters and the seed), `result`, `seconds`, `version` and `machine`. A last
    line that was cut off by a crash is dropped. With `frozen` nothing is computed: a missing result raises LookupError.
    """

    def __init__(self, path: Path, frozen: bool = False) -> None:
        self.path, self.frozen = path, frozen
        self.records: list[dict[str, Any]] = []
        self._results: dict[str, Any] = {}
        if path.exists():
            self._load()

    def get(self, part: str, about: dict[str, Any], compute: Callable[[], Any]) -> Any:
        """Return the stored result, or call `compute` and store its result."""
        key = _key(part, about, __version__)
        if key not in self._results:
            if self.frozen:
                raise LookupError(key)
            started = time.perf_counter()
            result = json.loads(json.dumps(compute()))
            record = {
                "part": part,
                "about": about,
                "result": result,
                "seconds": round(time.perf_counter() - started, 3),
                "version": __version__,
                "machine": describe_machine(),
            }
            self._append(record)
            self._remember(record)
        return self._results[key]

    def _append(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        try:
            with self.path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error.strerror or error}") from error

    def _load(self) -> None:
        """Read all records; a last line that a crash has cut off is removed."""
        complete_bytes = 0
        content = self.path.read_bytes()
        for number, line in enumerate(content.splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                break
            try:
                record = json.loads(line)
                self._remember(record)
            except (ValueError, KeyError, TypeError) as error:
                raise FormatError(f"{self.path}:{number}: is damaged; remove the file to start again") from error
            complete_bytes += len(line)
        if complete_bytes < len(content) and not self.frozen:
            os.truncate(self.path, complete_bytes)

    def _remember(self, record: dict[str, Any]) -> None:
        self._results[_key(record["part"], record["about"], record["version"])] = record["result"]
        self.records.append(record)


def _key(part: str, about: dict[str, Any], version: str) -> str:
    return json.dumps([part, about, version], sort_keys=True)


def describe_machine() -> str:
    """Return the system, processor and Python version in one line."""
    return f"{platform.system()} {platform.machine()}, {count_cores()} cores, Python {platform.python_version()}"


WALKS = 10
"""Walks of DeepWalk and node2vec from each node, as in the paper."""
LINK_RUNS = 10
"""Runs of link prediction, as in the paper; scores of single runs differ by more than those of methods."""


@dataclass(frozen=True)
class Plan:
    """The amount of work for each experiment.

    A method is compared with the paper only if it gets as much work as there; see `compares`.
    """

    networks: tuple[str, ...] = ("blogcatalog", "ppi", "wikipedia")
    train_ratios: tuple[float, ...] = TRAIN_RATIOS
    shuffles: int = 10
    walks: int = WALKS
    pairs_per_node: int = PAIRS_PER_NODE
    link_runs: int = LINK_RUNS
    related: str = "blogcatalog"
    sweep: tuple[float, ...] = tuple(k / 10 for k in range(11))
    sweep_shuffles: int = 3
    tuned_networks: tuple[str, ...] = ("blogcatalog", "ppi", "wikipedia")
    tuned_seeds: int = 3
    search_pairs_per_node: int = PAIRS_PER_NODE
    """Update pairs per node in the sweep and in tuning, which try many settings."""
    quick: bool = False

    def compares(self, method: str) -> bool:
        """Whether the method gets as much work as in the paper, so that its scores can be compared."""
        if method == "manela":
            return self.pairs_per_node >= PAIRS_PER_NODE
        if method in ("deepwalk", "node2vec"):
            return self.walks >= WALKS
        return True

    @property
    def compares_links(self) -> bool:
        """Whether links are predicted as often as in the paper."""
        return self.link_runs >= LINK_RUNS

    @property
    def notes(self) -> list[str]:
        """Notes below a table in which some methods are not compared with the paper."""
        if all(self.compares(method) for method in ("manela", "deepwalk", "node2vec")):
            return []
        return [
            f"A quick run makes {self.walks} of the paper's {WALKS} walks from each node: DeepWalk and node2vec are "
            "shown, but not compared with the paper."
        ]

    @property
    def compares_search(self) -> bool:
        """Whether each setting in the sweep and in tuning gets as much work as MANELA in the paper."""
        return self.search_pairs_per_node >= PAIRS_PER_NODE


FULL = Plan()
QUICK = Plan(
    train_ratios=(0.1, 0.5, 0.9), shuffles=2, walks=1, link_runs=1, related="ppi", sweep=(0.0, 0.5, 1.0),
    sweep_shuffles=1, tuned_networks=("ppi",), tuned_seeds=1, search_pairs_per_node=1000, quick=True,
)  # fmt: skip
