"""The ProNE estimator."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.special import iv
from threadpoolctl import threadpool_limits

from manela.data.graph import Graph
from manela.estimators.baselines.baseline import Baseline, Learned
from manela.estimators.baselines.factorisation import Parts, ThreadedMatrix, factorise, pad_columns, symmetric_adjacency
from manela.kernels.layout import Vectors, normalise_rows
from manela.settings.parameters import default
from manela.settings.settings import ProNESettings, check_prone
from manela.system.progress import Reporter

_POWER = 0.75
"""Power of Σ_u p_uv that q_v is proportional to; the larger, the less arcs to frequent nodes weigh."""


@dataclass(eq=False, repr=False)
class ProNE(Baseline):
    """Learn a vector for each node by a sparse factorisation and a spectral filter (Zhang et al., 2019).

    First the matrix of log(p_uv) − log(q_v) over the edges is factorised, where p_uv is the chance of a step from u to
    v, and q_v is proportional to the ¾ power of Σ_u p_uv. Then the vectors are passed through a band-pass filter of the
    network's Laplacian, which adds information on the wider surroundings, and made orthogonal again. There is no
    sampling, and no number of epochs to choose.

    Edge weights are used. Arcs of a directed network count in both directions, with a warning. A node without
    neighbours has a vector of zeros; all others have length 1.

    Parameters
    ----------
    dimensions : int, default=128
        Length of a vector.
    order : int, default=10
        Terms of the Chebyshev expansion of the filter. Terms too small for float32 are not computed.
    theta : float, default=0.5
        How narrow the band of the filter is (θ).
    mu : float, default=0.2
        The eigenvalue of the Laplacian in the middle of the band (μ).
    random_state : int, NumPy generator or None, default=0
        Seed of the randomised SVD; None draws a new one, which `provenance_` records.
    n_jobs : int or None, default=None
        Threads of the sparse products, which do not change the bits; None uses all cores. Dense algebra uses one
        thread, whatever BLAS is set to: on two cores a second one saved no time, and took many times as long when other
        programs used the cores.

    Fitted attributes are those of `Embedder`; `provenance_` records the seconds of each part.

    Examples
    --------
    >>> from manela import ProNE
    >>> from manela.formats.datasets import stochastic_block_model
    >>> graph, communities = stochastic_block_model(nodes=60, inside=0.5, between=0.02, seed=1)
    >>> ProNE(dimensions=16).fit(graph).embedding_.shape
    (60, 16)
    """

    method = "prone"

    dimensions: int = default("dimensions")
    order: int = default("order")
    theta: float = default("theta")
    mu: float = default("mu")
    random_state: Any = default("random_state")
    n_jobs: int | None = default("n_jobs")

    def _check(self) -> ProNESettings:
        return check_prone(self.get_params())

    def _learn(self, graph: Graph, settings: ProNESettings, progress: Reporter | None) -> Learned:
        parts = Parts(("factorising", "propagating", "rotating"), progress)
        adjacency = symmetric_adjacency(graph, "ProNE")
        is_isolated = adjacency.sum(axis=1) == 0
        with (
            threadpool_limits(1, user_api="blas"),
            ThreadPoolExecutor(settings.threads, thread_name_prefix="manela-prone") as threads,
        ):
            shared = ThreadedMatrix(proximity_matrix(adjacency), threads, settings.threads)
            vectors = factorise(shared, settings.dimensions, settings.seed)
            vectors[is_isolated] = 0.0
            vectors = normalise_rows(vectors)
            parts.finish("factorising")
            looped = sp.csr_array(adjacency + sp.eye_array(len(is_isolated), format="csr"))
            transitions = ThreadedMatrix(divide_rows(looped).astype(np.float32), threads, settings.threads)
            vectors -= filter_vectors(transitions, vectors, settings.order, settings.theta, settings.mu)
            # a common factor of all weights changes nothing below, and this one keeps them within float32
            scaled = ThreadedMatrix((looped / looped.max()).astype(np.float32), threads, settings.threads)
            vectors = scaled @ vectors
            parts.finish("propagating")
            left, values, _ = scipy.linalg.svd(vectors, full_matrices=False, overwrite_a=True, check_finite=False)
        vectors = left * np.sqrt(values)
        vectors[is_isolated] = 0.0
        vectors = pad_columns(normalise_rows(vectors), settings.dimensions)
        parts.finish("rotating")
        return Learned(vectors, {"seconds": parts.seconds})


def divide_rows(matrix: sp.csr_array) -> sp.csr_array:
    """Return D⁻¹A, whose rows sum to 1; rows without entries stay empty."""
    sums = np.repeat(matrix.sum(axis=1), np.diff(matrix.indptr))
    return sp.csr_array((matrix.data / sums, matrix.indices, matrix.indptr), shape=matrix.shape)


def proximity_matrix(adjacency: sp.csr_array) -> sp.csr_array:
    """Return the matrix to factorise: log(p_uv) − log(q_v) for each arc from u to v, as float32.

    q is the distribution that negatives would be drawn from, proportional to (Σ_u p_uv)^¾.
    """
    steps = divide_rows(adjacency)
    chances = steps.sum(axis=0) ** _POWER
    chances /= chances.sum()
    entries = np.log(steps.data) - np.log(chances[steps.indices])
    return sp.csr_array((entries.astype(np.float32), steps.indices, steps.indptr), shape=steps.shape)


def filter_vectors(transitions: Any, vectors: Vectors, order: int, theta: float, mu: float) -> Vectors:
    """Pass vectors through exp(−θ·Z), where Z = ½(L − μI)² − I and L = I − D⁻¹(A + I) is the Laplacian.

    The exponential is expanded in Chebyshev polynomials, I₀(θ)·T₀(Z) + 2 Σ_i (−1)^i·I_i(θ)·T_i(Z), with Bessel
    functions I_i. The eigenvalues of Z lie within [−1, 1] for every μ from 0 to 2. `transitions` is D⁻¹(A + I), (n, n),
    and `order` the number of terms, at least 2.
    """
    weights = iv(np.arange(order), theta) * np.where(np.arange(order) % 2, -2.0, 2.0)
    weights[0] /= 2
    is_noticeable = np.abs(weights) > np.finfo(np.float32).epsneg * weights[0]
    weights = weights[: max(2, np.count_nonzero(is_noticeable))].astype(np.float32)
    identity = np.float32(1 - mu)

    def apply_shifted(table: Vectors) -> Vectors:
        """Return (L − μI)·table."""
        product: Vectors = transitions @ table
        np.negative(product, out=product)
        product += identity * table
        return product

    before, now = vectors, np.float32(0.5) * apply_shifted(apply_shifted(vectors)) - vectors
    filtered: Vectors = weights[0] * before + weights[1] * now
    for weight in weights[2:]:
        after = apply_shifted(apply_shifted(now))
        after -= np.float32(2) * now
        after -= before
        filtered += weight * after
        before, now = now, after
    return filtered
