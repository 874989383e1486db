"""Rounds with messages on a GPU, compiled by Triton: tiles of nodes against a common table of negatives.

The definition is `reference`; read that first. The nodes of a round are sorted by their iterations, most first, so that
the nodes with an iteration j come first. An iteration is three kernels: `draw_targets` draws, with one lane per target;
`pull` reads the targets, with one program per node; `push` moves a tile of nodes, with two matrix products on tensor
cores: nodes with negatives, and the coefficients with negatives. Kernels read what nodes showed at the start of the
round, so nodes move in place.

Arguments that vary between calls must not be specialised: the engine compiles once and calls often.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

from manela.kernels.gpu.neighbours import choose, derive, fetch_rows
from manela.kernels.reference import MOST_OWN

_MOST_OWN = tl.constexpr(MOST_OWN)


@triton.jit(do_not_specialize=["first_place", "active", "number", "iteration", "size"])
def draw_targets(
    nodes, indptr, indices, thresholds, aliases, shares, scales, hops, keys, rows, own_shares, first_place: tl.int64,
    active: tl.int64, number: tl.int64, iteration: tl.int64, size: tl.int64, targets, HOPS: tl.constexpr,
    WEIGHTED: tl.constexpr, BY_ARC: tl.constexpr, DIRECTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Draw the targets of an iteration for `active` nodes nodes[first_place + i], and write their rows to rows[i, j].

    The row of target j is hops[j]·size + neighbour, or −1 if it is dropped; target j is hops[j] + 1 hops away. If there
    is more than one hop, own_shares[i, j] is the node's own share in it: shares[arc] if BY_ARC, else scales[neighbour].
    The key of the round is keys[number].
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
    nodes, rows, own_shares, table, shown, changes, kept, first_place: tl.int64, targets: tl.int64, columns,
    HOPS: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Write the pull of the targets on node nodes[first_place + i] to changes[i], and their number to kept[i].

    ROWS targets are processed at once, while the next ones are loaded. Rows have `columns` numbers; COLUMNS is the next
    power of two, and the same if EVEN.
    """
    place = tl.program_id(0).to(tl.int64)
    first = tl.arange(0, ROWS)
    drawn = rows + place * targets + first
    row = tl.load(drawn, mask=first < targets, other=-1).to(tl.int64)
    ahead = tl.load(drawn + ROWS, mask=first + ROWS < targets, other=-1).to(tl.int64)
    node = tl.load(nodes + first_place + place).to(tl.int64)
    column = tl.arange(0, COLUMNS)
    inside = column < columns
    u = fetch_rows(shown, row, columns, COLUMNS, EVEN)
    x = tl.load(table + node * columns + column, mask=inside, other=0.0)
    change = tl.zeros([ROWS, COLUMNS], tl.float32)
    used = tl.zeros([ROWS], tl.int32)
    if HOPS > 1:
        own = tl.load(shown + node * columns + column, mask=inside, other=0.0).to(tl.float32)
        own_product = tl.sum(x * own, axis=0)
        back = tl.zeros([ROWS], tl.float32)
    for begin in range(0, targets, ROWS):
        u_ahead = fetch_rows(shown, ahead, columns, COLUMNS, EVEN)
        target = begin + first
        here = row >= 0
        row = ahead
        ahead = tl.load(drawn + begin + 2 * ROWS, mask=target + 2 * ROWS < targets, other=-1).to(tl.int64)
        if HOPS > 1:
            share = tl.load(own_shares + place * targets + target, mask=here, other=0.0)
        v = u.to(tl.float32)
        z = tl.sum(v * x[None, :], axis=1)
        if HOPS > 1:
            inverse = 1.0 / (1.0 - share)
            gradient = tl.where(here, (1.0 - _sigmoid((z - share * own_product) * inverse)) * inverse, 0.0)
            back += gradient * share
        else:
            gradient = tl.where(here, 1.0 - _sigmoid(z), 0.0)
        change += gradient[:, None] * v
        used += here.to(tl.int32)
        u = u_ahead
    total = tl.sum(change, axis=0)
    if HOPS > 1:
        total -= tl.sum(back, axis=0) * own
    tl.store(changes + place * columns + column, total, mask=inside)
    tl.store(kept + place, tl.sum(used, axis=0))


@triton.jit(do_not_specialize=["first_place", "active", "amount", "targets"])
def push(
    nodes, table, negatives, changes, kept, updates, rate: tl.float32, first_place: tl.int64, active: tl.int64,
    columns, amount: tl.int64, targets: tl.int64, COUNT: tl.constexpr, PRECISION: tl.constexpr, TILE: tl.constexpr,
    COLUMNS: tl.constexpr, NEGATIVES: tl.constexpr,
):  # fmt: skip
    """Move a tile of `active` nodes from first_place on by the pull of targets, and by `amount` common negatives.

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
        negative = tl.load(
            negatives + row[:, None] * columns + column[None, :], mask=(column < columns)[None, :], other=0.0
        )
        z = tl.dot(x, tl.trans(negative), input_precision=PRECISION)
        away = tl.dot(_sigmoid(z).to(negative.dtype), negative, away, input_precision=PRECISION)
    used = tl.load(kept + place, mask=here, other=0)
    change = tl.load(changes + place[:, None] * columns + column[None, :], mask=mask, other=0.0)
    change -= (used.to(tl.float32) / targets.to(tl.float32))[:, None] * away
    tl.store(table + at, tl.load(table + at, mask=mask, other=0.0) + rate * change, mask=mask)
    if COUNT:
        tl.store(updates + node, tl.load(updates + node, mask=here, other=0) + used, mask=here)


@triton.jit
def _sigmoid(z):
    return 1.0 / (1.0 + tl.exp(-tl.minimum(tl.maximum(z, -30.0), 30.0)))


@triton.jit(do_not_specialize=["first_key", "amount"])
def draw_normals(keys, normals, first_key: tl.int64, amount: tl.int64, dimensions, BLOCK: tl.constexpr):
    """normals[i, k] ← a standard normal number by draw k under keys[first_key + i]: as in `moments.draw`."""
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
