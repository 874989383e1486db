import numpy as np
import pytest

from manela.errors import MalformedError
from manela.hosts.state.judging import MomentPool
from manela.hosts.state.trust import Bounded, Exact
from manela.kernels.moments import measure


def draw(nodes, seed, m=4):
    return np.random.default_rng(seed).normal(size=(nodes, m)).astype(np.float32)


def test_pooled_moments_are_those_of_all_vectors_together():
    pool, own, theirs = MomentPool(Exact()), draw(10, 0), draw(7, 1)
    assert pool.measure([own]) == pool.own
    pool.store("b", [measure(theirs)])
    [pooled] = pool.pool({}, (), 4)
    together = measure(np.concatenate((own, theirs)))
    assert pooled.size == 17
    np.testing.assert_array_equal(pooled.total, together.total)
    np.testing.assert_array_equal(pooled.products, together.products)


def test_moments_are_padded_to_the_width_of_a_table():
    pool, own = MomentPool(Exact()), draw(10, 0)
    [measured] = pool.measure([own])
    [pooled] = pool.pool({}, (), 16)
    assert (pooled.total.shape, pooled.products.shape) == ((16,), (16, 16))
    np.testing.assert_array_equal(pooled.total[:4], measured.total)
    assert not pooled.total[4:].any()
    assert not pooled.products[4:].any()
    assert not pooled.products[:, 4:].any()


def test_a_peer_that_is_distrusted_or_forgotten_does_not_count():
    pool = MomentPool(Exact())
    pool.measure([draw(10, 0)])
    pool.store("b", [measure(draw(7, 1))])
    assert pool.pool({}, {"b"}, 4)[0].size == 10
    assert pool.pool({}, (), 4)[0].size == 17
    pool.forget("b")
    pool.forget("c")
    assert pool.pool({}, (), 4)[0].size == 10


def test_each_table_has_moments_of_its_own():
    pool = MomentPool(Exact())
    pool.measure([draw(10, 0), draw(10, 1)])
    pool.store("b", [measure(draw(7, 2)), measure(draw(7, 3))])
    first, second = pool.pool({}, (), 4)
    assert not np.array_equal(first.total, second.total)


def test_refused_moments_leave_the_last_good_ones():
    pool = MomentPool(Bounded(1.0, 2.0, 0))
    pool.measure([draw(100, 0)])
    pool.store("b", [measure(draw(50, 1))])
    with pytest.raises(MalformedError, match="at least"):
        pool.store("b", [measure(draw(3, 2))])
    assert pool.pool({"b": 50}, (), 4)[0].size == 150
