"""The compiled kernels: functions from arrays to arrays."""
