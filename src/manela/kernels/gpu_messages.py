"""Rounds by messages on a GPU, compiled by Triton: tiles of nodes against a common table of negatives.

The definition is `reference`; read that first. The nodes of a round are sorted by their iterations, most first, so that
those with an iteration j are the first ones. An iteration is three kernels: `draw_targets` draws, one lane for each
target; `pull` reads the targets of a node, one program each; `push` takes a tile of nodes, whose products with the
negatives, and the way back, are two products of matrices for tensor cores, and moves them. What is read is what nodes
showed when the round began, so they move in place.

Numbers that differ from call to call are not to be specialised on: the engine compiles once and calls often.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

from manela.kernels.gpu_draws import choose, derive
from manela.kernels.reference import MOST_OWN

_MOST_OWN = tl.constexpr(MOST_OWN)


@triton.jit(do_not_specialize=["first_place", "active", "number", "iteration", "size"])
def draw_targets(
    nodes,
    indptr,
    indices,
    thresholds,
    aliases,
    shares,
    scales,
    hops,
    keys,
    rows,
    own_shares,
    first_place: tl.int64,
    active: tl.int64,
    number: tl.int64,
    iteration: tl.int64,
    size: tl.int64,
    targets,
    HOPS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    BY_ARC: tl.constexpr,
    DIRECTED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Draw the targets of an iteration for `active` nodes nodes[first_place + i]: rows[i, j] is what target j shows.

    That is row hops[j]·size + neighbour, −1 for a target that is dropped; target j is hops[j] + 1 hops away. If there
    is more than one hop, own_shares[i, j] is the part of it that is the node's own: shares[arc] if BY_ARC, else
    scales[neighbour]. The key of the round is keys[number].
    """
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    reads = place < active * targets
    target = place % targets
    node = tl.load(nodes + first_place + place // targets, mask=reads, other=0).to(tl.int64)
    hop = tl.load(hops + target, mask=reads, other=0)
    first = tl.load(indptr + node, mask=reads, other=0).to(tl.int64)
    degree = tl.load(indptr + node + 1, mask=reads, other=0).to(tl.int64) - first
    key = derive(tl.load(keys + number).to(tl.uint64, bitcast=True), node)
    drawn = derive(derive(key, tl.full([BLOCK], 0, tl.int64) + iteration), target)
    arc = choose(first, degree, drawn, thresholds, aliases, reads, WEIGHTED)
    other = tl.load(indices + arc, mask=reads, other=0).to(tl.int64)
    kept = reads
    if HOPS > 1:
        second = reads & (hop == 1)
        if BY_ARC:
            share = tl.load(shares + arc, mask=second, other=0.0)
        else:
            share = tl.load(scales + other, mask=second, other=0.0).to(tl.float32)
        kept = kept & (share <= _MOST_OWN)
        if DIRECTED:
            further = reads & (hop > 1)
            kept = kept & (tl.load(scales + (hop - 1) * size + other, mask=further, other=1.0) > 0.0)
        tl.store(own_shares + place, share, mask=reads)
    tl.store(rows + place, tl.where(kept, hop * size + other, -1), mask=reads)


@triton.jit(do_not_specialize=["first_place", "targets"])
def pull(
    nodes,
    rows,
    own_shares,
    table,
    shown,
    changes,
    kept,
    first_place: tl.int64,
    targets: tl.int64,
    columns,
    HOPS: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    EVEN: tl.constexpr,
):
    """Write how a node's targets pull at it in one iteration, and how many there are: nodes[first_place + i]'s to i.

    ROWS targets are taken at once, while the next ones are on their way. Rows have `columns` numbers; COLUMNS is the
    next power of two, and if EVEN the same.
    """
    place = tl.program_id(0).to(tl.int64)
    first = tl.arange(0, ROWS)
    drawn = rows + place * targets + first
    row = tl.load(drawn, mask=first < targets, other=-1).to(tl.int64)
    ahead = tl.load(drawn + ROWS, mask=first + ROWS < targets, other=-1).to(tl.int64)
    node = tl.load(nodes + first_place + place).to(tl.int64)
    column = tl.arange(0, COLUMNS)
    inside = column < columns
    u = _fetch(shown, row, columns, COLUMNS, EVEN)
    x = tl.load(table + node * columns + column, mask=inside, other=0.0)
    change = tl.zeros([ROWS, COLUMNS], tl.float32)
    found = tl.zeros([ROWS], tl.int32)
    if HOPS > 1:
        own = tl.load(shown + node * columns + column, mask=inside, other=0.0).to(tl.float32)
        own_product = tl.sum(x * own, axis=0)
        back = tl.zeros([ROWS], tl.float32)
    for begin in range(0, targets, ROWS):
        u_ahead = _fetch(shown, ahead, columns, COLUMNS, EVEN)
        target = begin + first
        here = row >= 0
        row = ahead
        ahead = tl.load(drawn + begin + 2 * ROWS, mask=target + 2 * ROWS < targets, other=-1).to(tl.int64)
        if HOPS > 1:
            share = tl.load(own_shares + place * targets + target, mask=here, other=0.0)
        v = u.to(tl.float32)
        z = tl.sum(v * x[None, :], axis=1)
        if HOPS > 1:
            rest = 1.0 / (1.0 - share)
            gradient = tl.where(here, (1.0 - _sigmoid((z - share * own_product) * rest)) * rest, 0.0)
            back += gradient * share
        else:
            gradient = tl.where(here, 1.0 - _sigmoid(z), 0.0)
        change += gradient[:, None] * v
        found += here.to(tl.int32)
        u = u_ahead
    total = tl.sum(change, axis=0)
    if HOPS > 1:
        total -= tl.sum(back, axis=0) * own
    tl.store(changes + place * columns + column, total, mask=inside)
    tl.store(kept + place, tl.sum(found, axis=0))


@triton.jit
def _fetch(shown, row, columns, COLUMNS: tl.constexpr, EVEN: tl.constexpr):
    """These rows, in half precision; a dropped one, −1, as zeros."""
    column = tl.arange(0, COLUMNS)
    mask = (row >= 0)[:, None]
    if not EVEN:
        mask = mask & (column < columns)[None, :]
    return tl.load(shown + row[:, None] * columns + column[None, :], mask=mask, other=0.0)


@triton.jit(do_not_specialize=["first_place", "active", "amount", "targets"])
def push(
    nodes,
    table,
    negatives,
    changes,
    kept,
    updates,
    rate: tl.float32,
    first_place: tl.int64,
    active: tl.int64,
    columns,
    amount: tl.int64,
    targets: tl.int64,
    COUNT: tl.constexpr,
    PRECISION: tl.constexpr,
    TILE: tl.constexpr,
    COLUMNS: tl.constexpr,
    NEGATIVES: tl.constexpr,
):
    """Move a tile of `active` nodes from first_place on by what pulls at them, and by `amount` common negatives.

    `amount` is a multiple of NEGATIVES. If COUNT, updates[v] grows by the update pairs made.
    """
    place = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    here = place < active
    node = tl.load(nodes + first_place + place, mask=here, other=0).to(tl.int64)
    column = tl.arange(0, COLUMNS)
    mask = here[:, None] & (column < columns)[None, :]
    at = node[:, None] * columns + column[None, :]
    x = tl.load(table + at, mask=mask, other=0.0).to(negatives.dtype.element_ty)
    away = tl.zeros([TILE, COLUMNS], tl.float32)
    for begin in range(0, amount, NEGATIVES):
        row = begin + tl.arange(0, NEGATIVES)
        some = tl.load(
            negatives + row[:, None] * columns + column[None, :], mask=(column < columns)[None, :], other=0.0
        )
        z = tl.dot(x, tl.trans(some), input_precision=PRECISION)
        away = tl.dot(_sigmoid(z).to(some.dtype), some, away, input_precision=PRECISION)
    found = tl.load(kept + place, mask=here, other=0)
    change = tl.load(changes + place[:, None] * columns + column[None, :], mask=mask, other=0.0)
    change -= (found.to(tl.float32) / targets.to(tl.float32))[:, None] * away
    tl.store(table + at, tl.load(table + at, mask=mask, other=0.0) + rate * change, mask=mask)
    if COUNT:
        tl.store(updates + node, tl.load(updates + node, mask=here, other=0) + found, mask=here)


@triton.jit
def _sigmoid(z):
    return 1.0 / (1.0 + tl.exp(-tl.minimum(tl.maximum(z, -30.0), 30.0)))


@triton.jit
def _share(weights, arc, here, scale):
    """An arc's part of a mean; more than 1 has only one to a dead end, whose row is zero, beside a lighter one."""
    return tl.minimum(tl.load(weights + arc, mask=here, other=0.0) * scale, 1.0).to(tl.float32)


@triton.jit
def sum_pieces(
    source, indices, weights, scales, firsts, lasts, nodes, partial, columns, WEIGHTED: tl.constexpr,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """partial[i] ← Σ source[u] over the neighbours u that the arcs firsts[i] … lasts[i] − 1 of nodes[i] lead to.

    With weights, each times its weight and the node's scale, whose product is not large.
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
        found = tl.load(rows, mask=here[:, None] & inside, other=0.0).to(tl.float32)
        if WEIGHTED:
            found *= _share(weights, arc, here, scale)[:, None]
        total += found
    tl.store(partial + piece * columns + column, tl.sum(total, axis=0), mask=column < columns)


@triton.jit
def _sum_neighbours(
    source, indices, weights, scale, first, last, columns, WEIGHTED: tl.constexpr, COLUMNS: tl.constexpr,
    NODES: tl.constexpr, ROWS: tl.constexpr, PARTIAL: tl.constexpr,
):  # fmt: skip
    """scale·Σ weight·source[u] over the neighbours u of each of NODES nodes, whose arcs are first … last − 1.

    If PARTIAL, `source` has sums over a part of them each, by `sum_pieces`, in the rows first … last − 1.
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
            found = tl.load(rows, mask=here[:, None] & inside, other=0.0).to(tl.float32)
            if WEIGHTED and not PARTIAL:
                found *= _share(weights, arc, here, scale)[:, None]
            summed += found
    if not WEIGHTED:
        summed *= scale.to(tl.float32)[:, None]
    return summed


@triton.jit(do_not_specialize=["first_place", "last_place"])
def average(
    nodes,
    summands,
    indptr,
    indices,
    weights,
    scales,
    target,
    first_place: tl.int64,
    last_place: tl.int64,
    columns,
    WEIGHTED: tl.constexpr,
    COLUMNS: tl.constexpr,
    NODES: tl.constexpr,
    ROWS: tl.constexpr,
    PARTIAL: tl.constexpr,
    NARROW: tl.constexpr,
):
    """target[v] ← scales[v]·Σ weights·summands[u] over neighbours u, for v = nodes[first_place … last_place − 1].

    If PARTIAL, `summands` are the sums of `sum_pieces`, and those of the node at place i are indptr[i] …
    indptr[i + 1] − 1. If NARROW, the mean is rounded to half precision.
    """
    place = first_place + tl.program_id(0).to(tl.int64) * NODES + tl.arange(0, NODES)
    here = place < last_place
    node = tl.load(nodes + place, mask=here, other=0).to(tl.int64)
    own = place if PARTIAL else node
    first = tl.load(indptr + own, mask=here, other=0).to(tl.int64)
    last = tl.load(indptr + own + 1, mask=here, other=0).to(tl.int64)
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
    nodes,
    source,
    summands,
    indptr,
    indices,
    weights,
    inverse,
    kept,
    now,
    before,
    filtered,
    target,
    a: tl.float32,
    b: tl.float32,
    c: tl.float32,
    weight: tl.float32,
    first_place: tl.int64,
    last_place: tl.int64,
    columns,
    STEP: tl.constexpr,
    WEIGHTED: tl.constexpr,
    COLUMNS: tl.constexpr,
    NODES: tl.constexpr,
    ROWS: tl.constexpr,
    PARTIAL: tl.constexpr,
):
    """A step of a filter for the rows v = nodes[first_place … last_place − 1], with S = inverse[v]·Σ weights·source[u].

    `summands` are the source, or if PARTIAL sums of it as `average` has them.

    target[v] ← kept[v]·source[v] + a·S; or if STEP, target[v] ← a·(kept[v]·source[v] − S) + b·now[v] + c·before[v], and
    filtered[v] += weight·target[v].
    """
    place = first_place + tl.program_id(0).to(tl.int64) * NODES + tl.arange(0, NODES)
    here = place < last_place
    node = tl.load(nodes + place, mask=here, other=0).to(tl.int64)
    own = place if PARTIAL else node
    first = tl.load(indptr + own, mask=here, other=0).to(tl.int64)
    last = tl.load(indptr + own + 1, mask=here, other=0).to(tl.int64)
    scale = tl.load(inverse + node, mask=here, other=0.0)
    summed = _sum_neighbours(
        summands, indices, weights, scale, first, last, columns, WEIGHTED, COLUMNS, NODES, ROWS, PARTIAL
    )
    column = tl.arange(0, COLUMNS)
    mask = here[:, None] & (column < columns)[None, :]
    at = node[:, None] * columns + column[None, :]
    found = tl.load(kept + node, mask=here, other=0.0)[:, None] * tl.load(source + at, mask=mask, other=0.0)
    if STEP:
        found = a * (found - summed)
        found += b * tl.load(now + at, mask=mask, other=0.0)
        found += c * tl.load(before + at, mask=mask, other=0.0)
        grown = tl.load(filtered + at, mask=mask, other=0.0) + weight * found
        tl.store(filtered + at, grown, mask=mask)
    else:
        found += a * summed
    tl.store(target + at, found, mask=mask)


@triton.jit(do_not_specialize=["size"])
def resize(
    table,
    sizes,
    mean,
    size: tl.int64,
    columns,
    CENTER: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Give each of `size` rows v the norm sizes[v], if CENTER with the mean taken away; where that is 0 it stays."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    wanted = tl.load(sizes + row, mask=row < size, other=0.0)
    column = tl.arange(0, COLUMNS)
    mask = (wanted > 0.0)[:, None] & (column < columns)[None, :]
    at = table + row[:, None] * columns + column[None, :]
    x = tl.load(at, mask=mask, other=0.0)
    if CENTER:
        x -= tl.load(mean + column, mask=column < columns, other=0.0)[None, :]
        x = tl.where(mask, x, 0.0)
    exact = x.to(tl.float64)
    squares = tl.sum(exact * exact, axis=1)
    factor = tl.where(squares > 0.0, wanted / tl.sqrt(tl.where(squares > 0.0, squares, 1.0)), 1.0)
    tl.store(at, (exact * factor[:, None]).to(tl.float32), mask=mask)


@triton.jit(do_not_specialize=["size"])
def add_up(
    table,
    counts,
    totals,
    squares,
    size: tl.int64,
    columns,
    unit: tl.float32,
    largest: tl.float32,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Each program's share of Σ rows v with counts[v] > 0, in units, as whole numbers; and of Σ squares."""
    column = tl.arange(0, COLUMNS)
    inside = (column < columns)[None, :]
    total = tl.zeros([ROWS, COLUMNS], tl.float64)
    square = tl.zeros([ROWS, COLUMNS], tl.float64)
    for begin in range(tl.program_id(0) * ROWS, size, tl.num_programs(0) * ROWS):
        row = begin + tl.arange(0, ROWS).to(tl.int64)
        mask = (tl.load(counts + row, mask=row < size, other=0) > 0)[:, None] & inside
        x = tl.load(table + row[:, None] * columns + column[None, :], mask=mask, other=0.0)
        x = tl.minimum(tl.maximum(x, -largest), largest) / unit
        # adding this rounds to a whole number, halves to the even one
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
    """The first vectors by the key at `keys`, uniform in ±0.5/dimensions; columns beyond these are 0."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS).to(tl.int64)
    key = tl.load(keys).to(tl.uint64, bitcast=True)
    drawn = derive(derive(key, row)[:, None], column[None, :])
    unit = (drawn >> 11).to(tl.int64).to(tl.float64) * 1.1102230246251565e-16
    value = ((unit - 0.5) / dimensions.to(tl.float64)).to(tl.float32)
    value = tl.where((column < dimensions)[None, :], value, 0.0)
    mask = (row < size)[:, None] & (column < columns)[None, :]
    tl.store(table + row[:, None] * columns + column[None, :], value, mask=mask)


@triton.jit(do_not_specialize=["first_key", "amount"])
def draw_normals(keys, normals, first_key: tl.int64, amount: tl.int64, dimensions, BLOCK: tl.constexpr):
    """normals[i, k] ← a standard normal number by draw k under keys[first_key + i]: `moments.draw` says how."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = place < amount * dimensions
    key = tl.load(keys + first_key + place // dimensions, mask=here, other=0).to(tl.uint64, bitcast=True)
    bits = derive(key, place % dimensions)
    # sums of two, four and eight neighbouring bits, and then of all bytes
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    ones = ((bits * 0x0101010101010101) >> 56).to(tl.int32)
    tl.store(normals + place, (ones - 32).to(tl.float64) / 4.0, mask=here)
