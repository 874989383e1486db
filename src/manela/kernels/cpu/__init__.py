"""Kernels for processors, compiled by Numba: rounds by messages and by walks, skip-gram, and sums over neighbours.

They compute what `kernels.reference` defines, bit for bit or within its tolerances. They start no threads: callers
share the rows among threads.
"""
