"""Arcs as one value that every kernel takes."""

import numpy as np
import pytest
from numba import njit

from manela.kernels.layout import Arcs


@njit
def count_out(arcs, node):
    indptr, indices, thresholds, _ = arcs
    return len(indices[indptr[node] : indptr[node + 1]]), thresholds is None


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_kernels_take_arcs_with_and_without_alias_tables(kind):
    indptr, indices = np.array([0, 2, 3]), np.array([1, 0, 0], kind)
    assert count_out(Arcs(indptr, indices), 0) == (2, True)
    tables = np.zeros(3, np.uint32), np.zeros(3, np.int32)
    assert count_out(Arcs(indptr, indices, *tables), 1) == (1, False)


def test_arcs_without_weights_have_no_tables():
    arcs = Arcs(np.array([0]), np.zeros(0, np.int32))
    assert arcs.thresholds is arcs.aliases is None
    assert arcs._fields == ("indptr", "indices", "thresholds", "aliases")  # kernels unpack them in this order
