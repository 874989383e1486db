"""Answers to peers' requests for walks, some of which other hosts must be asked to finish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from manela.errors import MalformedError, PeerError, RefusedError
from manela.hosts.state.instructions import Relay
from manela.hosts.state.messages import NOTHING, OWN, Integers, VectorRows, WalkReply, WalkRequest
from manela.hosts.state.neighbourhood import check_steps
from manela.hosts.state.peers import Link
from manela.kernels.cpu import walks as kernels
from manela.kernels.layout import Table

if TYPE_CHECKING:
    from manela.hosts.walks.host import WalkHost


@dataclass(frozen=True, eq=False, kw_only=True)
class Pending(Relay):
    """A reply that lacks the ends of walks that other hosts must be asked for."""

    request: WalkRequest  # the request to answer
    index: Integers  # the part of the reply's index that is known: rows of this host, or negative entries
    changed: Integers  # the numbers of the asker's neighbours that have changed; `neighbours` holds their vectors
    neighbours: VectorRows
    tables: list[Table]  # the tables that vectors are read from
    # the link to each host that must be asked, and the positions of its walks
    links: dict[str, Link]
    walkers: dict[str, Integers]


def answer(host: WalkHost, peer: str, request: WalkRequest) -> WalkReply | Pending:
    """Return the reply to a peer's request, or a Pending if other peers must be asked first."""
    admitted, drawing = host.sessions.find(peer, request.session), host.drawing
    starts = admitted.find_rows(request.edges)
    check_steps(request.steps, host.terms.hops)
    drawing.check_request(request)
    tables = drawing.find_tables(request)
    changed = np.zeros(0, np.int64)
    if request.neighbours:
        changed = np.flatnonzero(host.changed[admitted.neighbours] > request.since)
    neighbours = host.read_rows(tables, admitted.neighbours[changed])
    random = drawing.draw_rows(peer, request)
    firsts, keys = drawing.find_keys(request)
    active = host.find_arcs()
    ends, last_arcs, steps_left = (np.empty(len(starts), np.int64) for _ in range(3))
    kernels.wander(starts, firsts, request.steps, keys, active.arcs, ends, last_arcs, steps_left)
    arcs = active.names(last_arcs)
    index = np.where(host.is_present(ends), ends, NOTHING)
    # a walk may return to the asker's own node in one step; the asker has this vector already
    can_return = (request.steps == 1) & (steps_left == 0) & (arcs >= 0)
    edge = np.where(can_return, admitted.edge_of_arc[arcs] if len(admitted.edge_of_arc) else -1, -1)
    index = np.where(edge >= 0, OWN - edge, index)
    index[steps_left > 0] = NOTHING
    away = np.flatnonzero(steps_left > 0)
    steps_done = firsts[away] + request.steps[away] - steps_left[away]
    index = hide_private(host, np.concatenate((index, random)))
    requests, chosen = host.ask_on(arcs[away], steps_left[away], request.round, steps_done, keys[away])
    pending = Pending(
        request=request, index=index, changed=changed, neighbours=neighbours, tables=tables,
        requests=requests, links={other: link for other, link in host.peers.links.items() if other in requests},
        walkers={other: away[positions] for other, positions in chosen.items()}
    )  # fmt: skip
    return pending if requests else resume(host, pending, {})[0]


def resume(
    host: WalkHost, pending: Pending, replies: Mapping[str, WalkReply | None]
) -> tuple[WalkReply, dict[str, RefusedError]]:
    """Return the reply to a pending request, and the refusals by peer; in `replies`, None is a missing reply."""
    index, remote_vectors, base = pending.index.copy(), [], host.known
    refused: dict[str, RefusedError] = {}
    for other, positions in pending.walkers.items():
        reply = replies.get(other)
        if reply is None:
            if host.terms.lock_step:
                raise PeerError(f"{other} did not answer in round {pending.request.round}")
            continue
        try:
            index[positions] = locate(host, pending.links[other], reply.index, base)
        except RefusedError as refusal:
            refused[other] = refusal
            continue
        remote_vectors.append(reply.vectors)
        base += len(reply.vectors)
        if host.on_disclosure:
            host.trace(other, pending.links[other], pending.requests[other], reply)
    own = (index >= 0) & (index < host.known)
    rows, ranks = np.unique(index[own], return_inverse=True)
    vectors = np.concatenate([host.read_rows(pending.tables, rows), *remote_vectors])
    index[own], late = ranks, index >= host.known
    index[late] += len(rows) - host.known
    order = host.drawing.shuffle(len(vectors))
    shown = index >= 0
    index[shown] = order[index[shown]]
    shuffled = np.empty_like(vectors)
    shuffled[order] = vectors
    version = pending.request.round if host.terms.lock_step else host.version
    return WalkReply(version, pending.changed, pending.neighbours, index, shuffled), refused


def hide_private(host: WalkHost, rows: Integers) -> Integers:
    """Return the rows of walks and random nodes, without those of private nodes, which no peer sees."""
    if not host.neighbourhood.private:
        return rows
    is_own = (rows >= 0) & (rows < host.own)
    is_hidden = is_own & host.neighbourhood.is_private[np.where(is_own, rows, 0)]
    return np.where(is_hidden, NOTHING, rows)


def locate(host: WalkHost, link: Link, index: Integers, base: int) -> Integers:
    """Translate a peer's index to rows of this host, where the peer's vectors will start at row `base`."""
    edges = OWN - index
    if len(index) and edges.max() >= len(link.arcs):
        raise MalformedError(f"edges must be numbered 0 to {len(link.arcs) - 1}")
    own = index <= OWN
    rows = np.where(index >= 0, index + base, NOTHING)
    rows[own] = host.neighbourhood.sources[link.arcs[edges[own]]]
    return rows
