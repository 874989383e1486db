"""Plans rounds with walks on a GPU: the nodes that have iterations in each round, long chains first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manela.engines.estimate import MOST_PLANNED
from manela.engines.gpu.card import Card
from manela.kernels.randomness import ROUNDS, derive, derive_key
from manela.settings.schedule import Schedule

_LONG = 3.0
"""Fewest iterations per round for which a node's chain may get many warps; larger makes fewer chains long."""
_SPREAD = 10_000
"""A chain is long from 1/_SPREAD of a round, so that no single warp finishes late; larger makes more chains long."""


@dataclass
class Batch:
    """Several rounds, planned together.

    Attributes
    ----------
    first, last : int
        The rounds from `first` up to `last`, exclusive.
    nodes, rounds, counts : tensors, one item per slot
        A slot is a node in a round: the node, the round counted from `first`, and its iterations.
    ends : tensor
        The first iteration of each slot, followed by the end of the last slot.
    keys : tensor
        The key of each round.
    borders : list of int
        The first slot of each round, followed by the end of the last.
    long : list of int
        The first slot of each round with a short chain.
    iterations : list of int
        The first iteration of each round, followed by the end of the last.
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
    """The rounds of a schedule, planned a batch at a time."""

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
        """Return the batch that contains a round."""
        if self._batch is None or not self._batch.first <= number < self._batch.last:
            self._batch = None  # frees its memory
            self._batch = self._plan(number)
        return self._batch

    def _plan(self, first: int) -> Batch:
        """Return the rounds from `first` on that fit into memory, with the active nodes of each."""
        torch, device, size = self._card.torch, self._card.device, self._size
        last = min(self.schedule.rounds, first + max(1, MOST_PLANNED // size))
        rounds = last - first
        numbers = torch.arange(first, last + 1, dtype=torch.float64, device=device)[:, None]
        begun = self._on_card.begun(numbers).floor_()
        counts = (begun[1:] - begun[:-1]).reshape(-1)
        active = counts.nonzero().squeeze(1)
        counts = counts[active].to(torch.int32)
        ends = torch.cat((torch.zeros(1, dtype=torch.int64, device=device), torch.cumsum(counts, 0, dtype=torch.int64)))
        offsets = active // size
        begins = torch.arange(rounds + 1, device=device) * size
        borders = torch.searchsorted(active, torch.cat((begins, begins[:-1] + self._long_nodes)))
        cuts = torch.cat((borders, ends[borders[: rounds + 1]])).tolist()
        keys = derive(self._key, np.arange(first, last))
        return Batch(
            first, last, self._order[active - offsets * size], offsets.to(torch.int32), ends, counts,
            self._card.send(keys.view(np.int64)), cuts[: rounds + 1], cuts[rounds + 1 : 2 * rounds + 1],
            cuts[2 * rounds + 1 :],
        )  # fmt: skip
