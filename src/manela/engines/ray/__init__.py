"""The Ray engine: rounds by messages on the machines of a cluster.

A worker knows nothing of Ray; the engine and its connection do. Ray is imported when a run begins, never before.
"""
