"""Edges become the rows that SciPy makes of them, on one thread and on several."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from manela.data.csr import build_rows
from manela.system.threads import allow_cores


def by_scipy(sources, targets, weights, size, directed):
    proper = sources != targets
    matrix = sp.coo_array((weights[proper], (sources[proper], targets[proper])), shape=(size, size)).tocsr()
    return matrix if directed else matrix + matrix.T.tocsr()


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=60),
    st.booleans(),
    st.booleans(),
)
def test_rows_are_those_of_scipy(edges, directed, weighted):
    sources, targets, given_weights = (np.array(column) for column in zip(*edges, strict=True))
    weights = given_weights.astype(float) if weighted else np.ones(len(edges))
    found = build_rows(sources, targets, weights if weighted else None, 10, directed=directed, adds=True)
    wanted = by_scipy(sources, targets, weights, 10, directed)
    wanted.sort_indices()
    np.testing.assert_array_equal(found.indptr, wanted.indptr)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    if found.weights is not None:
        np.testing.assert_array_equal(found.weights, wanted.data)
    else:
        assert (wanted.data == 1).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_the_same_for_any_number_of_threads(weighted):
    draw = np.random.default_rng(0)
    ends = draw.zipf(1.5, size=(2, 20_000)) % 700
    weights = draw.random(20_000) + 0.5 if weighted else None
    rows = []
    for cores in (1, 3):
        with allow_cores(cores):
            rows.append(build_rows(*ends, weights, 700, directed=False, adds=True, shared_from=0))
    assert rows[0].repeated == rows[1].repeated > 0
    for one, other in zip(rows[0][:3], rows[1][:3], strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_first_of_repeated_edges_counts_if_they_do_not_add_up():
    found = build_rows(np.array([0, 1, 0]), np.array([1, 0, 2]), np.array([4.0, 9, 1]), 3, directed=False, adds=False)
    assert found.weights.tolist() == [4, 1, 4, 1]
    assert found.repeated == 1
