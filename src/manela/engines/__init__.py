"""Engines run the rounds of a schedule: on processors, on a GPU, or on a Ray cluster.

`training` is the one loop over rounds, for every engine, with progress, checkpoints and Ctrl-C. Engines are given a
graph and settings, and know no estimators, files of networks or hosts.
"""
