"""Kernels for processors, compiled by Numba: rounds, sums over neighbours, and moments.

They compute what `kernels.reference` defines, bit for bit or within its tolerances. They start no threads: callers
share the rows among threads.
"""
