"""Configuration of a host: one TOML file, which `manela agent init` writes with comments."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from manela.agents.limits import Rates
from manela.agents.neighbourhood import check_host_name
from manela.agents.terms import Terms
from manela.errors import AgentError, ParameterError
from manela.params import DEFAULT_RATIOS, PAPER, PARAMETERS, check
from manela.settings import check_all

FILE = "agent.toml"

_LEARNING = ("dimensions", "window", "ratios", "negatives", "learning_rate", "context", "pairs", "rounds")
_PEERS = ("half", "pool", "patience", "start", "deadline", "grace", "longest_pause", "largest_norm")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(\d{1,5})")

_TEMPLATE = """\
# This host, for `manela agent run`. Hosts that learn together need the same dimensions, number of ratios and context.

name = "{name}"          # by which peers know this host: alice@{name}
listen = "{listen}"      # address and port for peers; 0.0.0.0 for every address of this machine
watch = "{watch}"               # address and port of a status page and metrics, as in "127.0.0.1:7447"; "" for none

[learning]
dimensions = {dimensions}          # length of a vector
window = {window}              # half the targets of an iteration
ratios = {ratios}    # share of targets 1, 2, … hops away; as many as hops may be looked
negatives = {negatives}            # random nodes for each target
learning_rate = {learning_rate}    # of the first round
context = {context}          # keep a second vector for each node
weighted = {weighted}         # steps and frequencies go by edge weight
{pairs}pairs = {pairs_value}        # update pairs of the whole network; 7450 a node by default
{rounds}rounds = {rounds_value}           # 150 by default, 500 from 100,000 nodes on

[peers]
half = {half}             # vectors travel as float16 where both hosts say so
pool = {pool}             # random vectors fetched for a round's negatives
patience = {patience}           # rounds for which the vectors of a peer that is away are used
start = {start}            # seconds to wait for all peers before the first round
deadline = {deadline}         # seconds for a call
grace = {grace}             # seconds that a round waits for peers slower than the computing
longest_pause = {longest_pause}    # seconds between two attempts at a peer that is away, at most
largest_norm = {largest_norm}  # longer vectors are refused

[limits]                  # of what one peer may ask for in a second
requests = {requests}
walks = {walks}
vectors = {vectors}
longest_wait = {longest_wait}        # seconds that a request waits for its turn before it is refused
at_once = {at_once}               # requests of a peer answered at the same time
{lock_step}"""

_LOCK_STEP = """
[lock_step]               # all hosts go through the rounds together, with the bits of one process
random_state = {random_state}
numbers = "numbers.csv"   # each node's place in the whole network
"""


@dataclass(frozen=True)
class Config:
    """A host's configuration, checked.

    `seed` is None unless hosts go in lock-step.
    """

    name: str
    listen: str
    parameters: dict[str, Any]
    weighted: bool = False
    half: bool = True
    pool: int = 2048
    patience: int = 30
    start: float = 30.0
    deadline: float = 10.0
    grace: float = 1.0
    longest_pause: float = 30.0
    largest_norm: float = 1000.0
    rates: Rates = field(default_factory=Rates)
    seed: int | None = None
    numbers: str = "numbers.csv"
    watch: str = ""

    def terms(self, secret: int) -> Terms:
        """How this host learns."""
        seed = secret if self.seed is None else self.seed
        values = {**PAPER, **self.parameters, "random_state": seed, "n_jobs": 1}
        return Terms(
            check_all(values), lock_step=self.seed is not None, weighted=self.weighted, half=self.half,
            pool=self.pool, patience=self.patience, largest_norm=self.largest_norm,
        )  # fmt: skip

    def write(self) -> str:
        """The configuration as TOML."""
        values = {name: PARAMETERS[name].default for name in _LEARNING} | self.parameters
        values["ratios"] = values["ratios"] or DEFAULT_RATIOS
        shown: dict[str, Any] = {name: _show(value) for name, value in values.items()}
        for name in ("pairs", "rounds"):
            shown[name] = "# " if values[name] is None else ""
            shown[f"{name}_value"] = values[name] or {"pairs": 1000000, "rounds": 150}[name]
        for name in ("weighted", *_PEERS):
            shown[name] = _show(getattr(self, name))
        for one in fields(Rates):
            shown[one.name] = _show(getattr(self.rates, one.name))
        lock_step = "" if self.seed is None else _LOCK_STEP.format(random_state=self.seed)
        return _TEMPLATE.format(name=self.name, listen=self.listen, watch=self.watch, lock_step=lock_step, **shown)


def read_config(path: Path) -> Config:
    """The configuration in a file."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AgentError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AgentError(f"{path}: is no TOML: {error}") from error
    try:
        return _check(found)
    except (AgentError, ParameterError) as error:
        raise AgentError(f"{path}: {error}") from error


def check_address(address: str) -> str:
    """The address, if it is `host:port`."""
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match[2]) > 65535:
        raise AgentError(f"an address must be host:port, as in mail.example.org:7446, got {address!r}")
    return address


def check_watch(address: str) -> str:
    """The address of the status page, if it is empty or of this machine alone."""
    if address and not is_local(check_address(address).rpartition(":")[0].strip("[]")):
        raise AgentError(f"watch must be an address of this machine alone, as in 127.0.0.1:7447, got {address!r}")
    return address


def is_local(host: str) -> bool:
    """Whether a name or an address leads to this machine and nowhere else."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _check(found: dict[str, Any]) -> Config:
    learning, peers, limits = (_table(found, name) for name in ("learning", "peers", "limits"))
    lock_step = _table(found, "lock_step")
    _only(found, ("name", "listen", "watch", "learning", "peers", "limits", "lock_step"), "")
    _only(learning, (*_LEARNING, "weighted"), "learning.")
    _only(peers, _PEERS, "peers.")
    _only(limits, [one.name for one in fields(Rates)], "limits.")
    _only(lock_step, ("random_state", "numbers"), "lock_step.")
    parameters = {name: learning[name] for name in _LEARNING if name in learning}
    for name, value in parameters.items():
        check(name, value)
    rates = Rates(**{name: _number(value, f"limits.{name}", 1e-3, 1e15) for name, value in limits.items()})
    seed = None
    if "lock_step" in found:
        check("random_state", lock_step.get("random_state", 0))
        seed = int(lock_step.get("random_state", 0))
    config = Config(
        name=check_host_name(_text(found, "name")),
        listen=check_address(_text(found, "listen")),
        parameters=parameters,
        weighted=_truth(learning, "weighted", False),
        half=_truth(peers, "half", True),
        pool=int(_number(peers.get("pool", Config.pool), "peers.pool", 1, 2**24)),
        patience=int(_number(peers.get("patience", Config.patience), "peers.patience", 0, 2**31)),
        start=_number(peers.get("start", Config.start), "peers.start", 0, 1e6),
        deadline=_number(peers.get("deadline", Config.deadline), "peers.deadline", 0.1, 3600),
        grace=_number(peers.get("grace", Config.grace), "peers.grace", 0.001, 3600),
        longest_pause=_number(peers.get("longest_pause", Config.longest_pause), "peers.longest_pause", 0.1, 86400),
        largest_norm=_number(peers.get("largest_norm", Config.largest_norm), "peers.largest_norm", 1e-3, 1e18),
        rates=rates,
        seed=seed,
        numbers=str(lock_step.get("numbers", "numbers.csv")),
        watch=check_watch(_text(found, "watch")) if "watch" in found else "",
    )
    config.terms(0)
    return config


def _table(found: dict[str, Any], name: str) -> dict[str, Any]:
    table = found.get(name, {})
    if not isinstance(table, dict):
        raise AgentError(f"{name} must be a table, as in [{name}]")
    return table


def _only(found: dict[str, Any], known: Any, prefix: str) -> None:
    for name in found:
        if name not in known:
            raise AgentError(f"{prefix}{name} is not known; there are {', '.join(prefix + one for one in known)}")


def _text(found: dict[str, Any], name: str) -> str:
    if not isinstance(found.get(name), str):
        raise AgentError(f"{name} must be given, as text in quotes")
    return str(found[name])


def _truth(found: dict[str, Any], name: str, default: bool) -> bool:
    value = found.get(name, default)
    if not isinstance(value, bool):
        raise AgentError(f"{name} must be true or false, got {value!r}")
    return value


def _number(value: Any, name: str, low: float, high: float) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise AgentError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return value


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_show(one) for one in value) + "]"
    return repr(value)
