"""Hosts: servers that each hold a part of a network, and learn its vectors together.

`state` is what happens, without socket, clock, thread or file; `walks` is the paper's exchange in the same manner.
`wire` is what messages look like as bytes, `transport` moves them, `folder` keeps a host's files, and `daemon` runs
it all. `doctor` checks a host, `exposure` measures what one sees, `federation` runs many on one machine. What an
operator types is in `cli`.
"""
