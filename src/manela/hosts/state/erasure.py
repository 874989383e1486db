"""Erasure: the message by which a host asks a peer to forget nodes, and the receipt that the peer answers with."""

from __future__ import annotations

from dataclasses import dataclass

MOST_ERASED = 1_000
"""Nodes that one message may name; more would let a peer hold up others for longer."""


@dataclass(frozen=True)
class Erasure:
    """The names of nodes of the asker that the peer shall forget."""

    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Receipt:
    """What a peer answers once it has forgotten nodes: a number of its choice, and the time in seconds since 1970."""

    id: str
    time: int
