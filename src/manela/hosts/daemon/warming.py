"""Warm-up: loads or compiles a host's kernels before a peer waits for them."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import cast

from manela.hosts.state.host import Compute, Exchange, NotReadyError
from manela.hosts.state.messages import Introduction
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.terms import Terms
from manela.hosts.walks.answering import Pending, resume
from manela.hosts.walks.host import WalkHost
from manela.hosts.wire.exchanges import calls_of, make_host


def warm_up(terms: Terms) -> None:
    """Run two small hosts with these terms for two rounds."""
    settings = replace(terms.settings, pairs=100, rounds=2, updates=None, max_seconds=None)
    small = replace(terms, lock_step=False, settings=settings)
    hosts = {
        "a": make_host(small, Neighbourhood.build("a", [Edge("x", ("y", "a")), Edge("x", ("z", "b"))])),
        "b": make_host(small, Neighbourhood.build("b", [Edge("z", ("x", "a")), Edge("z", ("u", "b"))])),
    }
    for name, other, mine, theirs in (("a", "b", "x", "z"), ("b", "a", "z", "x")):
        hosts[name].greet(other, hosts[other].hello())
        introduction = Introduction([f"{mine}@{name}"], [theirs])
        hosts[name].record_acceptance(other, hosts[other].admit_edges(name, introduction)[0])
    scripts = {name: host.script() for name, host in hosts.items()}
    while scripts:
        for name in list(scripts):
            instruction = next(scripts[name], None)
            if instruction is None:
                del scripts[name]
            elif isinstance(instruction, Compute):
                instruction.work()
            elif isinstance(instruction, Exchange):
                for other, request in instruction.ask().items():
                    with contextlib.suppress(NotReadyError):
                        reply = hosts[other].answer(name, request)
                        if isinstance(reply, Pending):
                            reply = resume(cast(WalkHost, hosts[other]), reply, {})[0]
                        content = calls_of(hosts[other]).encode_reply(hosts[other], name, reply)
                        reply = calls_of(hosts[name]).decode_reply(hosts[name], other, request, content)
                        hosts[name].receive(other, request, reply)
