"""Two policies of drawing for rounds by walks: keys that all hosts share, and each host's own randomness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from manela.agents.host import ANSWERS, POOLS, NotReadyError
from manela.agents.messages import NOTHING, Integers, WalkRequest, Words, no_integers
from manela.agents.walk_plan import WalkPlan
from manela.errors import ClaimError, PeerError, TermsError
from manela.kernels import hosts as kernels
from manela.kernels.layout import Table
from manela.randomness import derive, derive_key

if TYPE_CHECKING:
    from manela.agents.walk_host import WalkHost


class Drawing(Protocol):
    """By what a host draws, and what it needs of others for that."""

    def check_request(self, request: WalkRequest) -> None:
        """Refuse a request that draws by another policy."""
        ...

    def find_tables(self, request: WalkRequest) -> list[Table]:
        """The vectors that a request is about."""
        ...

    def find_keys(self, request: WalkRequest) -> tuple[Integers, Words]:
        """How many steps each of a peer's walks has gone, and its key."""
        ...

    def draw_rows(self, peer: str, request: WalkRequest) -> Integers:
        """Rows of own nodes that a peer gets as random ones; −1 beyond what it may have."""
        ...

    def shuffle(self, amount: int) -> Integers:
        """An order in which so many vectors of a reply are sent."""
        ...

    def keep(self) -> None:
        """A round begins."""
        ...

    def describe_walks(self, firsts: Integers, keys: Words) -> dict[str, Any]:
        """What a request says of walks besides their edges and steps."""
        ...

    def ask_for_random(self, plan: WalkPlan, peer: str) -> dict[str, Any]:
        """What a request says of the random vectors of a round."""
        ...

    def prepare(self, plan: WalkPlan) -> None:
        """Find out whose random vectors a round needs."""
        ...

    def settle(self, plan: WalkPlan) -> None:
        """Turn the negatives that were drawn into rows."""
        ...


class SharedKeys:
    """Lock-step: all hosts draw by keys of one seed, with the bits of one process."""

    def __init__(self, host: WalkHost) -> None:
        self._host = host
        self._snapshots: dict[int, list[Table]] = {}

    def keep(self) -> None:
        """Keep the vectors as this round begins, for peers that are still in it when this host is not."""
        host = self._host
        self._snapshots = {number: kept for number, kept in self._snapshots.items() if number >= host.round - 1}
        self._snapshots[host.round] = [table[: host.known].copy() for table in host.tables]

    def check_request(self, request: WalkRequest) -> None:
        """Refuse a request without keys."""
        if request.keys is None or request.numbers is None:
            raise TermsError("keys and numbers are needed in lock-step")

    def find_tables(self, request: WalkRequest) -> list[Table]:
        """The vectors as they were when the round of the request began."""
        if request.round in self._snapshots:
            return self._snapshots[request.round]
        host = self._host
        if request.round > host.round or len(request.edges):
            raise NotReadyError
        if request.round < host.round:
            raise TermsError(f"round {request.round} is over, {host.name} is in round {host.round}")
        return host.tables

    def find_keys(self, request: WalkRequest) -> tuple[Integers, Words]:
        """Those of the asker."""
        if request.firsts is None or request.keys is None:
            raise TermsError("walks need keys in lock-step")
        return request.firsts, request.keys

    def draw_rows(self, peer: str, request: WalkRequest) -> Integers:
        """Rows of the own nodes with the numbers that were asked for."""
        host, numbers = self._host, request.numbers
        if numbers is None:
            raise TermsError("random nodes need numbers in lock-step")
        rows = np.searchsorted(host.numbers, numbers)
        if not (rows < host.own).all() or (host.numbers[rows] != numbers).any():
            raise ClaimError(f"{host.name} does not have nodes of all these numbers")
        return rows

    def shuffle(self, amount: int) -> Integers:
        """As they are."""
        return np.arange(amount)

    def describe_walks(self, firsts: Integers, keys: Words) -> dict[str, Any]:
        """Their steps and keys."""
        return {"firsts": firsts, "keys": keys, "numbers": no_integers()}

    def ask_for_random(self, plan: WalkPlan, peer: str) -> dict[str, Any]:
        """The numbers of those that the round has drawn."""
        numbers = self._host.sessions.greetings[peer].numbers
        return {"numbers": numbers[plan.marks[numbers] > 0]}

    def prepare(self, plan: WalkPlan) -> None:
        """Mark all nodes that are drawn as negatives."""
        plan.marks = np.zeros(self._count_nodes(), np.uint8)
        kernels.mark_negatives(
            plan.numbers, plan.counts, plan.key, plan.targets.shape[1], plan.negatives, plan.marks
        )  # fmt: skip

    def settle(self, plan: WalkPlan) -> None:
        """Each number is the row of the node that has it."""
        host = self._host
        plan.lookup = np.full(self._count_nodes(), -1, np.int64)
        plan.lookup[host.numbers] = np.arange(host.own)
        for peer, rows in plan.random.items():
            plan.lookup[plan.requests[peer].numbers] = rows
        if (plan.lookup[plan.marks > 0] < 0).any():
            raise PeerError(f"a peer has not sent all the vectors it was asked for in round {plan.round}")

    def _count_nodes(self) -> int:
        host = self._host
        return host.own + sum(hello.nodes for hello in host.sessions.greetings.values())


class OwnRandomness:
    """Each host draws from a secret of its own, and gives of its nodes no more than their share of a pool."""

    def __init__(self, host: WalkHost) -> None:
        self._host, seed = host, host.terms.settings.seed
        self._answers, self._pools = derive_key(seed, ANSWERS), derive_key(seed, POOLS)
        self._answered = 0
        self._given: dict[str, tuple[int, int]] = {}

    def keep(self) -> None:
        """Nothing is kept: peers are shown what there is now."""

    def check_request(self, request: WalkRequest) -> None:
        """Refuse keys: an asker that has them chooses where its walks go."""
        if request.keys is not None or request.numbers is not None:
            raise TermsError("keys and numbers are for lock-step")

    def find_tables(self, request: WalkRequest) -> list[Table]:
        """The vectors as they are now."""
        return self._host.tables

    def find_keys(self, request: WalkRequest) -> tuple[Integers, Words]:
        """Those of this host, new ones for every walk."""
        walks = len(request.edges)
        self._answered += walks
        secret = derive(self._answers, 1)
        return np.zeros(walks, np.int64), derive(secret, self._answered - walks + np.arange(walks))

    def draw_rows(self, peer: str, request: WalkRequest) -> Integers:
        """Rows of random own nodes: to a peer with edges here, its share of the pool in a round of this host."""
        host, rows = self._host, np.full(request.random, NOTHING, np.int64)
        if host.sessions.count_neighbours(peer) == 0:
            return rows
        number, given = self._given.get(peer, (-1, 0))
        given = given if number == host.round else 0
        amount = min(request.random, max(0, self._count_share() - given))
        self._given[peer] = (host.round, given + amount)
        rows[:amount] = self._draw(2).integers(0, host.own, amount)
        return rows

    def shuffle(self, amount: int) -> Integers:
        """An order for so many vectors, drawn anew for every reply: their places must not tell which nodes they are."""
        return self._draw(3).permutation(amount)

    def describe_walks(self, firsts: Integers, keys: Words) -> dict[str, Any]:
        """Nothing: where walks go is drawn by whoever owns the edges."""
        return {}

    def ask_for_random(self, plan: WalkPlan, peer: str) -> dict[str, Any]:
        """How many."""
        return {"random": plan.pools.get(peer, 0)}

    def prepare(self, plan: WalkPlan) -> None:
        """How many each host shall give: its share of all nodes, rounded either way by chance."""
        sizes = {self._host.name: self._host.own, **self._host.find_sizes()}
        phase = int(derive(self._pools, plan.round)) / 2**64
        shares = np.cumsum(list(sizes.values())) / sum(sizes.values()) * self._host.terms.peers.pool
        borders = np.floor(np.concatenate(([0.0], shares)) + phase).astype(np.int64)
        plan.pools = dict(zip(sizes, np.diff(borders).tolist(), strict=True))

    def settle(self, plan: WalkPlan) -> None:
        """Each number is some row of the pool."""
        random = np.random.default_rng(int(derive(derive(self._pools, 2**32), plan.round)))
        own = random.integers(0, self._host.own, plan.pools.get(self._host.name, 0))
        rows = np.concatenate([own, *(pool[pool >= 0] for pool in plan.random.values())])
        plan.lookup = rows if len(rows) else random.integers(0, self._host.own, 1)

    def _count_share(self) -> int:
        host = self._host
        return 1 + host.terms.peers.pool * host.own // (host.own + sum(host.find_sizes().values()))

    def _draw(self, purpose: int) -> np.random.Generator:
        self._answered += 1
        return np.random.default_rng(int(derive(derive(self._answers, purpose), self._answered)))
