"""Rounds by walks on a GPU, compiled by Triton: `draw` draws the rows of many iterations, `absorb` moves nodes by them.

The definition is `reference`; read that first. Drawing needs no vectors, so it is done ahead, one lane for each target,
and a long chain of iterations finds its rows ready. Moving is one program for each node: an iteration's rows are read
and computed together, `ROWS` at a time, and iterations follow one another. `commit` ends the round.

Numbers that differ from call to call are not to be specialised on: the engine compiles once and calls often.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

from manela.kernels.gpu_draws import choose, derive


@triton.jit(do_not_specialize=["pairs", "first_iteration", "size"])
def draw(
    slots,
    nodes,
    rounds,
    starts,
    keys,
    hops,
    indptr,
    indices,
    thresholds,
    aliases,
    rows,
    pairs: tl.int64,
    first_iteration: tl.int64,
    size: tl.int64,
    targets,
    negatives,
    most_hops,
    WEIGHTED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Draw the rows of iterations: rows[i, j, 0] is target j of iteration i, behind it its negatives; −1 if dropped.

    Iteration first_iteration + i belongs to slot slots[i], which is node nodes[slot] in the round whose key is
    keys[rounds[slot]], and whose iterations begin at starts[slot]. Target j is hops[j] steps away. A negative is one of
    `size` nodes.
    """
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = place < pairs
    iteration = place // targets
    target = place % targets
    slot = tl.load(slots + iteration, mask=here, other=0)
    node = tl.load(nodes + slot, mask=here, other=0).to(tl.int64)
    number = first_iteration + iteration - tl.load(starts + slot, mask=here, other=0)
    key = tl.load(keys + tl.load(rounds + slot, mask=here, other=0), mask=here, other=0).to(tl.uint64, bitcast=True)
    key = derive(derive(key, node), number)
    walk = derive(key, target * (1 + negatives))
    steps = tl.load(hops + target, mask=here, other=0)
    at = node
    for step in range(most_hops):
        goes = here & (step < steps) & (at >= 0)
        first = tl.load(indptr + at, mask=goes, other=0)
        degree = tl.load(indptr + at + 1, mask=goes, other=0) - first
        goes = goes & (degree > 0)
        drawn = derive(walk, tl.full([BLOCK], step, tl.int64))
        arc = choose(first, degree, drawn, thresholds, aliases, goes, WEIGHTED)
        reached = tl.load(indices + arc, mask=goes, other=-1).to(tl.int64)
        at = tl.where(step < steps, reached, at)
    at = tl.where(at == node, -1, at)
    out = rows + place * (1 + negatives)
    tl.store(out, at.to(tl.int32), mask=here)
    for negative in range(negatives):
        drawn = derive(key, target * (1 + negatives) + 1 + negative)
        row = tl.umulhi(drawn, tl.full([BLOCK], 0, tl.uint64) + size.to(tl.uint64)).to(tl.int32)
        tl.store(out + 1 + negative, tl.where(at >= 0, row, -1), mask=here)


@triton.jit(do_not_specialize=["first_slot", "first_place", "first_iteration", "width"])
def absorb(
    nodes,
    starts,
    counts,
    rows,
    own,
    others,
    moved,
    made,
    rate: tl.float32,
    first_slot: tl.int64,
    first_place: tl.int64,
    first_iteration: tl.int64,
    width: tl.int64,
    columns,
    GROUP: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    EVEN: tl.constexpr,
):
    """Move one node by its iterations: slot first_slot + i, whose vector and update pairs go to place first_place + i.

    Its iterations are counts[slot] from starts[slot] on, of which rows holds those from first_iteration on: `width`
    rows each, in groups of a target and its negatives. Reads own[node] and rows of others, both with `columns` floats
    a row; COLUMNS is the next power of two, and if EVEN the same.
    """
    slot = first_slot + tl.program_id(0)
    first = (tl.load(starts + slot) - first_iteration) * width
    count = tl.load(counts + slot)
    x = _read(own, tl.load(nodes + slot), columns, COLUMNS, EVEN)
    pairs = tl.zeros([ROWS], tl.int32)
    for k in range(count):
        change = tl.zeros([ROWS, COLUMNS], tl.float32)
        for begin in range(0, width, ROWS):
            place = begin + tl.arange(0, ROWS)
            row = tl.load(rows + first + k * width + place, mask=place < width, other=-1)
            tile = _fetch(others, row, columns, COLUMNS, EVEN)
            change += tile * _gradients(x, tile, place, GROUP)[:, None]
            pairs += ((row >= 0) & (place % GROUP == 0)).to(tl.int32)
        x += rate * tl.sum(change, axis=0)
    _write(moved, first_place + tl.program_id(0), x, columns, COLUMNS, EVEN)
    tl.store(made + first_place + tl.program_id(0), tl.sum(pairs, axis=0))


@triton.jit(do_not_specialize=["first_slot", "first_place", "first_iteration", "width"])
def absorb_long(
    nodes,
    starts,
    counts,
    rows,
    own,
    others,
    moved,
    made,
    rate: tl.float32,
    first_slot: tl.int64,
    first_place: tl.int64,
    first_iteration: tl.int64,
    width: tl.int64,
    columns,
    GROUP: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    EVEN: tl.constexpr,
):
    """The same for a long chain of iterations, with `width` ≤ ROWS: all rows of an iteration at once, by many warps.

    The next iteration's rows are on their way while this one's are computed, and the numbers of those after it.
    """
    slot = first_slot + tl.program_id(0)
    count = tl.load(counts + slot)
    x = _read(own, tl.load(nodes + slot), columns, COLUMNS, EVEN)
    place = tl.arange(0, ROWS)
    here = rows + (tl.load(starts + slot) - first_iteration) * width + place
    row = tl.load(here, mask=place < width, other=-1)
    ahead = tl.load(here + width, mask=(place < width) & (place < (count - 1) * width), other=-1)
    tile = _fetch(others, row, columns, COLUMNS, EVEN)
    pairs = tl.zeros([ROWS], tl.int32)
    for k in range(count):
        tile_ahead = _fetch(others, ahead, columns, COLUMNS, EVEN)
        pairs += ((row >= 0) & (place % GROUP == 0)).to(tl.int32)
        row = ahead
        left = (count - k - 2) * width
        ahead = tl.load(here + (k + 2) * width, mask=(place < width) & (place < left), other=-1)
        x += rate * tl.sum(tile * _gradients(x, tile, place, GROUP)[:, None], axis=0)
        tile = tile_ahead
    _write(moved, first_place + tl.program_id(0), x, columns, COLUMNS, EVEN)
    tl.store(made + first_place + tl.program_id(0), tl.sum(pairs, axis=0))


@triton.jit
def _gradients(x, tile, place, GROUP: tl.constexpr):
    """By how much of each row of the tile x moves, over the learning rate: 1 − σ for a target, −σ for a negative."""
    z = tl.sum(tile * x[None, :], axis=1)
    z = tl.minimum(tl.maximum(z, -30.0), 30.0)
    return tl.where(place % GROUP == 0, 1.0, 0.0) - 1.0 / (1.0 + tl.exp(-z))


@triton.jit
def _read(table, row, columns, COLUMNS: tl.constexpr, EVEN: tl.constexpr):
    """One row of a table."""
    column = tl.arange(0, COLUMNS)
    at = table + row.to(tl.int64) * columns + column
    if EVEN:
        return tl.load(at)
    return tl.load(at, mask=column < columns, other=0.0)


@triton.jit
def _fetch(table, row, columns, COLUMNS: tl.constexpr, EVEN: tl.constexpr):
    """These rows of a table in single precision; a dropped one, −1, as zeros, which move nothing."""
    column = tl.arange(0, COLUMNS)
    mask = (row >= 0)[:, None]
    if not EVEN:
        mask = mask & (column < columns)[None, :]
    return tl.load(table + row.to(tl.int64)[:, None] * columns + column[None, :], mask=mask, other=0.0).to(tl.float32)


@triton.jit
def _write(table, row, x, columns, COLUMNS: tl.constexpr, EVEN: tl.constexpr):
    column = tl.arange(0, COLUMNS)
    at = table + row * columns + column
    if EVEN:
        tl.store(at, x)
    else:
        tl.store(at, x, mask=column < columns)


@triton.jit(do_not_specialize=["first_slot", "slots"])
def commit(
    nodes,
    moved,
    made,
    table,
    snapshot,
    updates,
    first_slot: tl.int64,
    slots: tl.int64,
    columns,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    NARROW: tl.constexpr,
    COUNT: tl.constexpr,
):
    """table[nodes] ← moved, and if NARROW what others read of it; if COUNT, updates[nodes] += made."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = i < slots
    node = tl.load(nodes + first_slot + i, mask=here, other=0).to(tl.int64)
    column = tl.arange(0, COLUMNS)
    mask = here[:, None] & (column < columns)[None, :]
    x = tl.load(moved + i.to(tl.int64)[:, None] * columns + column[None, :], mask=mask, other=0.0)
    at = node[:, None] * columns + column[None, :]
    tl.store(table + at, x, mask=mask)
    if NARROW:
        tl.store(snapshot + at, x.to(tl.bfloat16), mask=mask)
    if COUNT:
        done = tl.load(updates + node, mask=here, other=0)
        tl.store(updates + node, done + tl.load(made + i, mask=here, other=0), mask=here)
