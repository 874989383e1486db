"""The GPU engine: rounds by messages on an NVIDIA card.

Kernels are in `kernels.gpu`. Torch and Triton are imported when a run begins, never before.
"""
