"""The NetMF estimator."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from manela.data.graph import Graph
from manela.errors import GraphError
from manela.estimators.baselines.baseline import Baseline, Learned
from manela.estimators.baselines.factorisation import Parts, ThreadedMatrix, factorise, pad_columns, symmetric_adjacency
from manela.settings.parameters import default
from manela.settings.settings import NetMFSettings, check_netmf
from manela.system.progress import Reporter

Numbers = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float32]

_MOST_NODES = 32_768
"""Nodes of the largest dense matrix: 4 GiB of float32, and the run needs about three times that. Memory grows with
the square of this number."""
_FEW_NODES = 1000
"""Up to this many nodes, all eigenpairs are computed; for more, finding only the largest ones is faster."""
_LARGEST_SCALE = 1e30
"""Upper limit of vol(G)/d(v), which keeps products within float32; if it were larger, they might overflow."""


@dataclass(eq=False, repr=False)
class NetMF(Baseline):
    """Learn a vector for each node by factorising the matrix that DeepWalk factorises implicitly (Qiu et al., 2018).

    With P = D⁻¹A this is log(max(1, vol(G)/(b·T) · (P + P² + … + P^T)·D⁻¹)). For a window of 1 it has entries
    on the edges only and is computed exactly and sparse. For larger ones it is a dense matrix of nodes by nodes,
    computed from the `rank` largest eigenpairs of D^-½·A·D^-½, or exactly with `rank=None`; such a window is refused
    for networks of more than 32,768 nodes.

    Edge weights are used. Arcs of a directed network count in both directions, with a warning. A node without
    neighbours has a vector of zeros.

    Parameters
    ----------
    dimensions : int, default=128
        Length of a vector.
    window : int, default=10
        Largest distance between two nodes in a walk (T). 1 suits networks in which most nodes are close to each other,
        such as the network of Wikipedia's words.
    negatives : int, default=1
        Random nodes for each pair (b); the larger, the fewer entries of the matrix are above 0.
    rank : int or None, default=256
        Eigenpairs of the approximation (h), None for the exact product. Not used for a window of 1.
    random_state : int, NumPy generator or None, default=0
        Seed of the randomised SVD; None draws a new one, which `provenance_` records.
    n_jobs : int or None, default=None
        Threads of the sparse products, which do not change their bits; None uses all cores. Dense algebra uses the
        threads of BLAS (`OMP_NUM_THREADS`), whose number may change the last bits.

    Fitted attributes are those of `Embedder`; `provenance_` records the seconds of each part.

    Examples
    --------
    >>> from manela import NetMF
    >>> model = NetMF(dimensions=2, window=3).fit([("ann", "bob"), ("bob", "cat"), ("cat", "ann"), ("cat", "dan")])
    >>> model.nodes_.tolist()
    ['ann', 'bob', 'cat', 'dan']
    >>> model.embedding_.shape
    (4, 2)
    """

    method = "netmf"

    dimensions: int = default("dimensions")
    window: int = default("window")
    negatives: int = 1
    rank: int | None = default("rank")
    random_state: Any = default("random_state")
    n_jobs: int | None = default("n_jobs")

    def _check(self) -> NetMFSettings:
        return check_netmf(self.get_params())

    def _learn(self, graph: Graph, settings: NetMFSettings, progress: Reporter | None) -> Learned:
        check_size(graph, settings.window)
        parts = Parts(("counting", "factorising"), progress)
        adjacency = symmetric_adjacency(graph, "NetMF")
        strengths: Numbers = adjacency.sum(axis=1)
        with ThreadPoolExecutor(settings.threads, thread_name_prefix="manela-netmf") as threads:
            matrix: Any
            if settings.window == 1:
                entries = edge_matrix(adjacency, strengths, settings.negatives)
                matrix = ThreadedMatrix(entries, threads, settings.threads)
            elif settings.rank is None:
                steps = (sp.diags_array(invert(strengths)) @ adjacency).astype(np.float32)
                shared = ThreadedMatrix(steps, threads, settings.threads)
                matrix = exact_matrix(shared, strengths, settings.window, settings.negatives)
            else:
                matrix = approximate_matrix(adjacency, strengths, settings)
            if settings.window > 1:
                np.log(np.maximum(matrix, 1, out=matrix), out=matrix)
            parts.finish("counting")
            vectors = factorise(matrix, settings.dimensions, settings.seed)
        vectors[strengths == 0] = 0.0
        vectors = pad_columns(vectors, settings.dimensions)
        parts.finish("factorising")
        return Learned(vectors, {"seconds": parts.seconds})


def check_size(graph: Graph, window: int) -> None:
    """Refuse a network whose dense matrix would be too large."""
    if window > 1 and graph.number_of_nodes > _MOST_NODES:
        size = 4 * graph.number_of_nodes**2 / 2**30
        raise GraphError(
            f"NetMF with a window above 1 needs a network of at most {_MOST_NODES:,} nodes, got "
            f"{graph.number_of_nodes:,}, whose dense matrix has {size:,.1f} GiB; window=1 and ProNE need no such matrix"
        )


def invert(strengths: Numbers) -> Numbers:
    """Return 1/d(v), or 0 for a node without neighbours."""
    return np.divide(1.0, strengths, out=np.zeros_like(strengths), where=strengths > 0)


def edge_matrix(adjacency: sp.csr_array, strengths: Numbers, negatives: int) -> sp.csr_array:
    """Return log(max(1, vol(G)/b · D⁻¹AD⁻¹)) as float32, with entries on edges only."""
    inverse = invert(strengths)
    shares = sp.csr_array(sp.diags_array(inverse) @ adjacency)
    entries = np.log(shares.data) + np.log(strengths.sum() / negatives) - np.log(strengths[shares.indices])
    entries = np.maximum(entries, 0.0).astype(np.float32)
    matrix = sp.csr_array((entries, shares.indices, shares.indptr), shape=shares.shape)
    matrix.eliminate_zeros()
    return matrix


def exact_matrix(steps: Any, strengths: Numbers, window: int, negatives: int) -> Matrix:
    """Return vol(G)/(b·T) · (P + … + P^T)·D⁻¹, for P = steps, shape (n, n)."""
    scale = np.minimum(strengths.sum() * invert(strengths) / (negatives * window), _LARGEST_SCALE)
    power: Matrix = steps @ np.diag(scale.astype(np.float32))
    total = power.copy()
    for _ in range(window - 1):
        power = steps @ power
        total += power
    return total


def approximate_matrix(adjacency: sp.csr_array, strengths: Numbers, settings: NetMFSettings) -> Matrix:
    """Return vol(G)/b · D^-½·U·f(Λ)·Uᵀ·D^-½, shape (n, n).

    f(λ) is the mean of λ, λ², … λ^T, or 0 if that is negative.
    """
    inverse = invert(strengths)
    roots = sp.diags_array(np.sqrt(inverse))
    values, vectors = largest_eigenpairs(sp.csr_array(roots @ adjacency @ roots), settings.rank or 1, settings.seed)
    means = np.mean([values**power for power in range(1, settings.window + 1)], axis=0)
    scale = np.sqrt(np.minimum(strengths.sum() / settings.negatives * inverse, _LARGEST_SCALE))
    factors = (scale[:, None] * vectors * np.sqrt(np.maximum(means, 0.0))).astype(np.float32)
    matrix: Matrix = factors @ factors.T
    return matrix


def largest_eigenpairs(matrix: sp.csr_array, count: int, seed: int) -> tuple[Numbers, Numbers]:
    """Return the `count` largest eigenvalues of a symmetric matrix, and their eigenvectors, shape (n, count).

    For a large matrix they are computed in float32, in a third of the time; the final matrix is float32 anyway.
    """
    nodes = matrix.shape[0]
    if nodes <= max(_FEW_NODES, 2 * count):
        values, vectors = np.linalg.eigh(matrix.toarray())
        return values[-count:], vectors[:, -count:]
    random = np.random.default_rng(seed)
    # before SciPy 1.17, eigsh could not be given a random generator for ARPACK's restarts
    generator = {"rng": random} if "rng" in inspect.signature(eigsh).parameters else {}
    start = random.uniform(size=nodes).astype(np.float32)
    values, vectors = eigsh(matrix.astype(np.float32), count, which="LA", v0=start, **generator)
    return values.astype(np.float64), vectors.astype(np.float64)
