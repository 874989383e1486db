"""Kernels for GPUs, compiled by Triton: rounds by messages, sums over neighbours, and draws.

They compute what `kernels.reference` defines. They allocate nothing and know no `torch` beyond the tensors they are
given.
"""
