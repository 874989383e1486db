# ruff: noqa: ARG001, ARG005 (lies of all kinds have the same arguments)
"""Lies: what one hostile host of four costs the others in each phase, beside its absence; hosts in memory."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.table import table
from manela import Graph, ManelaWarning
from manela.analysis.classification import classify
from manela.formats.datasets import stochastic_block_model
from manela.hosts.federation import assign, split_graph
from manela.hosts.folder.config import Config
from manela.hosts.state.driver import drive
from manela.hosts.state.messages import AFFINITY, JOIN, ROUND, SMOOTH, SWEEP, VIEW, Frame, Pull, Shown
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.terms import PeerOptions
from manela.hosts.walks.host import make_host
from manela.hosts.wire.calls import decode_reply, encode_reply
from manela.kernels.moments import measure

SEEDS = (0, 1, 2)
LIAR = "host4"
Lie = Callable[[Pull, Shown, np.random.Generator], Shown]


def _rows(change: Callable[[np.ndarray, np.random.Generator], np.ndarray], *phases: int) -> Lie:
    """A lie about rows in some phases."""

    def lie(asked: Pull, shown: Shown, random: np.random.Generator) -> Shown:
        if shown.step.phase not in phases or asked.step.phase != shown.step.phase or not shown.rows.size:
            return shown
        return replace(shown, rows=change(shown.rows.astype(np.float32), random).astype(shown.rows.dtype))

    return lie


def _opposite(rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return -2.0 * rows


def _random(rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    drawn = random.normal(size=rows.shape)
    return drawn * np.linalg.norm(rows, axis=-1, keepdims=True) / np.linalg.norm(drawn, axis=-1, keepdims=True)


def _common(rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One direction on top of all rows."""
    direction = np.random.default_rng(7).normal(size=rows.shape[-1])
    return rows + 1.5 * np.linalg.norm(rows, axis=-1, keepdims=True) * direction / np.linalg.norm(direction)


def _mixed(rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Rows of other nodes."""
    return rows[random.permutation(len(rows))]


def _means(asked: Pull, shown: Shown, random: np.random.Generator) -> Shown:
    if shown.step.phase != ROUND or shown.rows.ndim != 4 or shown.rows.shape[2] < 2:
        return shown
    rows = shown.rows.copy()
    rows[:, :, 1:] *= -2
    return replace(shown, rows=rows)


def _moments(asked: Pull, shown: Shown, random: np.random.Generator) -> Shown:
    if not shown.moments:
        return shown
    m = len(shown.moments[0].total)
    return replace(shown, moments=[measure(random.normal(size=(1000, m)) * 3 + 2) for _ in shown.moments])


def _moments_of_one(asked: Pull, shown: Shown, random: np.random.Generator) -> Shown:
    """Moments that push everything along a few directions."""
    if not shown.moments:
        return shown
    m = len(shown.moments[0].total)
    few = np.random.default_rng(3).normal(size=(4, m))
    return replace(shown, moments=[measure(random.normal(size=(1000, 4)) @ few * 2) for _ in shown.moments])


def _strengths(factor: float) -> Lie:
    return lambda asked, shown, random: replace(shown, strengths=shown.strengths * factor)


def _counts(asked: Pull, shown: Shown, random: np.random.Generator) -> Shown:
    shown = replace(shown, moments=[replace_size(part) for part in shown.moments])
    if shown.products is not None:
        shown = replace(shown, products=replace(shown.products, size=2**20, sums=shown.products.sums))
    if shown.sum is not None:
        shown = replace(shown, sum=replace(shown.sum, count=2**20))
    return shown


def replace_size(part: Any) -> Any:
    """The same moments, of a million nodes."""
    return part._replace(size=2**20, total=part.total * 2**12, products=part.products * 2**12)


def _products(kind: str, *phases: int) -> Lie:
    def lie(asked: Pull, shown: Shown, random: np.random.Generator) -> Shown:
        if shown.products is None or shown.step.phase not in phases:
            return shown
        sums = shown.products.sums.astype(np.float64)
        size = len(sums)
        if kind == "one direction":
            one = np.random.default_rng(5).normal(size=size)
            false = np.outer(one, one) * np.trace(sums) / (one @ one) * 4
        elif kind == "opposite":
            false = -sums
        else:
            drawn = random.normal(size=(size, size))
            false = drawn @ drawn.T * np.trace(sums) / size**2
        return replace(shown, products=replace(shown.products, sums=np.rint(false).astype(np.int64)))

    return lie


def _shares(asked: Pull, shown: Shown, random: np.random.Generator) -> Shown:
    if shown.step.phase != AFFINITY or shown.step.level != 1:
        return shown
    return replace(shown, strengths=np.where(random.random(len(shown.strengths)) < 0.5, 1e-9, 1e9))


def _frames(asked: Pull, shown: Shown, random: np.random.Generator) -> Shown:
    return replace(shown, frame=Frame(shown.frame.generation, shown.frame.id ^ 0xABCDEF))


def _all(*lies: Lie) -> Lie:
    def lie(asked: Pull, shown: Shown, random: np.random.Generator) -> Shown:
        for one in lies:
            shown = one(asked, shown, random)
        return shown

    return lie


EVERYWHERE = (SWEEP, VIEW, ROUND, SMOOTH)
LIES: dict[str, Lie] = {
    "rows, opposite": _rows(_opposite, ROUND),
    "rows, random": _rows(_random, ROUND),
    "rows, of other nodes": _rows(_mixed, ROUND),
    "rows, a common direction": _rows(_common, ROUND),
    "means, opposite": _means,
    "sweeps, opposite": _rows(_opposite, SWEEP),
    "sweeps, random": _rows(_random, SWEEP),
    "sweeps, of other nodes": _rows(_mixed, SWEEP),
    "sweeps, a common direction": _rows(_common, SWEEP),
    "filter of the view, opposite": _rows(_opposite, VIEW),
    "smoothing, opposite": _rows(_opposite, SMOOTH),
    "smoothing, random": _rows(_random, SMOOTH),
    "smoothing, of other nodes": _rows(_mixed, SMOOTH),
    "smoothing, a common direction": _rows(_common, SMOOTH),
    "everywhere, opposite": _rows(_opposite, *EVERYWHERE),
    "everywhere, of other nodes": _rows(_mixed, *EVERYWHERE),
    "everywhere, a common direction": _rows(_common, *EVERYWHERE),
    "moments, shifted and wide": _moments,
    "moments, of few directions": _moments_of_one,
    "products of sweeps, one direction": _products("one direction", SWEEP),
    "products of sweeps, random": _products("random", SWEEP),
    "products of the view, opposite": _products("opposite", VIEW),
    "products of the view, random": _products("random", VIEW),
    "products of the join, one direction": _products("one direction", JOIN),
    "products of the join, random": _products("random", JOIN),
    "strengths, tiny": _strengths(1e-9),
    "strengths, huge": _strengths(1e9),
    "counts": _counts,
    "shares": _shares,
    "frames": _frames,
}


def learn(
    graph: Graph, communities: np.ndarray, seed: int, lie: Lie | None, absent: bool = False, dimensions: int = 32
) -> tuple[float, int]:
    """Return micro-F1 over the nodes of honest hosts, and how often these were alarmed by the liar."""
    pieces, numbers = split_graph(graph, assign(graph, 4, "random", seed))
    if absent:
        pieces = {
            name: [edge for edge in edges if edge.other is None or edge.other[1] != LIAR]
            for name, edges in pieces.items()
            if name != LIAR
        }
    sizes = {name: len({edge.own for edge in edges}) for name, edges in pieces.items()}
    hosts = {}
    for number, (name, edges) in enumerate(pieces.items()):
        config = Config(name, "a:1", {"dimensions": dimensions}, peers=PeerOptions(share=1.0))
        hosts[name] = make_host(config.terms(100 * seed + number), Neighbourhood.build(name, edges), sizes=sizes)
    random = np.random.default_rng(seed)

    def carry(asker: Any, answerer: Any, request: Any, reply: Any) -> Any:
        if answerer.name == LIAR and lie is not None:
            reply = lie(request, reply, random)
        return decode_reply(asker, answerer.name, request, encode_reply(answerer, asker.name, reply))

    drive(hosts, carry=carry)
    vectors, rows, alarms = [], [], 0
    for name, host in hosts.items():
        if name != LIAR:
            vectors.append(host.find_smoothed())
            rows += [numbers[node, name] for node in host.neighbourhood.nodes]
            alarms += sum(host.peers[LIAR].alarms.values()) if LIAR in host.peers else 0
    labels = sp.csr_matrix(np.eye(communities.max() + 1)[communities[rows]])
    return float(classify(np.concatenate(vectors), labels, jobs=1).micro.mean()), alarms


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    networks = [
        stochastic_block_model(nodes=300, communities=6, inside=0.2, between=0.035, seed=seed) for seed in SEEDS
    ]

    def score(lie: Lie | None, absent: bool = False) -> tuple[float, float]:
        found = [learn(*network, seed, lie, absent) for seed, network in zip(SEEDS, networks, strict=True)]
        return float(np.median([f1 for f1, _ in found])), float(np.median([alarms for _, alarms in found]))

    honest, alone = score(None)[0], score(None, absent=True)[0]
    with table("lie of one host of four", "micro-F1 of the others", "against its absence", "alarms") as shown:
        shown.row("none: all honest", f"{honest:.4f}", f"{honest - alone:+.4f}", "")
        shown.row("absent", f"{alone:.4f}", "", "")
        for name, lie in LIES.items():
            f1, alarms = score(lie)
            shown.row(name, f"{f1:.4f}", f"{f1 - alone:+.4f}", f"{alarms:g}")
