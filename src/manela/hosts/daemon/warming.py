"""Warm-up: loads or compiles a host's kernels before a peer waits for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from manela.hosts.state.driver import drive
from manela.hosts.state.host import Host
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.terms import Terms
from manela.hosts.walks.host import make_host
from manela.hosts.wire.calls import decode_reply, encode_reply


def warm_up(terms: Terms) -> None:
    """Run two small hosts with these terms for two rounds."""
    settings = replace(terms.settings, pairs=100, rounds=2, updates=None, max_seconds=None)
    small = replace(terms, lock_step=False, settings=settings)
    edges = {"a": [Edge("x", ("y", "a")), Edge("x", ("z", "b"))], "b": [Edge("z", ("x", "a")), Edge("z", ("u", "b"))]}
    drive({name: make_host(small, Neighbourhood.build(name, edges[name])) for name in edges}, carry=_carry)


def _carry(asker: Host, answerer: Host, request: Any, reply: Any) -> Any:
    """Return a reply as it comes out of the bytes that are sent."""
    return decode_reply(asker, answerer.name, request, encode_reply(answerer, asker.name, reply))
