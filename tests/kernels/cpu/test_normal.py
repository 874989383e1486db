"""Compiled draws from a normal distribution."""

import numpy as np
import pytest

from manela.engines.rounds.messages import draw_normal
from manela.kernels.moments import draw, measure
from manela.kernels.randomness import derive


@pytest.mark.parametrize(("nodes", "m"), [(500, 24), (3, 16), (200, 7)])
def test_compiled_draws_have_the_bits_of_the_definition(nodes, m):
    random = np.random.default_rng(nodes)
    vectors = random.normal(size=(nodes, m)) @ random.normal(size=(m, m)) / 4
    vectors[:, -1] = vectors[:, 0]  # a direction without variance
    keys = derive(77, np.arange(300))
    np.testing.assert_array_equal(draw_normal(measure(vectors), keys), draw(measure(vectors), keys))
