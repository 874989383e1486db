"""Arithmetic: functions from arrays to arrays, and the random numbers that they draw.

`reference` defines in NumPy what every engine computes; read it first. `cpu` and `gpu` compute the same, compiled by
Numba and Triton; `tables` compiles the work on texts and rows. Nothing here knows graphs, parameters or files:
allocation, dtypes and checks happened before.
"""
