"""Vector instructions for the Numba kernels, written as LLVM IR.

Numba vectorises a loop over a gathered row only if LLVM can prove that nothing aliases, and then in an order of
additions that depends on the processor. Here the order is fixed: a dot product is `LANES` partial sums that are folded
in halves and then pairwise, and every multiply-add is fused. So the bits are the same on every processor, whether rows
are processed four or eight at a time.
"""

# mypy: ignore-errors

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from manela.kernels.layout import LANES

BLOCK = 8
AHEAD = 16

_FLOAT = ir.FloatType()
_WORD = ir.IntType(64)
_INT = ir.IntType(32)
_WIDE = ir.VectorType(_FLOAT, LANES)
_EIGHT = ir.VectorType(_FLOAT, BLOCK)


def has_wide_registers():
    """Whether this processor has 32 registers of 16 floats (AVX-512), so that eight rows fit at once."""
    return bool(llvmlite.binding.get_host_cpu_features().get("avx512f"))


_ROWS_AT_ONCE = BLOCK if has_wide_registers() else 4


@intrinsic
def scale_to(typing_context, draw, size):
    """Return the high half of the 128-bit product: a draw of 64 bits scaled to 0 … size - 1."""

    def generate(context, builder, signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _WORD)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def prefetch_row(typing_context, table, row):
    """Prefetch the cache lines of table[row], whose length is a multiple of `LANES`."""

    def generate(context, builder, signature, arguments):
        base, stride = _table(context, builder, signature.args[0], arguments[0])
        start = _row(builder, base, stride, arguments[1])
        with cgutils.for_range_slice(builder, _WORD(0), stride, _WORD(LANES), _WORD) as (i, _):
            prefetch_line(builder, builder.gep(start, [i]))
        return context.get_dummy_value()

    return types.void(table, types.int64), generate


@intrinsic
def prefetch_item(typing_context, array, place):
    """Prefetch the cache line of array[place]."""

    def generate(context, builder, signature, arguments):
        data = get_data(context, builder, signature.args[0], arguments[0])
        prefetch_line(builder, builder.gep(data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def absorb_block(typing_context, x, change, table, rows, labels, learning_rate, first, used):
    """change += learning_rate · Σ (labels_j − σ(x·u_j))·u_j over the rows u_j = table[rows[j]], j = first … first + 7.

    Rows from `used` on are ignored. Meanwhile the rows `AHEAD` places further on are prefetched, so `rows` must hold
    valid rows up to first + AHEAD + 7.
    """
    signature = types.void(x, change, table, rows, labels, types.float32, types.int64, types.int64)
    return signature, _generate_absorb(ahead=AHEAD)


@intrinsic
def exchange_block(typing_context, x, change, table, rows, labels, learning_rate, first, used):
    """Do `absorb_block`, and move each row too, in order: u_j += learning_rate · (labels_j − σ(x·u_j))·x."""
    signature = types.void(x, change, table, rows, labels, types.float32, types.int64, types.int64)
    return signature, _generate_absorb(ahead=0, both=True)


def _generate_absorb(ahead, both=False):
    """Return what generates code that adds a block of rows to the change of x, prefetching rows `ahead`."""

    def generate(context, builder, signature, arguments):
        x = get_data(context, builder, signature.args[0], arguments[0])
        change = get_data(context, builder, signature.args[1], arguments[1])
        base, stride = _table(context, builder, signature.args[2], arguments[2])
        rows, labels = (
            builder.gep(get_data(context, builder, kind, value), [arguments[6]])
            for kind, value in zip(signature.args[3:5], arguments[3:5], strict=True)
        )
        starts = _starts(builder, base, stride, rows, range(BLOCK))
        later = _starts(builder, base, stride, rows, range(ahead, ahead + BLOCK)) if ahead else []
        products = []
        for first in range(0, BLOCK, _ROWS_AT_ONCE):
            products += _dot(builder, x, starts[first : first + _ROWS_AT_ONCE], stride)
        error = builder.fsub(_load_eight(builder, labels), sigmoid(builder, fold(builder, products)))
        rates = _rates(builder, arguments[5], builder.sub(arguments[7], arguments[6]))
        _add_rows(builder, change, starts, builder.fmul(rates, error), stride, later, x if both else None)
        return context.get_dummy_value()

    return generate


def _dot(builder, x, starts, stride):
    """Return the partial sums, `LANES` each, of x·u for the rows u that begin at starts."""
    zeros = ir.Constant(_WIDE, [0.0] * LANES)
    sums = [cgutils.alloca_once(builder, _WIDE) for _ in starts]
    for total in sums:
        builder.store(zeros, total)
    with cgutils.for_range_slice(builder, _WORD(0), stride, _WORD(LANES), _WORD) as (i, _):
        part = _load_wide(builder, x, i)
        for total, start in zip(sums, starts, strict=True):
            builder.store(fma(builder, part, _load_wide(builder, start, i), builder.load(total)), total)
    return [builder.load(total) for total in sums]


def _rates(builder, learning_rate, left):
    """Return a vector of eight with the learning rate in the first `left` places, and zero in the others."""
    words = ir.VectorType(_WORD, BLOCK)
    places = ir.Constant(words, list(range(BLOCK)))
    counted = builder.icmp_signed("<", places, splat(builder, left, words))
    return builder.select(counted, splat(builder, learning_rate, _EIGHT), ir.Constant(_EIGHT, [0.0] * BLOCK))


def fold(builder, sums):
    """Fold partial sums into one vector of `BLOCK` totals: halves first, then neighbours, then pairs, then fours."""
    level = [
        builder.fadd(_shuffle(builder, s, s, range(BLOCK)), _shuffle(builder, s, s, range(BLOCK, 2 * BLOCK)))
        for s in sums
    ]
    for left, right in (
        ((0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)),
        ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
        ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
    ):
        level = [
            builder.fadd(_shuffle(builder, a, b, left), _shuffle(builder, a, b, right))
            for a, b in zip(level[::2], level[1::2], strict=True)
        ]
    return level[0]


def sigmoid(builder, z):
    """Return 1/(1 + e^−z) for a vector z clipped to ±30; NaN stays NaN."""
    count = z.type.count

    def constant(value):
        return ir.Constant(z.type, [float(np.float32(value))] * count)

    for bound, relation in ((30.0, ">"), (-30.0, "<")):
        z = builder.select(builder.fcmp_ordered(relation, z, constant(bound)), constant(bound), z)
    # e^-z = 2^k · e^r; adding 1.5 · 2^23 rounds to an integer and leaves k in the low bits.
    shifter = constant(1.5 * 2.0**23)
    shifted = fma(builder, z, constant(-1 / np.log(2)), shifter)
    whole = builder.fsub(shifted, shifter)
    remainder = builder.fsub(builder.fmul(whole, constant(-np.log(2))), z)
    series = constant(1 / 5040)
    for term in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
        series = fma(builder, series, remainder, constant(term))
    integers = ir.VectorType(_INT, count)
    exponent = builder.add(builder.bitcast(shifted, integers), ir.Constant(integers, [127] * count))
    power = builder.bitcast(builder.shl(exponent, ir.Constant(integers, [23] * count)), z.type)
    return builder.fdiv(constant(1.0), fma(builder, series, power, constant(1.0)))


def _add_rows(builder, change, starts, coefficients, stride, later, x=None):
    """change += Σ c_j·u_j in the order of rows, and with x also u_j += c_j·x; prefetches the rows at later."""
    wide = [_shuffle(builder, coefficients, coefficients, [j] * LANES) for j in range(len(starts))]
    with cgutils.for_range_slice(builder, _WORD(0), stride, _WORD(LANES), _WORD) as (i, _):
        part = _load_wide(builder, change, i)
        other = _load_wide(builder, x, i) if x is not None else None
        for start in later:
            prefetch_line(builder, builder.gep(start, [i]))
        for coefficient, start in zip(wide, starts, strict=True):
            row = _load_wide(builder, start, i)
            part = fma(builder, coefficient, row, part)
            if other is not None:
                _store_wide(builder, start, i, fma(builder, coefficient, other, row))
        _store_wide(builder, change, i, part)


def fma(builder, a, b, c):
    """Return a·b + c with one rounding; llvmlite's own method supports only scalars."""
    name = f"llvm.fma.v{a.type.count}f32"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(a.type, [a.type] * 3), name)
    return builder.call(function, [a, b, c])


def _load_wide(builder, start, i):
    """Load a full register of floats."""
    return builder.load(builder.bitcast(builder.gep(start, [i]), _WIDE.as_pointer()), align=4)


def _store_wide(builder, start, i, vector):
    """Store a full register of floats."""
    builder.store(vector, builder.bitcast(builder.gep(start, [i]), _WIDE.as_pointer()), align=4)


def _load_eight(builder, start):
    """Load eight floats."""
    return builder.load(builder.bitcast(start, _EIGHT.as_pointer()), align=4)


def splat(builder, value, kind):
    """Return a vector of this type with the value in every place."""
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, _INT(0))
    return _shuffle(builder, first, first, [0] * kind.count)


def prefetch_line(builder, place, locality=3):
    """Prefetch the cache line of an address; locality 3 is the nearest cache, 2 the next one."""
    kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, _INT, _INT, _INT])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [builder.bitcast(place, cgutils.voidptr_t), _INT(0), _INT(locality), _INT(1)])


def _shuffle(builder, a, b, order):
    """Return elements of two vectors in a given order."""
    order = list(order)
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INT, len(order)), order))


def get_data(context, builder, kind, value):
    """Return the address of the first item of an array."""
    return context.make_array(kind)(context, builder, value).data


def _table(context, builder, kind, value):
    """Return the address of a table and the length of its rows."""
    array = context.make_array(kind)(context, builder, value)
    return array.data, cgutils.unpack_tuple(builder, array.shape)[1]


def _starts(builder, base, stride, rows, places):
    """Return the addresses of the rows that are listed at the given places."""
    return [_row(builder, base, stride, builder.load(builder.gep(rows, [_WORD(j)]))) for j in places]


def _row(builder, base, stride, row):
    """Return the address of a row."""
    return builder.gep(base, [builder.mul(row, stride)])
