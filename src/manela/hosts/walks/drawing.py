"""The walks of a host's round: what is drawn, which walks leave for other hosts, and the work on their ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manela.errors import ClaimError, PeerError, TermsError
from manela.hosts.state.host import ANSWERS, POOLS
from manela.hosts.state.instructions import NotReadyError
from manela.hosts.state.messages import NOTHING, Integers, VectorRows, WalkRequest, Words, no_integers
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.kernels.cpu import walks as kernels
from manela.kernels.cpu.walks import build_aliases
from manela.kernels.layout import Arcs, Table
from manela.kernels.randomness import derive, derive_key

if TYPE_CHECKING:
    from manela.hosts.walks.host import WalkHost


class SharedKeys:
    """Lock-step: all hosts draw with keys of one seed, so the result is bit for bit that of one process."""

    def __init__(self, host: WalkHost) -> None:
        self._host = host
        self._snapshots: dict[int, list[Table]] = {}

    def keep(self) -> None:
        """Keep a copy of the vectors at the start of a round, for peers that are still in it when this host is not."""
        host = self._host
        self._snapshots = {number: tables for number, tables in self._snapshots.items() if number >= host.round - 1}
        self._snapshots[host.round] = [table[: host.known].copy() for table in host.tables]

    def check_request(self, request: WalkRequest) -> None:
        """Refuse a request without keys."""
        if request.keys is None or request.numbers is None:
            raise TermsError("keys and numbers are needed in lock-step")

    def find_tables(self, request: WalkRequest) -> list[Table]:
        """Return the tables as they were when the round of the request began."""
        if request.round in self._snapshots:
            return self._snapshots[request.round]
        host = self._host
        if request.round > host.round or len(request.edges):
            raise NotReadyError
        if request.round < host.round:
            raise TermsError(f"round {request.round} is over, {host.name} is in round {host.round}")
        return host.tables

    def find_keys(self, request: WalkRequest) -> tuple[Integers, Words]:
        """Return the steps and keys that the asker sent."""
        if request.firsts is None or request.keys is None:
            raise TermsError("walks need keys in lock-step")
        return request.firsts, request.keys

    def draw_rows(self, peer: str, request: WalkRequest) -> Integers:
        """Return the rows of the own nodes with the requested numbers."""
        host, numbers = self._host, request.numbers
        if numbers is None:
            raise TermsError("random nodes need numbers in lock-step")
        rows = np.searchsorted(host.numbers, numbers)
        if not (rows < host.own).all() or (host.numbers[rows] != numbers).any():
            raise ClaimError(f"{host.name} does not have nodes of all these numbers")
        return rows

    def shuffle(self, amount: int) -> Integers:
        """Return the order unchanged."""
        return np.arange(amount)

    def describe_walks(self, firsts: Integers, keys: Words) -> dict[str, Any]:
        """Return the steps and keys of the walks."""
        return {"firsts": firsts, "keys": keys, "numbers": no_integers()}

    def ask_for_random(self, plan: WalkPlan, peer: str) -> dict[str, Any]:
        """Return the numbers of the peer's nodes that the round has drawn."""
        numbers = self._host.peers.greetings[peer].numbers
        return {"numbers": numbers[plan.marks[numbers] > 0]}

    def prepare(self, plan: WalkPlan) -> None:
        """Mark all nodes that the round draws as negatives."""
        plan.marks = np.zeros(self._count_nodes(), np.uint8)
        kernels.mark_negatives(
            plan.numbers, plan.counts, plan.key, plan.targets.shape[1], plan.negatives, plan.marks
        )  # fmt: skip

    def settle(self, plan: WalkPlan) -> None:
        """Map each node number to the row of its node."""
        host = self._host
        plan.lookup = np.full(self._count_nodes(), -1, np.int64)
        plan.lookup[host.numbers] = np.arange(host.own)
        for peer, rows in plan.random.items():
            plan.lookup[plan.requests[peer].numbers] = rows
        if (plan.lookup[plan.marks > 0] < 0).any():
            raise PeerError(f"a peer has not sent all the vectors it was asked for in round {plan.round}")

    def _count_nodes(self) -> int:
        host = self._host
        return host.own + sum(hello.nodes for hello in host.peers.greetings.values())


class OwnRandomness:
    """Each host draws with its own secret seed, and sends random nodes only up to its share of a pool."""

    def __init__(self, host: WalkHost) -> None:
        self._host, seed = host, host.terms.settings.seed
        self._answers, self._pools = derive_key(seed, ANSWERS), derive_key(seed, POOLS)
        self._answered = 0
        self._sent: dict[str, tuple[int, int]] = {}

    def keep(self) -> None:
        """Do nothing: peers always see the current vectors."""

    def check_request(self, request: WalkRequest) -> None:
        """Refuse keys, with which the asker could choose where its walks go."""
        if request.keys is not None or request.numbers is not None:
            raise TermsError("keys and numbers are for lock-step")

    def find_tables(self, request: WalkRequest) -> list[Table]:
        """Return the current tables."""
        return self._host.tables

    def find_keys(self, request: WalkRequest) -> tuple[Integers, Words]:
        """Return zero steps, and a new secret key for every walk."""
        walks = len(request.edges)
        self._answered += walks
        secret = derive(self._answers, 1)
        return np.zeros(walks, np.int64), derive(secret, self._answered - walks + np.arange(walks))

    def draw_rows(self, peer: str, request: WalkRequest) -> Integers:
        """Return rows of random own nodes; a peer with edges here gets one share of the pool per round of this host."""
        host, rows = self._host, np.full(request.random, NOTHING, np.int64)
        if host.sessions.count_neighbours(peer) == 0:
            return rows
        number, sent = self._sent.get(peer, (-1, 0))
        sent = sent if number == host.round else 0
        amount = min(request.random, max(0, self._count_share() - sent))
        self._sent[peer] = (host.round, sent + amount)
        rows[:amount] = self._draw(2).integers(0, host.own, amount)
        return rows

    def shuffle(self, amount: int) -> Integers:
        """Return a random order, so that the position of a vector does not disclose its node."""
        return self._draw(3).permutation(amount)

    def describe_walks(self, firsts: Integers, keys: Words) -> dict[str, Any]:
        """Return no fields: the host that owns the edges draws where walks go."""
        return {}

    def ask_for_random(self, plan: WalkPlan, peer: str) -> dict[str, Any]:
        """Return how many random vectors are wanted."""
        return {"random": plan.pools.get(peer, 0)}

    def prepare(self, plan: WalkPlan) -> None:
        """Set how many random vectors each host sends: its share of all nodes, randomly rounded up or down."""
        sizes = {self._host.name: self._host.own, **self._host.find_sizes()}
        phase = int(derive(self._pools, plan.round)) / 2**64
        shares = np.cumsum(list(sizes.values())) / sum(sizes.values()) * self._host.terms.peers.pool
        borders = np.floor(np.concatenate(([0.0], shares)) + phase).astype(np.int64)
        plan.pools = dict(zip(sizes, np.diff(borders).tolist(), strict=True))

    def settle(self, plan: WalkPlan) -> None:
        """Fill the lookup with the rows of the pool."""
        random = np.random.default_rng(int(derive(derive(self._pools, 2**32), plan.round)))
        own = random.integers(0, self._host.own, plan.pools.get(self._host.name, 0))
        rows = np.concatenate([own, *(pool[pool >= 0] for pool in plan.random.values())])
        plan.lookup = rows if len(rows) else random.integers(0, self._host.own, 1)

    def _count_share(self) -> int:
        """Return how many vectors of the pool are own ones."""
        host = self._host
        return 1 + host.terms.peers.pool * host.own // (host.own + sum(host.find_sizes().values()))

    def _draw(self, purpose: int) -> np.random.Generator:
        self._answered += 1
        return np.random.default_rng(int(derive(derive(self._answers, purpose), self._answered)))


@dataclass
class WalkPlan:
    """One round: how many iterations each node does, and over which rows."""

    round: int
    rate: float
    key: np.uint64
    negatives: int
    nodes: Integers
    numbers: Integers
    counts: Integers
    targets: Integers  # shape (iterations, 2w): rows of the host's tables; −1 if there is none, or none yet
    lookup: Integers = field(default_factory=no_integers)  # maps a number drawn for a negative to a row
    # in lock-step, which node numbers are drawn
    marks: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    requests: dict[str, WalkRequest] = field(default_factory=dict)
    # for each peer, the positions in the flattened `targets` whose walks it was asked to finish
    walkers: dict[str, Integers] = field(default_factory=dict)
    # how many random vectors each host, including this one, contributes
    pools: dict[str, int] = field(default_factory=dict)
    # vectors that peers have sent for this round; they are stored after the rows of known nodes
    remote_vectors: list[VectorRows] = field(default_factory=list)
    random: dict[str, Integers] = field(default_factory=dict)  # the rows of the random vectors of each peer
    tables: list[Table] = field(default_factory=list)
    moved: list[Table] = field(default_factory=list)
    made: int = 0
    stop: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1, np.uint8))

    def compute(self) -> None:
        """Compute the new vectors, `moved`, and the number of update pairs, `made`, without changing the host."""
        made = np.zeros(len(self.nodes), np.int64)
        self.moved = [np.zeros((len(self.nodes), table.shape[1]), np.float32) for table in self.tables]
        for own, room in enumerate(self.moved):
            kernels.absorb(
                self.nodes, self.numbers, self.counts, self.key, self.tables[own],
                self.tables[len(self.moved) - 1 - own], room, made, self.targets, self.lookup, self.negatives,
                np.float32(self.rate), self.stop
            )  # fmt: skip
        self.made = int(made.sum())


@dataclass(frozen=True)
class ActiveArcs:
    """The arcs that walks can take, and the index of each among all arcs of the host."""

    arcs: Arcs
    positions: Integers

    @classmethod
    def build(cls, near: Neighbourhood, active: npt.NDArray[np.bool_], weighted: bool) -> ActiveArcs:
        """Select the active arcs of a neighbourhood."""
        positions = np.flatnonzero(active)
        counts = np.bincount(near.sources[positions], minlength=len(near.nodes))
        indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        thresholds = aliases = None
        if weighted:
            thresholds, aliases = np.empty(len(positions), np.uint32), np.empty(len(positions), np.int32)
            build_aliases(indptr, near.weights[positions], thresholds, aliases)
        return cls(Arcs(indptr, near.indices[positions], thresholds, aliases), positions)

    def names(self, arcs: Integers) -> Integers:
        """Return the indices of these arcs among all arcs of the host; −1 stays −1."""
        return np.where(arcs >= 0, self.positions[np.maximum(arcs, 0)] if len(self.positions) else -1, -1)
