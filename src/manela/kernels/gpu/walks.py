"""Walk rounds on a GPU, compiled by Triton.

The definition is in `reference`; read that first. `draw` draws the row numbers of targets and negatives for many
iterations. It needs no vectors, so it runs ahead, one lane for each target. `absorb` then computes the new vectors,
with one program for each node: iterations run one after the other, and each reads its rows together, `ROWS` at a time.
`commit` ends the round.

Arguments that differ from call to call are not specialised on, so that the engine compiles once and calls often.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

from manela.kernels.gpu.rows import choose, derive, fetch_rows, read_row, write_row


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
    """Draw rows for iterations: rows[i, j, 0] is target j of iteration i, its negatives follow; −1 if dropped.

    Iteration first_iteration + i belongs to slot slots[i]. A slot stands for node nodes[slot] in the round with key
    keys[rounds[slot]]; its iterations begin at starts[slot]. Target j is hops[j] steps away. A negative is one of
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
    LONG: tl.constexpr,
):
    """Run the iterations of slot first_slot + i; its new vector and update pairs are written at first_place + i.

    The slot has counts[slot] iterations, starting at starts[slot]. `rows` begins with iteration first_iteration and
    holds `width` row numbers for each, in groups of a target and its negatives. Reads own[node] and rows of `others`,
    both with `columns` floats per row. COLUMNS is the next power of two, and equal to `columns` if EVEN.
    LONG prefetches, for slots with many iterations; it needs `width` ≤ ROWS.
    """
    slot = first_slot + tl.program_id(0)
    count = tl.load(counts + slot)
    drawn = rows + (tl.load(starts + slot) - first_iteration) * width
    x = read_row(own, tl.load(nodes + slot), columns, COLUMNS, EVEN)
    if LONG:
        x, pairs = _move_ahead(x, drawn, count, others, rate, width, columns, GROUP, COLUMNS, ROWS, EVEN)
    else:
        x, pairs = _move(x, drawn, count, others, rate, width, columns, GROUP, COLUMNS, ROWS, EVEN)
    place = first_place + tl.program_id(0)
    write_row(moved, place, x, columns, COLUMNS, EVEN)
    tl.store(made + place, tl.sum(pairs, axis=0))


@triton.jit
def _move(
    x, drawn, count, others, rate, width, columns,
    GROUP: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Return x after `count` iterations, which read ROWS rows at a time, and the pairs made in each place of a tile."""
    pairs = tl.zeros([ROWS], tl.int32)
    for k in range(count):
        change = tl.zeros([ROWS, COLUMNS], tl.float32)
        for begin in range(0, width, ROWS):
            place = begin + tl.arange(0, ROWS)
            row = tl.load(drawn + k * width + place, mask=place < width, other=-1)
            tile = fetch_rows(others, row, columns, COLUMNS, EVEN).to(tl.float32)
            change += tile * _gradients(x, tile, place, GROUP)[:, None]
            pairs += _count(row, place, GROUP)
        x += rate * tl.sum(change, axis=0)
    return x, pairs


@triton.jit
def _move_ahead(
    x, drawn, count, others, rate, width, columns,
    GROUP: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Do as `_move`, for many iterations and `width` ≤ ROWS: many warps read all rows of an iteration at once.

    While an iteration is computed, the next one's vectors are prefetched, and the row numbers of the one after that.
    """
    place = tl.arange(0, ROWS)
    here = drawn + place
    row = tl.load(here, mask=place < width, other=-1)
    ahead = tl.load(here + width, mask=(place < width) & (place < (count - 1) * width), other=-1)
    tile = fetch_rows(others, row, columns, COLUMNS, EVEN).to(tl.float32)
    pairs = tl.zeros([ROWS], tl.int32)
    for k in range(count):
        tile_ahead = fetch_rows(others, ahead, columns, COLUMNS, EVEN).to(tl.float32)
        pairs += _count(row, place, GROUP)
        row = ahead
        left = (count - k - 2) * width
        ahead = tl.load(here + (k + 2) * width, mask=(place < width) & (place < left), other=-1)
        x += rate * tl.sum(tile * _gradients(x, tile, place, GROUP)[:, None], axis=0)
        tile = tile_ahead
    return x, pairs


@triton.jit
def _count(row, place, GROUP: tl.constexpr):
    """Return 1 for each target that was not dropped, otherwise 0."""
    return ((row >= 0) & (place % GROUP == 0)).to(tl.int32)


@triton.jit
def _gradients(x, tile, place, GROUP: tl.constexpr):
    """Return the factor of each row of the tile in the gradient of x: 1 − σ for a target, −σ for a negative."""
    z = tl.sum(tile * x[None, :], axis=1)
    z = tl.minimum(tl.maximum(z, -30.0), 30.0)
    return tl.where(place % GROUP == 0, 1.0, 0.0) - 1.0 / (1.0 + tl.exp(-z))


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
    """table[nodes] ← moved; if NARROW, snapshot[nodes] ← moved as bfloat16; if COUNT, updates[nodes] += made."""
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
