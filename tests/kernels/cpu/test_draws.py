"""Draws inside kernels are those of `manela.kernels.randomness`, number by number."""

import numpy as np
import pytest
from numba import njit

from manela import Graph
from manela.engines.rounds.messages import draw_normal
from manela.kernels import randomness
from manela.kernels.cpu import draws
from manela.kernels.cpu.draws import find_arc, follow_alias
from manela.kernels.moments import draw, measure
from manela.kernels.randomness import derive

WORDS = np.array([0, 1, 2, 2**31, 2**32, 2**63, 2**64 - 2, 2**64 - 1, randomness.GOLDEN], np.uint64)


@njit
def mix_all(words, out):
    for place in range(len(words)):
        out[place] = draws.mix(words[place])


@njit
def derive_all(keys, numbers, out):
    for i in range(len(keys)):
        for j in range(len(numbers)):
            out[i, j] = draws.derive(keys[i], numbers[j])


def test_mixing_scatters_bits_as_numpy_does_it():
    out = np.empty_like(WORDS)
    mix_all(WORDS, out)
    np.testing.assert_array_equal(out, randomness.mix(WORDS))
    assert len(set(out.tolist())) == len(WORDS)


def test_draws_under_any_key_and_number_are_the_same():
    out = np.empty((len(WORDS), len(WORDS)), np.uint64)
    derive_all(WORDS, WORDS, out)
    np.testing.assert_array_equal(out, randomness.derive(WORDS[:, None], WORDS[None, :]))


def test_signed_numbers_are_drawn_for_as_their_bits():
    signed = np.array([0, 5, 2**40], np.int64)
    out = np.empty((1, 3), np.uint64)
    derive_all(WORDS[1:2], signed, out)
    np.testing.assert_array_equal(out[0], randomness.derive(1, signed))


def test_an_arc_is_kept_below_its_threshold_and_otherwise_its_alias_is_taken():
    thresholds, aliases = np.array([0, 0, 0, 1000, 2**32 - 1], np.uint32), np.array([0, 0, 0, 2, 0], np.int32)
    for high, arc in ((0, 3), (999, 3), (1000, 4), (2**32 - 1, 4)):
        rest = np.uint64(high * 2**32 + 5)
        assert follow_alias(thresholds, aliases, 3, 2, rest) == arc
    assert follow_alias(thresholds, aliases, 4, 2, np.uint64(7)) == 4


def test_without_weights_every_arc_is_kept():
    assert follow_alias(None, None, 3, 2, np.uint64(2**64 - 1)) == 3


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_an_arc_is_found_where_it_is_and_only_there(kind):
    random = np.random.default_rng(1)
    sources, targets = random.integers(0, 30, (2, 150))
    graph = Graph.from_arcs(sources, targets, None, np.arange(30), duplicates="first")
    indptr, indices = graph.indptr.astype(np.int64), graph.indices.astype(kind)
    for source in range(30):
        row = indices[indptr[source] : indptr[source + 1]].tolist()
        for target in range(30):
            wanted = indptr[source] + row.index(target) if target in row else -1
            assert find_arc(indptr, indices, source, target) == wanted


def test_a_node_without_neighbours_has_no_arc():
    assert find_arc(np.array([0, 0, 1]), np.array([0]), 0, 1) == -1


@pytest.mark.parametrize(("nodes", "m"), [(500, 24), (3, 16), (200, 7)])
def test_compiled_draws_have_the_bits_of_the_definition(nodes, m):
    random = np.random.default_rng(nodes)
    vectors = random.normal(size=(nodes, m)) @ random.normal(size=(m, m)) / 4
    vectors[:, -1] = vectors[:, 0]  # a direction without variance
    keys = derive(77, np.arange(300))
    np.testing.assert_array_equal(draw_normal(measure(vectors), keys), draw(measure(vectors), keys))
