"""The moments of own and peers' vectors together."""

import numpy as np

from manela.hosts.state.peers import Peers
from manela.hosts.state.trust import Trust, pool_moments
from manela.kernels.moments import measure


def draw(nodes, seed, m=4):
    return np.random.default_rng(seed).normal(size=(nodes, m)).astype(np.float32)


def pool(own, peers=None, width=4):
    return pool_moments(Trust(), [measure(rows) for rows in own], peers or Peers(), {}, width)


def peers_with(**moments):
    peers = Peers()
    for name, tables in moments.items():
        peers[name].moments = [measure(rows) for rows in tables]
    return peers


def test_pooled_moments_are_those_of_all_vectors_together():
    own, theirs = draw(10, 0), draw(7, 1)
    [pooled] = pool([own], peers_with(b=[theirs], c=[]))
    together = measure(np.concatenate((own, theirs)))
    assert pooled.size == 17
    np.testing.assert_array_equal(pooled.total, together.total)
    np.testing.assert_array_equal(pooled.products, together.products)


def test_moments_are_padded_to_the_width_of_a_table():
    own = draw(10, 0)
    [pooled] = pool([own], width=16)
    assert (pooled.total.shape, pooled.products.shape) == ((16,), (16, 16))
    np.testing.assert_array_equal(pooled.total[:4], measure(own).total)
    assert not pooled.total[4:].any()
    assert not pooled.products[4:].any()
    assert not pooled.products[:, 4:].any()


def test_a_peer_that_is_distrusted_or_forgotten_does_not_count():
    own, peers = [draw(10, 0)], peers_with(b=[draw(7, 1)])
    assert pool(own, peers)[0].size == 17
    peers["b"].distrust = 1
    assert pool(own, peers)[0].size == 10
    peers["b"].distrust = 0
    del peers["b"]
    assert pool(own, peers)[0].size == 10


def test_each_table_has_moments_of_its_own():
    first, second = pool([draw(10, 0), draw(10, 1)], peers_with(b=[draw(7, 2), draw(7, 3)]))
    assert not np.array_equal(first.total, second.total)
