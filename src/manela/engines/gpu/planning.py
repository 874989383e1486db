"""Planning rounds by walks on a GPU: which nodes have iterations in each round, long chains first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manela.engines.gpu.card import Card
from manela.engines.memory import MOST_PLANNED
from manela.randomness import ROUNDS, derive, derive_key
from manela.schedule import Schedule

_LONG = 3.0
"""Iterations a round from which a node's chain may be long enough for many warps."""
_SPREAD = 10_000
"""How many such chains as the shortest long one would be a round: one warp must not be at one when all else is done."""


@dataclass
class Batch:
    """Some rounds, planned together.

    Attributes
    ----------
    first, last : int
        Rounds.
    nodes, rounds, counts : tensors, one item a slot
        A slot is a node in a round: which node, how many rounds after the first, its iterations.
    ends : tensor
        Where the iterations of each slot begin, and behind them where those of the last one end.
    keys : tensor
        The keys of rounds.
    borders : list of int
        Slots at which rounds begin.
    long : list of int
        Slots at which the short chains of each round begin.
    iterations : list of int
        Iterations at which rounds begin.
    """

    first: int
    last: int
    nodes: Any
    rounds: Any
    ends: Any
    counts: Any
    keys: Any
    borders: list[int]
    long: list[int]
    iterations: list[int]
    drawn: range = range(0)


class Plan:
    """The rounds of one schedule, planned some at a time."""

    def __init__(self, card: Card, schedule: Schedule, seed: int) -> None:
        torch = card.torch
        self._card, self._key, self.schedule = card, derive_key(seed, ROUNDS), schedule
        on_card = schedule.map(card.send)
        order = torch.argsort(on_card.iterations, descending=True, stable=True)
        self._order = order.to(torch.int32)
        self._on_card = on_card.map(lambda values: values[order])
        share = schedule.iterations / schedule.rounds
        self._long_nodes = int(np.count_nonzero(share >= max(_LONG, share.sum() / _SPREAD)))
        self._size = len(order)
        self._batch: Batch | None = None

    def find(self, number: int) -> Batch:
        """The batch that holds a round."""
        if self._batch is None or not self._batch.first <= number < self._batch.last:
            self._batch = None  # its room is needed
            self._batch = self._plan(number)
        return self._batch

    def _plan(self, first: int) -> Batch:
        torch, device, size = self._card.torch, self._card.device, self._size
        last = min(self.schedule.rounds, first + max(1, MOST_PLANNED // size))
        rounds = last - first
        numbers = torch.arange(first, last + 1, dtype=torch.float64, device=device)[:, None]
        begun = self._on_card.begun(numbers).floor_()
        counts = (begun[1:] - begun[:-1]).reshape(-1)
        active = counts.nonzero().squeeze(1)
        counts = counts[active].to(torch.int32)
        ends = torch.cat((torch.zeros(1, dtype=torch.int64, device=device), torch.cumsum(counts, 0, dtype=torch.int64)))
        of = active // size
        begins = torch.arange(rounds + 1, device=device) * size
        borders = torch.searchsorted(active, torch.cat((begins, begins[:-1] + self._long_nodes)))
        found = torch.cat((borders, ends[borders[: rounds + 1]])).tolist()
        keys = derive(self._key, np.arange(first, last))
        return Batch(
            first, last, self._order[active - of * size], of.to(torch.int32), ends, counts,
            self._card.send(keys.view(np.int64)), found[: rounds + 1], found[rounds + 1 : 2 * rounds + 1],
            found[2 * rounds + 1 :],
        )  # fmt: skip
