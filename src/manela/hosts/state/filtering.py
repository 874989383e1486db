"""Filtering: the filter of a host's vectors in steps.

In lock-step, peers show their rows in each step. Otherwise they show them once, and a host predicts what they would
show later: the filter scales a row by nearly the same factor everywhere. So nothing is disclosed by later steps, and no
peer can lie in them.
"""

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

    The steps are those of a phase, from a number on. `used` are the arcs to begin with. `known`, if given, holds the
    rows that are taken of remote nodes that do not show any.
    """

    def __init__(
        self, host: MessageHost, table: Table, middle: float, phase: int, first: int, used: Mask,
        known: Table | None = None,
    ) -> None:  # fmt: skip
        self._host, self._table, self._middle, self._used, self._known = host, table, middle, used, known
        self._phase, self._first = phase, first
        self.whole = np.ones(host.own, bool)  # (n,): which own nodes were filtered with all their neighbours
        self.neighbours = host.arcs.build(used)
        self._source: Table | None = None
        self._seen = np.zeros(0, bool)
        self._norms = Norms(np.zeros((1, 1)), 0.0)

    def script(self) -> Iterator[Instruction]:
        """Yield the instructions of all steps."""
        host = self._host
        network_filter = Filter(self.neighbours, self._middle)
        steps = network_filter.pass_through(self._table)

        def advance() -> None:
            self._source = next(steps, None)

        step = Step(self._phase, self._first)
        yield host.will_compute(step, "filter", advance)
        first: Table | None = None
        while (source := self._source) is not None:
            if first is not None and not host.terms.lock_step:
                self._predict(first, source)
            else:
                yield from self._exchange(step, source, network_filter)
                first = source.copy()
            yield host.will_compute(step, "filter", advance)
            step = Step(self._phase, step.number + 1)

    def _exchange(self, step: Step, source: Table, network_filter: Filter) -> Iterator[Instruction]:
        """Show own rows at a step, and take those of peers; use the arcs to nodes that have a row."""
        host, dimensions = self._host, self._host.terms.settings.dimensions
        self._seen = np.zeros(host.known, bool)
        self._seen[: host.own] = True
        if step.number == self._first and self._known is not None:
            known = np.flatnonzero(self._known[host.own :].any(axis=1)) + host.own
            source[known] = self._known[known]
            self._seen[known] = True
        if host.terms.lock_step or self._phase == SMOOTH:
            host.publisher.trace_own(step, source[: host.own, :dimensions])
            host.publisher.publish_step(step, host.publisher.coarsen(source[: host.own, :dimensions]))
            norms = measure_norms(source[: host.own, None, None, :dimensions], None)
            self._norms = Norms(np.nan_to_num(norms.sizes), 0.0)
            yield Ask(host.step, patient=True)
        used = host.arcs.find(host.peers.links, self._seen, host.peers.distrusted)
        self.whole &= host.arcs.have_all(used)
        if not np.array_equal(used, self._used):
            self._used, self.neighbours = used, host.arcs.build(used)
            network_filter.change(self.neighbours)

    def _predict(self, first: Table, source: Table) -> None:
        """Set the rows of remote nodes to those at the first step, times the factor that fits own rows best."""
        own = self._host.own
        before, now = (table[:own].astype(np.float64) for table in (first, source))
        factor = float((before * now).sum()) / max(float(np.square(before).sum()), 1e-300)
        source[own:] = np.float32(factor) * first[own:]

    def store(self, peer: str, reply: Shown, rows: Integers, vectors: npt.NDArray[np.float32]) -> None:
        """Store the rows that a peer shows at the current step, but those that contradict what it showed in rounds."""
        if self._source is None or reply.step.phase != self._phase:
            return
        if self._known is not None:
            kept = self._host.trust.find_consistent(vectors[:, 0, 0], self._known[rows, : vectors.shape[3]])
            if not kept.all():
                self._host.doubt(self._host.peers[peer], float(1.0 - kept.mean()))
            rows, vectors = rows[kept], vectors[kept]
        dimensions = vectors.shape[3]
        before = self._source[rows, :dimensions]
        judged = self._host.trust.judge(vectors, before, self._norms).rows
        if self._host.influence is not None:
            judged = self._host.influence.shorten(rows, judged, self._norms.sizes)
        self._source[rows, :dimensions] = judged[:, 0, 0]
        self._seen[rows] = True
