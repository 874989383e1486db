"""Filtering: the filter of a host's vectors in steps, in each of which peers show their rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from manela.engines.rounds.smoothing import Filter
from manela.hosts.state.arcs import Mask
from manela.hosts.state.instructions import Ask, Instruction
from manela.hosts.state.messages import SMOOTH, Integers, Shown, Step
from manela.hosts.state.trust import Norms, measure_norms
from manela.kernels.layout import Table

if TYPE_CHECKING:
    from manela.hosts.state.rounds import MessageHost


class Filtering:
    """Filters the rows of own nodes in `table`, (known, padded m), in place; `middle` is that of the filter.

    The steps are those of a phase, from a number on, and show rows with `noise` times the configured noise. `used` are
    the arcs to begin with. `known`, if given, holds the rows that are taken of a peer that never answers.
    """

    def __init__(
        self, host: MessageHost, table: Table, middle: float, phase: int, first: int, noise: float, used: Mask,
        known: Table | None = None,
    ) -> None:  # fmt: skip
        self._host, self._table, self._middle, self._used, self._known = host, table, middle, used, known
        self._phase, self._first, self._noise = phase, first, noise
        self.whole = np.ones(host.own, bool)  # (n,): which own nodes were filtered with all their neighbours
        self.neighbours = host.arcs.build(used)
        self._source: Table | None = None
        self._seen = np.zeros(0, bool)
        self._norms = Norms(np.zeros((1, 1)), 0.0)

    def script(self) -> Iterator[Instruction]:
        """Yield the instructions of all steps."""
        host, dimensions = self._host, self._host.terms.settings.dimensions
        network_filter = Filter(self.neighbours, self._middle)
        steps = network_filter.pass_through(self._table)

        def advance() -> None:
            self._source = next(steps, None)

        step = Step(self._phase, self._first)
        yield host.will_compute(step, "filter", advance)
        while (source := self._source) is not None:
            self._seen = np.zeros(host.known, bool)
            self._seen[: host.own] = True
            if step.number == self._first and self._known is not None:
                # start from the last known vectors of peers, in case a peer does not answer
                known = np.flatnonzero(host.arcs.seen[host.own :]) + host.own
                source[known] = self._known[known]
                self._seen[known] = True
            host.publisher.trace_own(step, source[: host.own, :dimensions])
            # vectors before the first step of smoothing hold nothing of the node's neighbours but what was learned
            noise = 0.0 if step == (SMOOTH, 0, 0) else self._noise
            host.publisher.publish_step(step, source[host.edge_rows, :dimensions], noise)
            norms = measure_norms(source[: host.own, None, None, :dimensions], None)
            self._norms = Norms(np.nan_to_num(norms.sizes), 0.0)
            yield Ask(host.step, patient=True)
            used = host.arcs.find(host.peers.links, self._seen, host.peers.distrusted)
            self.whole &= host.arcs.have_all(used)
            if not np.array_equal(used, self._used):
                self._used, self.neighbours = used, host.arcs.build(used)
                network_filter.change(self.neighbours)
            yield host.will_compute(host.step, "filter", advance)
            step = Step(self._phase, step.number + 1)

    def store(self, reply: Shown, rows: Integers, vectors: npt.NDArray[np.float32]) -> None:
        """Store the rows that a peer shows at the current step."""
        if self._source is None or reply.step.phase != self._phase:
            return
        dimensions = vectors.shape[3]
        before = self._source[rows, :dimensions]
        judged = self._host.trust.judge(vectors, before, self._norms).rows
        if self._host.influence is not None:
            judged = self._host.influence.shorten(rows, judged, self._norms.sizes)
        self._source[rows, :dimensions] = judged[:, 0, 0]
        self._seen[rows] = True
