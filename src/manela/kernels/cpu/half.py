"""Conversion of float32 to float16 and back, which is how hosts send vectors."""

# mypy: ignore-errors

from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_LANES = 16
_FLOATS = ir.VectorType(ir.FloatType(), _LANES)
_HALVES = ir.VectorType(ir.HalfType(), _LANES)
_LAYOUTS = {types.float32: (_FLOATS, 4), types.uint16: (_HALVES, 2)}
"""The vector that holds numbers of a type, and its alignment in bytes."""


def can_convert() -> bool:
    """Return whether this processor has instructions for half precision."""
    features = llvmlite.binding.get_host_cpu_features()
    return bool(features.get("f16c")) or llvmlite.binding.get_process_triple().startswith(("aarch64", "arm64"))


_CAN = can_convert()


def to_half(values: Any) -> Any:
    """Round float32 to float16: the same bits as NumPy, several times as fast if the processor supports it."""
    flat = np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
    if not _CAN:
        with np.errstate(over="ignore"):
            return flat.astype(np.float16).reshape(np.shape(values))
    converted = np.empty(len(flat), np.uint16)
    _convert(flat, converted)
    whole = len(flat) // _LANES * _LANES
    with np.errstate(over="ignore"):
        converted[whole:] = flat[whole:].astype(np.float16).view(np.uint16)
    return converted.view(np.float16).reshape(np.shape(values))


def from_half(values: Any) -> Any:
    """Convert float16 to float32, exactly."""
    flat = np.ascontiguousarray(values, dtype=np.float16).reshape(-1)
    if not _CAN:
        return flat.astype(np.float32).reshape(np.shape(values))
    converted, bits = np.empty(len(flat), np.float32), flat.view(np.uint16)
    bits.flags.writeable = False  # like the bytes of a message, so that one compiled kernel serves both
    _convert(bits, converted)
    whole = len(flat) // _LANES * _LANES
    converted[whole:] = flat[whole:].astype(np.float32)
    return converted.reshape(np.shape(values))


@njit(cache=True, nogil=True)
def _convert(values, converted):
    """converted ← values, in the precision of either; numbers after the last whole vector are left out."""
    for first in range(0, len(values) - _LANES + 1, _LANES):
        _convert_vector(values, converted, first)


@intrinsic
def _convert_vector(typing_context, values, converted, first):
    """converted[first + i] ← values[first + i], i = 0 … _LANES − 1, from float32 to the bits of float16 or back."""
    (source_vector, source_align), (target_vector, target_align) = _LAYOUTS[values.dtype], _LAYOUTS[converted.dtype]

    def generate(context, builder, signature, arguments):
        source = _at(context, builder, signature.args[0], arguments[0], arguments[2], source_vector)
        target = _at(context, builder, signature.args[1], arguments[1], arguments[2], target_vector)
        convert = builder.fptrunc if target_vector == _HALVES else builder.fpext
        builder.store(convert(builder.load(source, align=source_align), target_vector), target, align=target_align)
        return context.get_dummy_value()

    return types.void(values, converted, first), generate


def _at(context, builder, kind, array, place, vector):
    """Return the address of a vector that begins at a place of an array."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())
