"""StartPhase: the start of a host by messages, in which nodes take their neighbours' means in several sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from manela.agents.host import Compute, Exchange, Instruction
from manela.agents.messages import START, Integers, Shown, Step
from manela.agents.publishing import Published
from manela.agents.shown_rows import read_rows, write_rows
from manela.engines.rounds.start import Sweeps, choose_size
from manela.kernels.randomness import VECTORS, draw_vectors
from manela.kernels.reference import SWEEPS

if TYPE_CHECKING:
    from manela.agents.message_host import MessageHost

_NOISE, _MOST_NOISE = 1.0, 4.0
"""Factors on the configured noise; larger ones disclose less and learn worse."""


class StartPhase:
    """The sweeps of one start, and what peers have shown of theirs.

    Attributes
    ----------
    sweeps : Sweeps
    """

    def __init__(self, host: MessageHost) -> None:
        self._host = host
        self.sweeps = Sweeps(host.tables[0], host.arcs.neighbours, host.terms.settings.dimensions)

    def script(self) -> Iterator[Instruction]:
        """Yield the instructions of the start."""
        host, sweeps, settings = self._host, self.sweeps, self._host.terms.settings
        for number in range(SWEEPS):
            sweeps.show(slice(0, host.own))
            host.trace_own(Step(START, number), read_rows(sweeps.shown, np.arange(host.own), settings.dimensions))
            edge_rows = read_rows(sweeps.shown, host.edge_rows, settings.dimensions)
            host.publish_step(Step(START, number), edge_rows, self._find_noise() if number else 0.0)
            yield Exchange(host.ask, patient=True)
            host.update_neighbours()
            sweeps.neighbours = host.arcs.neighbours
            yield Compute(sweeps.average)
            sums = host.sum_own_rows()
            host.sums_of_peers = {}
            host.publish(Published(Step(START, number, 1), host.version, host.find_strengths(), sums=sums))
            yield Exchange(host.ask, patient=True)
            pooled = host.trust.pool_sums(sums, host.sums_of_peers, host.find_sizes_of_peers())
            total = np.zeros(host.tables[0].shape[1], np.int64)
            total[: settings.dimensions] = pooled.total
            sweeps.center(total, max(1, pooled.count))
        sweeps.finish(choose_size(host.find_degree()))
        if not host.terms.lock_step:
            host.arcs.forget(slice(host.own, None))  # peers have sent sweeps so far, but no vectors
        alone = np.flatnonzero(~host.arcs.neighbours.joined[: host.own])
        random = np.empty((len(alone), settings.dimensions), dtype=np.float32)
        draw_vectors(settings.seed, host.numbers[alone], random, VECTORS)
        host.tables[0][alone, : settings.dimensions] = random

    def store(self, peer: str, asked: Step, reply: Shown, rows: Integers, vectors: npt.NDArray[np.float32]) -> None:
        """Store what a peer shows of a sweep: rows at level 0, and the sums over its rows at level 1."""
        host = self._host
        if asked.level == 1:
            if reply.sums is not None and reply.step == asked:
                host.sums_of_peers[peer] = reply.sums
            return
        sweep = vectors[:, 0, 0]
        if not host.terms.lock_step:
            # enforce the norm that honest rows have: that of random vectors in sweep 0, and 1 afterwards
            lengths = np.sqrt((sweep.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
            sweep = np.divide(sweep, lengths, out=np.zeros_like(sweep), where=lengths > 0, casting="same_kind")
            sweep *= np.float32(1.0 if asked.number > 0 else 1.0 / np.sqrt(12 * sweep.shape[1]))
        write_rows(self.sweeps.shown, rows, sweep)
        host.arcs.see(rows)

    def _find_noise(self) -> float:
        """Return the factor on the noise of sweeps.

        Sweeps start from random rows, so they disclose most about single neighbours, above all on sparse networks.
        There the start also matters least, as its vectors are small.
        """
        return min(_MOST_NOISE, _NOISE / choose_size(self._host.find_degree()))
