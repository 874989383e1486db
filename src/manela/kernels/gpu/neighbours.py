"""Draws, means over neighbours, filter steps, and norms and sums of rows on a GPU, compiled by Triton.

The definitions are in `reference`. Nodes with about the same number of neighbours are computed together. For nodes with
very many, the neighbours are summed in pieces first. Arguments that differ from call to call are not specialised on.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

from manela.kernels.randomness import FIRST_FACTOR, GOLDEN, SECOND_FACTOR


@triton.jit
def _share(weights, arc, here, scale):
    """Return an arc's share of a mean, at most 1; only an arc to a dead end, whose row is zero, is cut.

    Weights in single precision are affinities, which are only scaled.
    """
    if weights.dtype.element_ty == tl.float32:
        return tl.load(weights + arc, mask=here, other=0.0) * scale.to(tl.float32)
    return tl.minimum(tl.load(weights + arc, mask=here, other=0.0) * scale, 1.0).to(tl.float32)


@triton.jit
def sum_pieces(
    source, indices, weights, scales, firsts, lasts, nodes, partial, columns, WEIGHTED: tl.constexpr,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """partial[i] ← Σ source[u] over the neighbours u that the arcs firsts[i] … lasts[i] − 1 of nodes[i] lead to.

    If WEIGHTED, each summand is multiplied by the arc's weight and the node's scale, whose product is at most 1.
    """
    piece = tl.program_id(0).to(tl.int64)
    first = tl.load(firsts + piece)
    last = tl.load(lasts + piece)
    column = tl.arange(0, COLUMNS)
    inside = (column < columns)[None, :]
    if WEIGHTED:
        scale = tl.load(scales + tl.load(nodes + piece))
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for begin in range(first, last, ROWS):
        arc = begin + tl.arange(0, ROWS)
        here = arc < last
        other = tl.load(indices + arc, mask=here, other=0).to(tl.int64)
        rows = source + other[:, None] * columns + column[None, :]
        vectors = tl.load(rows, mask=here[:, None] & inside, other=0.0).to(tl.float32)
        if WEIGHTED:
            vectors *= _share(weights, arc, here, scale)[:, None]
        total += vectors
    tl.store(partial + piece * columns + column, tl.sum(total, axis=0), mask=column < columns)


@triton.jit
def _find_nodes(nodes, indptr, first_place, last_place, NODES: tl.constexpr, PARTIAL: tl.constexpr):
    """Return this program's nodes, which of them exist, and where the arcs, or partial sums, of each begin and end."""
    place = first_place + tl.program_id(0).to(tl.int64) * NODES + tl.arange(0, NODES)
    here = place < last_place
    node = tl.load(nodes + place, mask=here, other=0).to(tl.int64)
    own = place if PARTIAL else node
    first = tl.load(indptr + own, mask=here, other=0).to(tl.int64)
    last = tl.load(indptr + own + 1, mask=here, other=0).to(tl.int64)
    return node, here, first, last


@triton.jit
def _sum_neighbours(
    source, indices, weights, scale, first, last, columns, WEIGHTED: tl.constexpr, COLUMNS: tl.constexpr,
    NODES: tl.constexpr, ROWS: tl.constexpr, PARTIAL: tl.constexpr,
):  # fmt: skip
    """Return scale·Σ weight·source[u] over the neighbours u of each of NODES nodes, whose arcs are first … last − 1.

    If PARTIAL, rows first … last − 1 of `source` are the partial sums that `sum_pieces` wrote.
    """
    column = tl.arange(0, COLUMNS)
    inside = (column < columns)[None, :]
    summed = tl.zeros([NODES, COLUMNS], tl.float32)
    most = tl.max(last - first, axis=0)
    for begin in range(0, most, ROWS):
        for k in tl.static_range(ROWS):
            arc = first + begin + k
            here = arc < last
            other = arc if PARTIAL else tl.load(indices + arc, mask=here, other=0).to(tl.int64)
            rows = source + other[:, None] * columns + column[None, :]
            vectors = tl.load(rows, mask=here[:, None] & inside, other=0.0).to(tl.float32)
            if WEIGHTED and not PARTIAL:
                vectors *= _share(weights, arc, here, scale)[:, None]
            summed += vectors
    if not WEIGHTED:
        summed *= scale.to(tl.float32)[:, None]
    return summed


@triton.jit(do_not_specialize=["first_place", "last_place"])
def average(
    nodes, summands, indptr, indices, weights, scales, target, first_place: tl.int64, last_place: tl.int64, columns,
    WEIGHTED: tl.constexpr, COLUMNS: tl.constexpr, NODES: tl.constexpr, ROWS: tl.constexpr, PARTIAL: tl.constexpr,
    NARROW: tl.constexpr,
):  # fmt: skip
    """target[v] ← scales[v]·Σ weights·summands[u] over neighbours u, for v = nodes[first_place … last_place − 1].

    If PARTIAL, `summands` are the partial sums of `sum_pieces`, of which indptr[i] … indptr[i + 1] − 1 belong to
    nodes[i]. If NARROW, the mean is rounded to half precision.
    """
    node, here, first, last = _find_nodes(nodes, indptr, first_place, last_place, NODES, PARTIAL)
    scale = tl.load(scales + node, mask=here, other=0.0)
    mean = _sum_neighbours(
        summands, indices, weights, scale, first, last, columns, WEIGHTED, COLUMNS, NODES, ROWS, PARTIAL
    )
    if NARROW:
        mean = mean.to(tl.float16)
    column = tl.arange(0, COLUMNS)
    mask = here[:, None] & (column < columns)[None, :]
    tl.store(target + node[:, None] * columns + column[None, :], mean, mask=mask)


@triton.jit(do_not_specialize=["first_place", "last_place"])
def filter_rows(
    nodes, source, summands, indptr, indices, weights, inverse, kept, now, before, filtered, target, a: tl.float32,
    b: tl.float32, c: tl.float32, weight: tl.float32, first_place: tl.int64, last_place: tl.int64, columns,
    STEP: tl.constexpr, WEIGHTED: tl.constexpr, COLUMNS: tl.constexpr, NODES: tl.constexpr, ROWS: tl.constexpr,
    PARTIAL: tl.constexpr,
):  # fmt: skip
    """Do a filter step for rows v = nodes[first_place … last_place − 1], with S = inverse[v]·Σ weights·source[u].

    `summands` is `source` or, if PARTIAL, partial sums of it as in `average`.

    target[v] ← kept[v]·source[v] + a·S; or if STEP, target[v] ← a·(kept[v]·source[v] − S) + b·now[v] + c·before[v], and
    filtered[v] += weight·target[v].
    """
    node, here, first, last = _find_nodes(nodes, indptr, first_place, last_place, NODES, PARTIAL)
    scale = tl.load(inverse + node, mask=here, other=0.0)
    summed = _sum_neighbours(
        summands, indices, weights, scale, first, last, columns, WEIGHTED, COLUMNS, NODES, ROWS, PARTIAL
    )
    column = tl.arange(0, COLUMNS)
    mask = here[:, None] & (column < columns)[None, :]
    at = node[:, None] * columns + column[None, :]
    result = tl.load(kept + node, mask=here, other=0.0)[:, None] * tl.load(source + at, mask=mask, other=0.0)
    if STEP:
        result = a * (result - summed)
        result += b * tl.load(now + at, mask=mask, other=0.0)
        result += c * tl.load(before + at, mask=mask, other=0.0)
        grown = tl.load(filtered + at, mask=mask, other=0.0) + weight * result
        tl.store(filtered + at, grown, mask=mask)
    else:
        result += a * summed
    tl.store(target + at, result, mask=mask)


@triton.jit(do_not_specialize=["size"])
def resize(table, sizes, size: tl.int64, columns, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """Scale each of `size` rows v to norm sizes[v]; rows of size 0 stay."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    wanted = tl.load(sizes + row, mask=row < size, other=0.0)
    column = tl.arange(0, COLUMNS)
    mask = (wanted > 0.0)[:, None] & (column < columns)[None, :]
    at = table + row[:, None] * columns + column[None, :]
    x = tl.load(at, mask=mask, other=0.0)
    exact = x.to(tl.float64)
    squares = tl.sum(exact * exact, axis=1)
    factor = tl.where(squares > 0.0, wanted / tl.sqrt(tl.where(squares > 0.0, squares, 1.0)), 1.0)
    tl.store(at, (exact * factor[:, None]).to(tl.float32), mask=mask)


@triton.jit(do_not_specialize=["size"])
def add_up(
    table, counts, totals, squares, size: tl.int64, columns, unit: tl.float32, largest: tl.float32,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write each program's part of the sum of rows v with counts[v] > 0, and of their squares.

    Values are clipped to ±largest and rounded to multiples of `unit`; sums are in units, as whole numbers.
    """
    column = tl.arange(0, COLUMNS)
    inside = (column < columns)[None, :]
    total = tl.zeros([ROWS, COLUMNS], tl.float64)
    square = tl.zeros([ROWS, COLUMNS], tl.float64)
    for begin in range(tl.program_id(0) * ROWS, size, tl.num_programs(0) * ROWS):
        row = begin + tl.arange(0, ROWS).to(tl.int64)
        mask = (tl.load(counts + row, mask=row < size, other=0) > 0)[:, None] & inside
        x = tl.load(table + row[:, None] * columns + column[None, :], mask=mask, other=0.0)
        x = tl.minimum(tl.maximum(x, -largest), largest) / unit
        # adding and subtracting 1.5·2^23 rounds to the nearest whole number, halves to even
        number = ((x + 12582912.0) - 12582912.0).to(tl.float64)
        total += number
        square += number * number
    at = tl.program_id(0).to(tl.int64) * columns + column
    tl.store(totals + at, tl.sum(total, axis=0), mask=column < columns)
    tl.store(squares + at, tl.sum(square, axis=0), mask=column < columns)


@triton.jit(do_not_specialize=["size", "dimensions"])
def draw_rows(
    table, keys, size: tl.int64, columns, dimensions: tl.int64, COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """Draw the initial vectors from the key at `keys`, uniform in ±0.5/dimensions; further columns are 0."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS).to(tl.int64)
    key = tl.load(keys).to(tl.uint64, bitcast=True)
    drawn = derive(derive(key, row)[:, None], column[None, :])
    unit = (drawn >> 11).to(tl.int64).to(tl.float64) * 1.1102230246251565e-16
    value = ((unit - 0.5) / dimensions.to(tl.float64)).to(tl.float32)
    value = tl.where((column < dimensions)[None, :], value, 0.0)
    mask = (row < size)[:, None] & (column < columns)[None, :]
    tl.store(table + row[:, None] * columns + column[None, :], value, mask=mask)


@triton.jit
def fetch_rows(table, row, columns, COLUMNS: tl.constexpr, EVEN: tl.constexpr):
    """Return rows of a table in its precision; a dropped row, −1, is zeros.

    Rows have `columns` numbers; COLUMNS is the next power of two, and equal to `columns` if EVEN.
    """
    column = tl.arange(0, COLUMNS)
    mask = (row >= 0)[:, None]
    if not EVEN:
        mask = mask & (column < columns)[None, :]
    return tl.load(table + row.to(tl.int64)[:, None] * columns + column[None, :], mask=mask, other=0.0)


_GOLDEN = tl.constexpr(GOLDEN)
_FIRST_FACTOR = tl.constexpr(FIRST_FACTOR)
_SECOND_FACTOR = tl.constexpr(SECOND_FACTOR)


@triton.jit
def derive(key, number):
    """Return the draw with this number under this key."""
    z = key + _GOLDEN * (number.to(tl.uint64) + 1)
    z = (z ^ (z >> 30)) * _FIRST_FACTOR
    z = (z ^ (z >> 27)) * _SECOND_FACTOR
    return z ^ (z >> 31)


@triton.jit
def choose(first, degree, drawn, thresholds, aliases, goes, WEIGHTED: tl.constexpr):
    """Return the arc that a draw selects from `degree` arcs from `first` on, for lanes where `goes` is True."""
    place = tl.umulhi(drawn, degree.to(tl.uint64)).to(tl.int64)
    if WEIGHTED:
        remainder = ((drawn * degree.to(tl.uint64)) >> 32).to(tl.uint32)
        limit = tl.load(thresholds + first + place, mask=goes, other=0).to(tl.uint32, bitcast=True)
        alias = tl.load(aliases + first + place, mask=goes, other=0).to(tl.int64)
        place = tl.where(remainder >= limit, alias, place)
    return first + place
