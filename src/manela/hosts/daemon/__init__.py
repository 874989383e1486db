"""The process that runs a host: it follows the host's script, answers peers, saves, and reports.

Clocks, threads and asyncio are here. Decisions about vectors and trust are in `state`.
"""
