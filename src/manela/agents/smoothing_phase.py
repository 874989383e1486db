"""SmoothingPhase: smoothing of a host's vectors after the last round, a step of the filter at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from manela.agents.host import Compute, Exchange, Instruction
from manela.agents.messages import SMOOTH, Integers, Shown, Step
from manela.agents.trust import Norms, measure_norms
from manela.engines.rounds.smoothing import Filter, find_sizes, resize
from manela.kernels.layout import Table

if TYPE_CHECKING:
    from manela.agents.message_host import MessageHost

_NOISE = 0.1
"""Factor on the configured noise; a larger one discloses less.

It is smaller than elsewhere: the few, similar steps of smoothing disclose less, and noise harms them more.
"""


class SmoothingPhase:
    """The steps of the filter, and what peers have shown at the current one.

    Attributes
    ----------
    vectors : array of float32, shape (n, m)
        The smoothed vectors of own nodes, once the script has ended.
    whole : array of bool, shape (n,)
        Which of them were smoothed with all their neighbours.
    """

    vectors: npt.NDArray[np.float32]

    def __init__(self, host: MessageHost) -> None:
        self._host = host
        self.whole = np.ones(host.own, bool)
        self._source: Table | None = None
        self._seen = np.zeros(0, bool)
        self._norms = Norms(np.zeros((1, 1)), 0.0)

    def script(self) -> Iterator[Instruction]:
        """Yield the instructions of smoothing."""
        host, dimensions = self._host, self._host.terms.settings.dimensions
        table = host.tables[0].copy()
        filtered, neighbours = host.arcs.used, host.arcs.neighbours
        network_filter = Filter(neighbours)
        steps = network_filter.pass_through(table)
        number = 0

        def advance() -> None:
            self._source = next(steps, None)

        yield Compute(advance)
        while (source := self._source) is not None:
            self._seen = np.zeros(host.known, bool)
            self._seen[: host.own] = True
            if number == 0 and not host.terms.lock_step:
                # start from the last known vectors of peers, in case a peer does not answer
                known = np.flatnonzero(host.arcs.seen[host.own :]) + host.own
                source[known] = host.read_vectors(known, source.shape[1])
                self._seen[known] = True
            host.trace_own(Step(SMOOTH, number), source[: host.own, :dimensions])
            host.publish_step(Step(SMOOTH, number), source[host.edge_rows, :dimensions], _NOISE)
            norms = measure_norms(source[: host.own, None, None, :dimensions], None)
            self._norms = Norms(np.nan_to_num(norms.sizes), 0.0)
            yield Exchange(host.ask, patient=True)
            used = host.arcs.find(host.sessions.links, self._seen, host.distrusted)
            self.whole &= host.arcs.have_all(used)
            if not np.array_equal(used, filtered):
                filtered, neighbours = used, host.arcs.build(used)
                network_filter.change(neighbours)
            yield Compute(advance)
            number += 1
        alone = np.flatnonzero(~neighbours.joined[: host.own])
        table[alone] = host.tables[0][alone]
        self._resize(table)
        self.vectors = table[: host.own, :dimensions].copy()

    def store(self, peer: str, asked: Step, reply: Shown, rows: Integers, vectors: npt.NDArray[np.float32]) -> None:  # noqa: ARG002
        """Store the rows that a peer shows at the current step of the filter."""
        if self._source is None or reply.step.phase != SMOOTH:
            return
        dimensions = vectors.shape[3]
        before = self._source[rows, :dimensions]
        self._source[rows, :dimensions] = self._host.trust.judge(vectors, before, self._norms).rows[:, 0, 0]
        self._seen[rows] = True

    def _resize(self, table: Table) -> None:
        """Give rows norms in proportion to strength^¼, with a mean over this host's nodes, or all in lock-step."""
        host = self._host
        sizes = find_sizes(host.arcs.neighbours)
        mean = float(sizes.sum()) / max(1, int(np.count_nonzero(host.arcs.neighbours.joined)))
        if host.terms.lock_step:
            totals = host.total_of_all()
            mean = totals.sizes[0] / totals.joined
        resize(table, host.arcs.neighbours, sizes, mean or 1.0)
