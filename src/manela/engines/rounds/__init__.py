"""What a round computes, shared by all engines and by hosts: neighbours, sweeps, messages, spread, smoothing.

These modules work on a `State` and on `Neighbours`, with threads that they are given. They have no loop over rounds,
which is in `engines.training`, and they ask nobody for anything.
"""
