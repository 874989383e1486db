"""Frames: which start the vectors of a host come from, and when it must start anew to be comparable with its peers.

Only angles between vectors mean something, so each start may turn them at will. Hosts that start together share a
frame. Where hosts of different frames meet, they start anew together, in the next generation, and all their peers with
them; a host that meets others past their start takes on theirs.
"""

from __future__ import annotations

from manela.hosts.state.messages import Frame
from manela.hosts.state.peers import Peer
from manela.kernels.randomness import derive

_MOST_STARTS, _ROUNDS_OF_A_START = 4, 250
"""New starts that a peer may cause at once, and the rounds after which it may cause one more.

Larger numbers of starts, and fewer rounds, let a liar keep others busy.
"""
_LONGEST_LEAP = 1000
"""Generations that a peer may be ahead; more let a liar use them up."""


class Frames:
    """The frame of a host; `key` is the seed of the ids that it proposes."""

    def __init__(self, key: int) -> None:
        self._key = key
        self.now = Frame()
        self.wanted = 0  # the generation that must be started, if it is larger than that of the frame
        self.past: dict[str, Frame] = {}  # during a start: the frames of peers that have ended theirs

    @property
    def is_outdated(self) -> bool:
        """Whether the host must start anew."""
        return self.wanted > self.now.generation

    def begin(self) -> None:
        """Begin a start, and propose an id for its frame."""
        generation = max(1, self.wanted, self.now.generation)
        self.now = Frame(generation, 1 + (int(derive(self._key, generation)) >> 2))
        self.past = {}

    def hear(self, peer: Peer, generation: int, round: int) -> None:
        """Start anew for a peer that is in this generation, unless it has caused too many starts."""
        if self.wanted >= generation or not self.now.generation < generation <= self.now.generation + _LONGEST_LEAP:
            return
        if peer.starts < _MOST_STARTS + round // _ROUNDS_OF_A_START:
            peer.starts += 1
            self.wanted = generation

    def note_in_start(self, peer: Peer, theirs: Frame, is_past: bool, round: int) -> bool:
        """Note the frame of a peer during a start; return whether it is in the same start.

        `is_past` is whether the peer has ended its start.
        """
        peer.frame = theirs
        if theirs.generation < self.now.generation:
            return False
        if is_past:
            self.past[peer.name] = theirs
            return False
        if theirs.generation > self.now.generation:
            self.hear(peer, theirs.generation, round)
            return False
        self.now = min(self.now, theirs)
        return True

    def note_in_rounds(self, peer: Peer, theirs: Frame, round: int) -> bool:
        """Note the frame of a peer after the start; return whether it is this host's own, so that vectors compare."""
        peer.frame = theirs
        if theirs == self.now:
            return True
        if theirs.generation == self.now.generation:
            self.hear(peer, theirs.generation + 1, round)
        else:
            self.hear(peer, theirs.generation, round)
        return False
