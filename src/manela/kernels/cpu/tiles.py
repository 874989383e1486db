"""Vector instructions for rounds with messages, written as LLVM IR: tiles of nodes against common negatives.

Every product is one chain of fused multiply-adds in a fixed order: over dimensions for a dot product with a negative,
over negatives for the change of a vector. The chains, and so the bits, depend neither on the width of a register nor on
the place of a node in its tile.
"""

# mypy: ignore-errors

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from manela.kernels.cpu.simd import fma, fold, get_data, has_wide_registers, prefetch_line, sigmoid, splat
from manela.kernels.layout import LANES

TILE = 6
"""Nodes that are moved in parallel; more would not fit into the registers."""
GROUP = 8
"""Targets whose products are computed together."""

_WIDTH = 16 if has_wide_registers() else 8
_ACROSS = 4 if has_wide_registers() else 2
"""Registers of negatives per node of a tile; TILE × _ACROSS sums and a few others fill all registers."""
_BACK = 4 if has_wide_registers() else 2
"""Registers of dimensions per node of a tile, for the change of vectors."""
_SUMS = 8 if has_wide_registers() else 4
"""Registers of dimensions for one mean."""

_AHEAD = 16
"""Arcs between the current one and the one that is prefetched; more than the processor can have in flight are lost."""

_FLOAT, _WORD, _INT = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_VECTOR = ir.VectorType(_FLOAT, _WIDTH)
_ZEROS = ir.Constant(_VECTOR, [0.0] * _WIDTH)


@intrinsic
def multiply_tile(typing_context, x, transposed, block, products):
    """products[i, j] ← Σ_k x[i, k]·transposed[block, k, j], for the nodes i of a tile and all columns j.

    x is (TILE, m), transposed (blocks, m, columns), products (TILE, columns); columns is a multiple of 16.
    """

    def generate(context, builder, signature, arguments):
        xs, m = _matrix(context, builder, signature.args[0], arguments[0])
        base, depth, columns = _block(context, builder, signature.args[1], *arguments[1:3])
        sums, _ = _matrix(context, builder, signature.args[3], arguments[3])

        def multiply(first, registers):
            totals = [[cgutils.alloca_once(builder, _VECTOR) for _ in range(registers)] for _ in range(TILE)]
            for total in (total for row in totals for total in row):
                builder.store(_ZEROS, total)
            start = builder.gep(base, [first])
            with cgutils.for_range(builder, depth, intp=_WORD) as loop:
                line = builder.gep(start, [builder.mul(loop.index, columns)])
                scalars = [
                    splat(
                        builder,
                        builder.load(builder.gep(xs, [builder.add(builder.mul(m, _WORD(i)), loop.index)])),
                        _VECTOR,
                    )
                    for i in range(TILE)
                ]
                for register in range(registers):
                    negatives = _load(builder, line, _WORD(register * _WIDTH))
                    for i in range(TILE):
                        total = totals[i][register]
                        builder.store(fma(builder, scalars[i], negatives, builder.load(total)), total)
            for i in range(TILE):
                row = builder.gep(sums, [builder.add(builder.mul(columns, _WORD(i)), first)])
                for register in range(registers):
                    _store(builder, row, _WORD(register * _WIDTH), builder.load(totals[i][register]))

        _in_chunks(builder, columns, _ACROSS, multiply)
        return context.get_dummy_value()

    return types.void(x, transposed, types.int64, products), generate


@intrinsic
def push_away(typing_context, products, rates):
    """products[i, j] ← −rates[i]·σ(products[i, j])."""

    def generate(context, builder, signature, arguments):
        base, columns = _matrix(context, builder, signature.args[0], arguments[0])
        rates = get_data(context, builder, signature.args[1], arguments[1])
        for i in range(TILE):
            rate = splat(builder, builder.fneg(builder.load(builder.gep(rates, [_WORD(i)]))), _VECTOR)
            row = builder.gep(base, [builder.mul(columns, _WORD(i))])
            with cgutils.for_range_slice(builder, _WORD(0), columns, _WORD(_WIDTH), _WORD) as (k, _):
                _store(builder, row, k, builder.fmul(rate, sigmoid(builder, _load(builder, row, k))))
        return context.get_dummy_value()

    return types.void(products, rates), generate


@intrinsic
def absorb_tile(typing_context, coefficients, negatives, block, count, change):
    """change[i] += Σ_j coefficients[i, j]·negatives[block, j] over the first `count` negatives.

    coefficients is (TILE, columns), negatives (blocks, rows, m), change (TILE, m).
    """

    def generate(context, builder, signature, arguments):
        weights, columns = _matrix(context, builder, signature.args[0], arguments[0])
        base, _, m = _block(context, builder, signature.args[1], *arguments[1:3])
        changes, _ = _matrix(context, builder, signature.args[4], arguments[4])

        def absorb(first, registers):
            places = [builder.gep(changes, [builder.add(builder.mul(m, _WORD(i)), first)]) for i in range(TILE)]
            totals = [[cgutils.alloca_once(builder, _VECTOR) for _ in range(registers)] for _ in range(TILE)]
            for i in range(TILE):
                for register in range(registers):
                    builder.store(_load(builder, places[i], _WORD(register * _WIDTH)), totals[i][register])
            start = builder.gep(base, [first])
            with cgutils.for_range(builder, arguments[3], intp=_WORD) as loop:
                line = builder.gep(start, [builder.mul(loop.index, m)])
                parts = [_load(builder, line, _WORD(register * _WIDTH)) for register in range(registers)]
                for i in range(TILE):
                    place = builder.gep(weights, [builder.add(builder.mul(columns, _WORD(i)), loop.index)])
                    weight = splat(builder, builder.load(place), _VECTOR)
                    for register in range(registers):
                        total = totals[i][register]
                        builder.store(fma(builder, weight, parts[register], builder.load(total)), total)
            for i in range(TILE):
                for register in range(registers):
                    _store(builder, places[i], _WORD(register * _WIDTH), builder.load(totals[i][register]))

        _in_chunks(builder, m, _BACK, absorb)
        return context.get_dummy_value()

    return types.void(coefficients, negatives, types.int64, types.int64, change), generate


@intrinsic
def dot_rows(typing_context, x, node, table, rows, first, products):
    """products[first + j] ← x[node]·table[rows[first + j]], j = 0 … GROUP − 1: 16 partial sums, then folded."""
    signature = types.void(x, types.int64, table, rows, types.int64, products)

    def generate(context, builder, signature, arguments):
        xs, m = _matrix(context, builder, signature.args[0], arguments[0])
        xs = builder.gep(xs, [builder.mul(m, arguments[1])])
        starts = _starts(context, builder, signature, arguments, 2)
        wide = ir.VectorType(_FLOAT, LANES)
        sums = []
        for few in range(0, GROUP, GROUP if has_wide_registers() else 4):
            chosen = starts[few : few + (GROUP if has_wide_registers() else 4)]
            totals = [cgutils.alloca_once(builder, wide) for _ in chosen]
            for total in totals:
                builder.store(ir.Constant(wide, [0.0] * LANES), total)
            with cgutils.for_range_slice(builder, _WORD(0), m, _WORD(LANES), _WORD) as (k, _):
                part = _load(builder, xs, k, LANES)
                for total, start in zip(totals, chosen, strict=True):
                    builder.store(fma(builder, part, _widen(builder, start, k, LANES), builder.load(total)), total)
            sums += [builder.load(total) for total in totals]
        out = get_data(context, builder, signature.args[5], arguments[5])
        _store(builder, out, arguments[4], fold(builder, sums))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_rows(typing_context, coefficients, table, rows, count, change, node):
    """change[node] += Σ coefficients[j]·table[rows[j]], j = 0 … count − 1, in this order."""
    signature = types.void(coefficients, table, rows, types.int64, change, types.int64)

    def generate(context, builder, signature, arguments):
        weights = get_data(context, builder, signature.args[0], arguments[0])
        base, m = _matrix(context, builder, signature.args[1], arguments[1])
        rows = get_data(context, builder, signature.args[2], arguments[2])
        changes, _ = _matrix(context, builder, signature.args[4], arguments[4])
        changes = builder.gep(changes, [builder.mul(m, arguments[5])])

        def add(first, registers):
            totals = [cgutils.alloca_once(builder, _VECTOR) for _ in range(registers)]
            for register, total in enumerate(totals):
                builder.store(_load(builder, changes, builder.add(first, _WORD(register * _WIDTH))), total)
            with cgutils.for_range(builder, arguments[3], intp=_WORD) as loop:
                weight = splat(builder, builder.load(builder.gep(weights, [loop.index])), _VECTOR)
                row = builder.load(builder.gep(rows, [loop.index]))
                start = builder.gep(base, [builder.add(builder.mul(m, row), first)])
                for register, total in enumerate(totals):
                    part = _widen(builder, start, _WORD(register * _WIDTH), _WIDTH)
                    builder.store(fma(builder, weight, part, builder.load(total)), total)
            for register, total in enumerate(totals):
                _store(builder, changes, builder.add(first, _WORD(register * _WIDTH)), builder.load(total))

        _in_chunks(builder, m, _SUMS, add)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def weigh_targets(typing_context, values, shares, used, rate):
    """Turn the products values[j] = x·row[j], with the own row at j = 0, into the coefficients of all rows.

    Target j is u = (row[j] − shares[j]·row[0])/(1 − shares[j]); its coefficient is rate·(1 − σ(x·u))/(1 − shares[j]).
    That of the own row is −Σ shares[j]·(that of j): eight partial sums, then folded. Rows from used + 1 on get 0.
    """
    signature = types.void(values, shares, types.int64, types.float32)

    def generate(context, builder, signature, arguments):
        eight, words = ir.VectorType(_FLOAT, GROUP), ir.VectorType(_WORD, GROUP)
        values, shares = (get_data(context, builder, signature.args[k], arguments[k]) for k in range(2))
        zeros, ones = ir.Constant(eight, [0.0] * GROUP), ir.Constant(eight, [1.0] * GROUP)
        own = splat(builder, builder.load(values), eight)
        rate, last = splat(builder, arguments[3], eight), splat(builder, arguments[2], words)
        taken = cgutils.alloca_once(builder, eight)
        builder.store(zeros, taken)
        end = builder.add(arguments[2], _WORD(1))
        with cgutils.for_range_slice(builder, _WORD(0), end, _WORD(GROUP), _WORD) as (first, _):
            share = _load(builder, shares, first, GROUP)
            left = builder.fdiv(ones, builder.fsub(ones, share))
            product = fma(builder, builder.fneg(share), own, _load(builder, values, first, GROUP))
            error = builder.fsub(ones, sigmoid(builder, builder.fmul(product, left)))
            coefficient = builder.fmul(builder.fmul(rate, error), left)
            places = builder.add(splat(builder, first, words), ir.Constant(words, list(range(GROUP))))
            counts = builder.and_(
                builder.icmp_signed(">", places, ir.Constant(words, [0] * GROUP)),
                builder.icmp_signed("<=", places, last),
            )
            coefficient = builder.select(counts, coefficient, zeros)
            builder.store(fma(builder, share, coefficient, builder.load(taken)), taken)
            _store(builder, values, first, coefficient)
        total = builder.load(taken)
        for half in (4, 2, 1):
            order = ir.Constant(ir.VectorType(_INT, GROUP), [(j + half) % GROUP for j in range(GROUP)])
            total = builder.fadd(total, builder.shuffle_vector(total, total, order))
        builder.store(builder.fneg(builder.extract_element(total, _INT(0))), values)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def average_row(typing_context, table, offset, neighbours, weights, first, last, scale, target, row):
    """target[row] ← scale·Σ weights[a]·table[offset + neighbours[a]] over the arcs a = first … last − 1, in order.

    weights is None if every arc counts 1. In double precision they are positive, and clipped to 1 once scaled; in
    single precision they are affinities, and taken as they are.
    """
    signature = types.void(
        table, types.int64, neighbours, weights, types.int64, types.int64, types.float64, target, types.int64
    )

    def generate(context, builder, signature, arguments):
        base, m = _matrix(context, builder, signature.args[0], arguments[0])
        out, _ = _matrix(context, builder, signature.args[7], arguments[7])
        out = builder.gep(out, [builder.mul(m, arguments[8])])
        ids = get_data(context, builder, signature.args[2], arguments[2])
        weighted = not isinstance(signature.args[3], types.NoneType)
        data = get_data(context, builder, signature.args[3], arguments[3]) if weighted else None
        scale = splat(builder, builder.fptrunc(arguments[6], _FLOAT), _VECTOR)
        end = context.make_array(signature.args[2])(context, builder, arguments[2]).nitems

        def weigh(weight):
            if weight.type == _FLOAT:
                return builder.fmul(weight, builder.fptrunc(arguments[6], _FLOAT))
            # scaled in double precision: weights may be far outside the range of single precision
            weight = builder.fmul(weight, arguments[6])
            # clip to 1: only an arc to a dead end, whose row is zero, can have more, next to a lighter arc
            largest = ir.Constant(ir.DoubleType(), 1.0)
            weight = builder.select(builder.fcmp_ordered("<", weight, largest), weight, largest)
            return builder.fptrunc(weight, _FLOAT)

        def start_of(arc):
            item = builder.load(builder.gep(ids, [arc]))
            item = builder.sext(item, _WORD) if item.type != _WORD else item
            return builder.gep(base, [builder.mul(m, builder.add(arguments[1], item))])

        def average(column, registers):
            totals = [cgutils.alloca_once(builder, _VECTOR) for _ in range(registers)]
            for total in totals:
                builder.store(_ZEROS, total)
            with cgutils.for_range_slice(builder, arguments[4], arguments[5], _WORD(1), _WORD) as (arc, _):
                # also rows of the following nodes, as many nodes have few neighbours
                later = builder.add(arc, _WORD(_AHEAD))
                later = builder.select(builder.icmp_signed("<", later, end), later, arc)
                place = builder.gep(start_of(later), [column])
                size = 2 if place.type.pointee == ir.IntType(16) else 4
                for byte in range(0, registers * _WIDTH * size, 64):
                    prefetch_line(builder, builder.gep(place, [_WORD(byte // size)]))
                start = builder.gep(start_of(arc), [column])
                if weighted:
                    weight = splat(builder, weigh(builder.load(builder.gep(data, [arc]))), _VECTOR)
                for register, total in enumerate(totals):
                    part, sum_ = _widen(builder, start, _WORD(register * _WIDTH), _WIDTH), builder.load(total)
                    # additions use execution units of their own, besides those that convert and multiply
                    sum_ = fma(builder, weight, part, sum_) if weighted else builder.fadd(part, sum_)
                    builder.store(sum_, total)
            for register, total in enumerate(totals):
                place = builder.add(column, _WORD(register * _WIDTH))
                mean = builder.load(total) if weighted else builder.fmul(scale, builder.load(total))
                _store(builder, out, place, _narrow(builder, mean, out))

        _in_chunks(builder, m, _SUMS, average)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def prefetch_reads(typing_context, table, row):
    """Prefetch the cache lines of table[row]."""

    def generate(context, builder, signature, arguments):
        base, m = _matrix(context, builder, signature.args[0], arguments[0])
        start = builder.gep(base, [builder.mul(m, arguments[1])])
        step = 32 if start.type.pointee == ir.IntType(16) else 16
        with cgutils.for_range_slice(builder, _WORD(0), m, _WORD(step), _WORD) as (k, _):
            # the negatives need the nearest cache until these rows are read
            prefetch_line(builder, builder.gep(start, [k]), locality=2)
        return context.get_dummy_value()

    return types.void(table, types.int64), generate


@intrinsic
def narrow_row(typing_context, source, row, target, place):
    """target[place] ← source[row], rounded to half precision if target has it."""

    def generate(context, builder, signature, arguments):
        base, m = _matrix(context, builder, signature.args[0], arguments[0])
        start = builder.gep(base, [builder.mul(m, arguments[1])])
        out, _ = _matrix(context, builder, signature.args[2], arguments[2])
        out = builder.gep(out, [builder.mul(m, arguments[3])])
        with cgutils.for_range_slice(builder, _WORD(0), m, _WORD(_WIDTH), _WORD) as (k, _):
            _store(builder, out, k, _narrow(builder, _load(builder, start, k), out))
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), generate


def _in_chunks(builder, length, most, work):
    """Generate work(first, registers) for all of `length`, a multiple of 16, in chunks of at most `most` registers."""
    step = _WORD(most * _WIDTH)
    whole = builder.mul(builder.sdiv(length, step), step)
    with cgutils.for_range_slice(builder, _WORD(0), whole, step, _WORD) as (first, _):
        work(first, most)
    remainder = builder.sdiv(builder.sub(length, whole), _WORD(_WIDTH))
    for registers in range(1, most):
        with builder.if_then(builder.icmp_signed("==", remainder, _WORD(registers))):
            work(whole, registers)


def _starts(context, builder, signature, arguments, table):
    """Return the addresses of the rows rows[first] … rows[first + GROUP − 1] of the table."""
    base, m = _matrix(context, builder, signature.args[table], arguments[table])
    rows = builder.gep(
        get_data(context, builder, signature.args[table + 1], arguments[table + 1]), [arguments[table + 2]]
    )
    return [builder.gep(base, [builder.mul(m, builder.load(builder.gep(rows, [_WORD(j)])))]) for j in range(GROUP)]


def _load(builder, start, k, width=_WIDTH):
    """Load a vector of floats."""
    vector = ir.VectorType(_FLOAT, width)
    return builder.load(builder.bitcast(builder.gep(start, [k]), vector.as_pointer()), align=4)


def _widen(builder, start, k, width):
    """Load the values at start + k as single precision, from either precision."""
    if start.type.pointee == _FLOAT:
        return _load(builder, start, k, width)
    halves = ir.VectorType(ir.HalfType(), width)
    loaded = builder.load(builder.bitcast(builder.gep(start, [k]), halves.as_pointer()), align=2)
    return builder.fpext(loaded, ir.VectorType(_FLOAT, width))


def _narrow(builder, vector, start):
    """Convert a vector to the precision that is stored at start."""
    if start.type.pointee == _FLOAT:
        return vector
    return builder.fptrunc(vector, ir.VectorType(ir.HalfType(), vector.type.count))


def _store(builder, start, k, vector):
    """Store a vector of floats or halves."""
    align = 4 if vector.type.element == _FLOAT else 2
    builder.store(vector, builder.bitcast(builder.gep(start, [k]), vector.type.as_pointer()), align=align)


def _matrix(context, builder, kind, value):
    """Return the address of a matrix and its number of columns."""
    array = context.make_array(kind)(context, builder, value)
    return array.data, cgutils.unpack_tuple(builder, array.shape)[1]


def _block(context, builder, kind, value, number):
    """Return the address of one block of an array of blocks, and its rows and columns."""
    array = context.make_array(kind)(context, builder, value)
    _, rows, columns = cgutils.unpack_tuple(builder, array.shape)
    return builder.gep(array.data, [builder.mul(number, builder.mul(rows, columns))]), rows, columns
