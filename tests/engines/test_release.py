"""The paper's settings give, bit for bit, the vectors of release 0.1."""

import hashlib

import numpy as np
import pytest

from manela import Manela
from manela.data.graph import Graph
from manela.settings.parameters import PAPER

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")

RELEASED = {
    "plain": ("a5067ca7c93c729506e0b85f0aa06b9332ba77c55c505f33053a6b1fb5d4815f", None),
    "weighted": ("ad78d60f5dec57d96cb840df8a85f08c3bd6ec2b62ccbb2d0bfc91dad2e20fc0", None),
    "context": (
        "e2e10c3539596f4e6a95c7d3eeb32c07aed9529d272943190f22787d70f55477",
        "b6fc65b4392f34f2697fe8bdd9ee6413a33377954966c8b5b595ad0957506c42",
    ),
    "directed": ("254c0f27c78b129f239c508e0079eee9522ffb38b640786bf2f70f71247aa9e1", None),
}
"""SHA-256 of the vectors and context vectors of version 0.1.0; as kernels fix their order of additions, they hold."""

SETTINGS = {
    "plain": {},
    "weighted": {"ratios": (0.4, 0.3, 0.3), "negatives": 3, "random_state": 9},
    "context": {"context": True, "dimensions": 37, "window": 3},
    "directed": {"ratios": (0.7, 0.3), "random_state": 2**64 - 1, "learning_rate": 0.1},
}


def draw_network(kind):
    """60 nodes, of which one has no neighbour, and a hub."""
    random = np.random.default_rng(12)
    ends = random.integers(60, size=(2, 200))
    ends[0, :30] = 7
    weights = random.uniform(0.1, 9.0, 200) if kind == "weighted" else None
    return Graph.from_edges(
        ends[0],
        ends[1],
        weights,
        nodes=range(61),
        directed=kind == "directed",
        duplicates="first" if weights is None else "sum",
    )


def digest(vectors):
    return None if vectors is None else hashlib.sha256(np.ascontiguousarray(vectors).tobytes()).hexdigest()


@pytest.mark.filterwarnings("ignore:.*have no neighbour")
@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_vectors_are_those_of_the_release(kind):
    parameters = {"dimensions": 12, "pairs": 60_000, "rounds": 25, "n_jobs": 1, **SETTINGS[kind]}
    model = Manela.paper(**parameters).fit(draw_network(kind))
    assert (digest(model.embedding_), digest(model.context_)) == RELEASED[kind]


def test_the_papers_settings_are_what_paper_says_and_others_may_be_given():
    given = Manela.paper(ratios=(0.7, 0.3), frequency=0.5).get_params()
    expected = {**Manela().get_params(), **PAPER, "ratios": (0.7, 0.3), "frequency": 0.5}
    assert given == expected
    assert {name: expected[name] for name in ("exchange", "start", "smooth")} == {
        "exchange": "walks", "start": "random", "smooth": False
    }  # fmt: skip
    assert PAPER["frequency"] == 1.0
