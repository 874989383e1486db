"""Frames: which start the vectors of a host come from, and when it must start again to be comparable with its peers.

Only angles between vectors mean something, so each start may turn them at will. Hosts that start together share a
frame. Where hosts of different frames meet, they start again together, in the next generation, and all their peers with
them; a host that meets others past their start takes on theirs. A host starts again when it is done with what it
learns, and its daemon leaves longer and longer pauses between such starts, so that a peer that lies does not keep it
busy.

A start that follows an older one continues its line: hosts begin with their old vectors, so that the new ones point
where the old ones did. Where several lines meet, that of the most nodes continues, as few vectors as possible turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from manela.hosts.state.messages import BY_SWEEPS, Frame
from manela.kernels.randomness import derive

if TYPE_CHECKING:
    from manela.hosts.state.peers import Link, Peer

_LONGEST_LEAP = 2**40
"""Generations that a peer may be ahead; more let a liar use them up."""
_LINE_BITS, _START_BITS = 32, 24
"""Bits of an id for the line and for the start; fewer give two lines or starts the same number more often."""
_NEW = 63
"""Rank of a new line. A line of 2^k nodes has the rank 62 - k, and the least id is that of all hosts."""


class Frames:
    """The frame of a host; `key` is the seed of the ids that it proposes."""

    def __init__(self, key: int) -> None:
        self._key = key
        self.now = Frame()
        self.wanted = 0  # the generation that must be started, if it is larger than that of the frame
        self.past: dict[str, Frame] = {}  # during a start: the frames of peers that have ended theirs

    @property
    def is_outdated(self) -> bool:
        """Whether the host must start again."""
        return self.wanted > self.now.generation

    @property
    def line(self) -> int:
        """The line of starts that the frame belongs to, of which each continues the one before."""
        return find_line(self.now)

    @property
    def is_continued(self) -> bool:
        """Whether the frame continues an older one."""
        return self.now.id >> (_LINE_BITS + _START_BITS) < _NEW

    def begin(self, by_sweeps: bool, line: int | None = None, nodes: int = 1) -> None:
        """Begin a start, and propose an id for its frame: a new one, or one that continues a line of so many nodes."""
        generation = max(BY_SWEEPS + 1 if by_sweeps else 1, self.wanted, self.now.generation)
        random = int(derive(self._key, generation))
        rank = _NEW if line is None else max(0, _NEW - max(1, nodes).bit_length())
        line = random >> _LINE_BITS if line is None else line
        start = random & (1 << _START_BITS) - 1
        self.now = Frame(generation, ((rank << _LINE_BITS) + line << _START_BITS) + start)
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

    def note_in_rounds(self, peer: Peer, theirs: Frame, is_past: bool = True) -> bool:
        """Note the frame of a peer after the start; return whether it is this host's own, so that vectors compare.

        `is_past` is whether the peer has ended its start; before, it may still be placed in the frame of this host.
        """
        peer.frame = theirs
        if theirs == self.now:
            return is_past
        if peer.distrust:  # whoever is not believed starts again without others
            return False
        if theirs.generation == self.now.generation:
            self.hear(theirs.generation + is_past)
        else:
            self.hear(theirs.generation)
        return False


def find_majority(frames: Mapping[str, Frame], links: Mapping[str, Link]) -> Frame | None:
    """Return the frame of those of these peers to which half of a host's edges with others lead, or None."""
    arcs: Counter[Frame] = Counter()
    for name, frame in frames.items():
        if name in links:
            arcs[frame] += len(links[name].arcs)
    all_arcs = sum(len(link.arcs) for link in links.values())
    most = max(arcs, key=lambda frame: (arcs[frame], frame), default=None)
    return most if most is not None and 0 < all_arcs <= 2 * arcs[most] else None


def find_line(frame: Frame) -> int:
    """Return the line of starts that a frame belongs to."""
    return (frame.id >> _START_BITS) & (1 << _LINE_BITS) - 1
