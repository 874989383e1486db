"""Draws on a GPU are those of `manela.kernels.randomness`; without a card they are interpreted."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

from manela.kernels.cpu.walks import build_aliases  # noqa: E402
from manela.kernels.gpu import neighbours as rows  # noqa: E402
from manela.kernels.layout import Arcs  # noqa: E402
from manela.kernels.randomness import derive  # noqa: E402
from manela.kernels.reference import choose  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZE = tl.constexpr(64)


@triton.jit
def derive_all(keys, numbers, out):
    places = tl.arange(0, SIZE)
    drawn = rows.derive(tl.load(keys + places).to(tl.uint64, bitcast=True), tl.load(numbers + places))
    tl.store(out + places, drawn.to(tl.int64, bitcast=True))


@triton.jit
def choose_all(first, degree, drawn, thresholds, aliases, out, WEIGHTED: tl.constexpr):
    places = tl.arange(0, SIZE)
    words = tl.load(drawn + places).to(tl.uint64, bitcast=True)
    goes = places >= 0
    starts, degrees = tl.load(first + places), tl.load(degree + places)
    tl.store(out + places, rows.choose(starts, degrees, words, thresholds, aliases, goes, WEIGHTED))


def send(array):
    """An array on the card; words without a sign as the bits of words with one."""
    signed = {np.dtype(np.uint64): np.int64, np.dtype(np.uint32): np.int32}.get(array.dtype, array.dtype)
    return torch.from_numpy(np.ascontiguousarray(array).view(signed).copy()).to(DEVICE)


def draw_words(seed):
    words = np.random.default_rng(seed).integers(0, 2**64, 64, dtype=np.uint64)
    words[:4] = 0, 1, 2**63, 2**64 - 1
    return words


def test_draws_under_any_key_and_number_are_the_same_bits():
    keys, numbers = draw_words(1), np.random.default_rng(2).permutation(64) * 2**40
    out = send(np.zeros(64, np.int64))
    derive_all[(1,)](send(keys), send(numbers), out)
    np.testing.assert_array_equal(out.cpu().numpy().view(np.uint64), derive(keys, numbers))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_arc_that_a_draw_takes_is_that_of_the_definition(weighted):
    degrees = np.array([1, 2, 7, 30])
    indptr = np.concatenate(([0], np.cumsum(degrees)))
    weights = np.random.default_rng(3).lognormal(size=indptr[-1])
    thresholds, aliases = np.empty(len(weights), np.uint32), np.empty(len(weights), np.int32)
    build_aliases(indptr, weights, thresholds, aliases)
    arcs = Arcs(indptr, np.arange(len(weights)), *((thresholds, aliases) if weighted else (None, None)))
    nodes, words = np.arange(64) % 4, draw_words(4)
    out = send(np.zeros(64, np.int64))
    choose_all[(1,)](
        send(indptr[nodes]), send(degrees[nodes]), send(words), send(thresholds), send(aliases), out, weighted
    )  # fmt: skip
    wanted = [
        choose(int(indptr[node]), int(indptr[node + 1]), int(word), arcs)
        for node, word in zip(nodes, words, strict=True)
    ]
    assert out.cpu().numpy().tolist() == wanted


WIDTHS = pytest.mark.parametrize("columns", [16, 11])
"""A power of two, and columns that leave some of the lanes without a number."""


@triton.jit
def fetch(table, numbers, out, columns, COLUMNS: tl.constexpr, EVEN: tl.constexpr):
    places, column = tl.arange(0, 4), tl.arange(0, COLUMNS)
    tile = rows.fetch_rows(table, tl.load(numbers + places), columns, COLUMNS, EVEN)
    tl.store(out + places[:, None] * COLUMNS + column[None, :], tile)


@WIDTHS
@pytest.mark.parametrize("precision", [torch.float32, torch.float16])
def test_rows_are_those_of_the_table_and_dropped_ones_are_zeros(columns, precision):
    table = torch.rand(5, columns, device=DEVICE).to(precision)
    numbers = torch.tensor([4, -1, 0, 4], dtype=torch.int32, device=DEVICE)
    out = torch.full((4, 16), 9.0, dtype=precision, device=DEVICE)
    fetch[(1,)](table, numbers, out, columns, 16, columns == 16)
    wanted = torch.zeros_like(out)
    wanted[:, :columns] = table[numbers.long()]
    wanted[1] = 0
    assert torch.equal(out, wanted)
