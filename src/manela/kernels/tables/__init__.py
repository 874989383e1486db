"""Kernels for what surrounds learning, compiled by Numba: texts and numbers of files, CSR adjacency, nearest rows.

Nothing here draws random numbers or moves vectors.
"""
