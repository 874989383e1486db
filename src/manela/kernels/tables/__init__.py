"""Kernels for what surrounds learning, compiled by Numba: edges in text files, compressed rows, and nearest rows.

Nothing here draws random numbers or moves vectors.
"""
