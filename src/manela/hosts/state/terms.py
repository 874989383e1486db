"""Terms: how a host learns, what it must agree on with its peers, and the limits it sets them."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from manela.errors import AgentError
from manela.settings.settings import Settings

Table = TypeVar("Table")


def option(default: Any, help: str, low: float = 0.0, high: float = 0.0) -> Any:  # noqa: A002
    """Return a dataclass field for an option, with its default, its help text, and the bounds of a number."""
    return field(default=default, metadata={"help": help, "low": low, "high": high})


@dataclass(frozen=True)
class PeerOptions:
    """How a host deals with its peers."""

    half: bool = option(True, "vectors travel as float16 where both hosts say so")
    noise: float = option(1.0, "noise on sums and means that peers see; larger hides single edges better", 0.0, 100.0)
    epsilon: float = option(0.0, "bound on what means and sums disclose in a period; 0 for none", 0.0, 1e6)
    delta: float = option(1e-5, "the chance with which epsilon may not hold", 1e-12, 0.1)
    period: int = option(30, "days after which epsilon may be spent again", 1, 36_500)
    clip: float = option(2.0, "received vectors are no longer than this times the median of own ones", 0.1, 1e6)
    every: int = option(
        2, "rounds from one exchange with peers to the next; more are faster, and learn from older vectors", 1, 1000
    )
    means: int = option(8, "rounds for which peers are shown the same means; more tell them less", 1, 10**6)
    share: float = option(
        0.5, "share of this host's nodes that one peer may see, or 32 nodes if that is more", 0.0, 1.0
    )
    pool: int = option(2048, "by walks, random vectors fetched for a round's negatives", 1, 2**24)
    away: int = option(30, "rounds for which the vectors of a peer that is away are used", 0, 2**31)
    start: float = option(30.0, "seconds to wait for all peers before the first round", 0.0, 1e6)
    wait: float = option(60.0, "seconds that rounds wait for a peer that is away", 0.0, 1e6)
    finish: float = option(60.0, "seconds that a step of the start or of smoothing waits for peers", 0.0, 1e6)
    deadline: float = option(10.0, "seconds for a call", 0.1, 3600.0)
    grace: float = option(1.0, "seconds that a round waits for peers", 0.001, 3600.0)
    longest_pause: float = option(30.0, "seconds between two attempts at a peer that is away, at most", 0.1, 86400.0)


@dataclass(frozen=True)
class RateLimits:
    """What one peer may ask for per second; a quiet peer may ask for ten seconds' worth at once."""

    requests: float = option(200.0, "requests a second", 1e-3, 1e15)
    walks: float = option(2e6, "walks a second", 1e-3, 1e15)
    vectors: float = option(2e6, "vectors a second", 1e-3, 1e15)
    megabytes: float = option(100.0, "megabytes a second, of requests and answers together", 1e-3, 1e15)
    longest_wait: float = option(5.0, "seconds that a request waits for its turn before it is refused", 1e-3, 1e6)
    at_once: int = option(8, "requests of a peer answered at the same time", 1, 10_000)


def read_table(kind: type[Table], values: dict[str, Any], section: str) -> Table:
    """Build a table of options from the values in a configuration, and check each of them."""
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            names = ", ".join(f"{section}.{other}" for other in known)
            raise AgentError(f"{section}.{name} is unknown; known are {names}")
    return kind(**{name: _check(known[name], value, section) for name, value in values.items()})


def write_table(table: Any) -> list[str]:
    """Return a table of options as lines of a configuration, with a comment on each option."""
    return [write_line(entry.name, getattr(table, entry.name), entry.metadata["help"]) for entry in fields(table)]


def write_line(name: str, value: Any, purpose: str, given: bool = True) -> str:
    """Return a line of a configuration, commented out unless `given`."""
    return f"{'' if given else '# '}{name} = {show(value)}".ljust(30) + f"  # {purpose}"


def show(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(show(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _check(entry: Any, value: Any, section: str) -> Any:
    """Return the value, or raise unless it has the type and lies within the bounds of an option."""
    name, low, high = f"{section}.{entry.name}", entry.metadata["low"], entry.metadata["high"]
    if entry.default is MISSING or isinstance(entry.default, bool):
        if not isinstance(value, bool):
            raise AgentError(f"{name} must be true or false, got {value!r}")
        return value
    is_integer = isinstance(entry.default, int)
    has_type = isinstance(value, int) if is_integer else isinstance(value, int | float)
    if isinstance(value, bool) or not has_type or not low <= value <= high:
        kind = "a whole number" if is_integer else "a number"
        raise AgentError(f"{name} must be {kind} from {low:g} to {high:g}, got {value!r}")
    return value if is_integer else float(value)


@dataclass(frozen=True)
class Terms:
    """How a host learns; exchange, dimensions, hops, context vectors and lock-step must be the same at its peers."""

    # dimensions, window, ratios and so on; `seed` is the run's in lock-step, and a secret of this host otherwise
    settings: Settings
    # whether all hosts do each round together, with a result bit for bit that of the CPU engine
    lock_step: bool = False
    weighted: bool = False  # whether steps and frequencies are proportional to edge weights
    # whether first vectors are gathered by sweeps in which each node takes the mean of its neighbours
    begins_with_means: bool = False
    peers: PeerOptions = field(default_factory=PeerOptions)  # how the host deals with its peers

    @property
    def hops(self) -> int:
        """s, the number of hops."""
        return len(self.settings.targets_by_hop)

    @property
    def tables(self) -> int:
        """The number of vectors of a node: 2 with context vectors, otherwise 1."""
        return 1 + self.settings.context

    @property
    def run(self) -> str:
        """In lock-step, a text of all parameters that must be the same at every host; otherwise empty."""
        return repr(sorted(self.settings.identity().items())) + str(self.weighted) if self.lock_step else ""
