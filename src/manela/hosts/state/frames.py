"""Frames: which start the vectors of a host come from, and when it must start anew to be comparable with its peers.

Only angles between vectors mean something, so each start may turn them at will. Hosts that start together share a
frame. Where hosts of different frames meet, they start anew together, in the next generation, and all their peers with
them; a host that meets others past their start takes on theirs. A host starts anew when it is done with what it learns,
and its daemon leaves longer and longer pauses between such starts, so that a peer that lies does not keep it busy.
"""

from __future__ import annotations

from manela.hosts.state.messages import Frame
from manela.hosts.state.peers import Peer
from manela.kernels.randomness import derive

_LONGEST_LEAP = 2**40
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

    def hear(self, generation: int) -> None:
        """Note that peers are in this generation, or should be."""
        if self.wanted < generation and self.now.generation < generation <= self.now.generation + _LONGEST_LEAP:
            self.wanted = generation

    def note_in_start(self, peer: Peer, theirs: Frame, is_past: bool, agrees: bool = True) -> bool:
        """Note the frame of a peer during a start; return whether it is in the same start.

        `is_past` is whether the peer has ended its start, and `agrees` whether the start is so young that hosts still
        agree on an id.
        """
        peer.frame = theirs
        if theirs.generation < self.now.generation:
            return False
        if is_past:
            self.past[peer.name] = theirs
            return False
        if theirs.generation > self.now.generation:
            self.hear(theirs.generation)
            return False
        if agrees:
            self.now = min(self.now, theirs)
        return True

    def note_in_rounds(self, peer: Peer, theirs: Frame) -> bool:
        """Note the frame of a peer after the start; return whether it is this host's own, so that vectors compare."""
        peer.frame = theirs
        if theirs == self.now:
            return True
        if theirs.generation == self.now.generation:
            self.hear(theirs.generation + 1)
        else:
            self.hear(theirs.generation)
        return False
