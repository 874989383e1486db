"""How tables lie in memory: rows are padded with zeros to whole vector registers."""

LANES = 16
"""Floats that a kernel takes at a time; partial sums of a dot product."""


def pad(dimensions: int) -> int:
    """The number of columns of a table for vectors of this length."""
    return -(-dimensions // LANES) * LANES
