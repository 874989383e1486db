"""Kernels for what surrounds learning, compiled by Numba: text and numbers of files, adjacency in CSR form, nearest rows.

Nothing here draws random numbers or moves vectors.
"""
