"""False nodes at one host do not decide what is near a node at another."""

import numpy as np
import pytest
from benchmarks.sybils import make_run

SEEDS = range(3)


@pytest.mark.parametrize("sybils", [5, 10, 20])
def test_at_most_a_tenth_of_the_ten_nearest_is_what_false_nodes_want(sybils):
    runs = [make_run(6, 3, "random", sybils, seed) for seed in SEEDS]
    assert np.mean([run.chosen for run in runs]) <= 0.1
    assert np.mean([run.right for run in runs]) > 0.98
