"""Config: reads and writes the configuration of a host, a TOML file with comments."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from manela.errors import AgentError, ParameterError
from manela.hosts.state.names import check_host_name
from manela.hosts.state.terms import PeerOptions, RateLimits, Terms, read_table, write_line, write_table
from manela.settings.parameters import DEFAULT_RATIOS, PAPER, PARAMETERS, check
from manela.settings.settings import check_all
from manela.system.local_server import is_local

FILE = "agent.toml"

AGREED = ("exchange", "dimensions", "ratios", "context")
"""Parameters that must be the same at all hosts; of `ratios`, only their number."""
PARAMETERS_OF_HOSTS = (
    *AGREED, "window", "negatives", "learning_rate", "frequency", "smooth", "pairs", "rounds", "patience"
)  # fmt: skip
"""Parameters of learning that a host may set."""
OF_MESSAGES: dict[str, Any] = {"negative_source": "moments", "start": "random", "views": "rounds"}
"""Settings of a host that learns one view by messages; it sees no vectors of other hosts' nodes but neighbours."""
TWO_VIEWS: dict[str, Any] = {"start": "spectral", "views": "both"}
"""Settings of a host that begins with the spectral view, and joins it with what rounds learn."""
_RENAMED, _GONE = {"patience": "away"}, ("largest_norm",)
"""Options of peers that were renamed since 0.1, and those that are no longer used."""
_EXAMPLES = {"pairs": 1_000_000, "rounds": 100}
_START = "First vectors: spectral, a view that is also joined in the end; neighbours, means over them; or random."
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(\d{1,5})")


_SYSLOG = "/dev/log"
"""The socket of the system's log, for `syslog = true`."""


@dataclass(frozen=True)
class LogOptions:
    """Where a host's log goes besides stderr, and whether it names nodes."""

    syslog: str = ""  # a socket's path, or udp:ADDRESS:PORT; empty for none
    hash_names: bool = False


@dataclass(frozen=True)
class Config:
    """A host's validated configuration.

    `start` is None for the usual one, and `seed` is None unless hosts run in lock-step; `numbers` is the file with the
    node numbers for lock-step.
    """

    name: str
    listen: str
    parameters: dict[str, Any]
    weighted: bool = False
    peers: PeerOptions = field(default_factory=PeerOptions)
    rates: RateLimits = field(default_factory=RateLimits)
    start: str | None = None
    seed: int | None = None
    numbers: str = "numbers.csv"
    watch: str = ""
    log: LogOptions = field(default_factory=LogOptions)

    def terms(self, secret: int) -> Terms:
        """Return how this host learns; `secret` is the seed outside lock-step."""
        by_walks = self.parameters.get("exchange") == "walks"
        # hosts exchange vectors of direct neighbours only, so negatives are drawn from moments
        defaults: dict[str, Any] = PAPER if by_walks else OF_MESSAGES
        start = self.start or self._usual_start
        if start == "spectral":
            defaults = {**defaults, **TWO_VIEWS}
        seed = secret if self.seed is None else self.seed
        settings = check_all({**defaults, **self.parameters, "random_state": seed, "n_jobs": 1})
        return Terms(
            settings, lock_step=self.seed is not None, weighted=self.weighted,
            begins_with_means=start == "neighbours", peers=self.peers
        )  # fmt: skip

    @property
    def has_frames(self) -> bool:
        """Whether the host can start again, together with its peers."""
        start = self.start or self._usual_start
        return start != "random" and self.seed is None and not self.parameters.get("context", False)

    @property
    def _usual_start(self) -> str:
        """How first vectors come about by default."""
        return "random" if self.parameters.get("exchange") == "walks" else "spectral"

    def write(self) -> str:
        """Return the configuration as TOML."""
        lines = [
            "# This host, for `manela agent run`. Hosts that learn together need the same exchange, dimensions and",
            "# context, and as many ratios. What is commented out is the default.",
            "",
            write_line("name", self.name, f"by which peers know this host: alice@{self.name}"),
            write_line("listen", self.listen, "address and port for peers; 0.0.0.0 for every address of this machine"),
            write_line("watch", self.watch, 'address and port of a status page, as in "127.0.0.1:7447"; "" for none'),
            "",
            "[learning]",
            *(self._write_parameter(name) for name in PARAMETERS_OF_HOSTS),
            write_line("start", self.start or self._usual_start, _START, self.start is not None),
            write_line("weighted", self.weighted, "Steps and frequencies are proportional to edge weights."),
            "",
            "[peers]",
            *write_table(self.peers),
            "",
            "[limits]  # on what one peer may ask for per second",
            *write_table(self.rates),
            "",
            "[log]",
            write_line("syslog", self.log.syslog, 'also log to "/dev/log", or to "udp:127.0.0.1:514"; "" for neither'),
            write_line("hash_names", self.log.hash_names, "log and audit show keyed hashes in place of nodes' names"),
        ]
        if self.seed is not None:
            lines += [
                "",
                "[lock_step]  # all hosts do each round together, with the same bits as one process",
                write_line("random_state", self.seed, "the seed of all hosts"),
                write_line("numbers", self.numbers, "the number of each node in the whole network"),
            ]
        return "\n".join(lines) + "\n"

    def list_settings(self) -> dict[str, Any]:
        """Return all settings by their names, such as `peers.noise`, for the audit."""
        settings: dict[str, Any] = {}
        for name, value in asdict(self).items():
            table = {"parameters": "learning", "rates": "limits"}.get(name, name)
            entries = value.items() if isinstance(value, dict) else [("", value)]
            settings |= {f"{table}.{key}".rstrip("."): entry for key, entry in entries}
        return settings

    def _write_parameter(self, name: str) -> str:
        parameter, value = PARAMETERS[name], self.parameters.get(name)
        given = value is not None or name in AGREED
        default = DEFAULT_RATIOS if name == "ratios" else OF_MESSAGES.get(name, parameter.default)
        shown = value if value is not None else _EXAMPLES.get(name) if default is None else default
        purpose = parameter.help if name not in ("pairs", "rounds") else f"{parameter.help} Of this host's nodes."
        return write_line(name, shown, purpose, given)


def is_half_restored(home: Path) -> bool:
    """Return whether a restore was interrupted in a home: the configuration, which comes last, is missing."""
    is_begun = any(home.glob("before-restore-*")) or any(home.glob(".restore.*"))
    return is_begun and not (home / FILE).exists()


def describe_missing(home: Path) -> str:
    """Return what to say of a home without a configuration."""
    if is_half_restored(home):
        return f"{home}: a restore was interrupted there; run `manela agent restore FILE` again"
    return f"{home}: does not hold a host; make one with `manela agent init`"


def read_config(path: Path) -> Config:
    """Read and validate the configuration in a file."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise AgentError(describe_missing(path.parent)) from None
    except OSError as error:
        raise AgentError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AgentError(f"{path}: is not valid TOML: {error}") from error
    try:
        return _check(tables)
    except (AgentError, ParameterError) as error:
        raise AgentError(f"{path}: {error}") from error


def check_address(address: str) -> str:
    """Return the address, or raise unless it is `host:port`."""
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match[2]) > 65535:
        raise AgentError(f"an address must be host:port, for example mail.example.org:7446, got {address!r}")
    return address


def check_watch(address: str) -> str:
    """Return the address of the status page, or raise unless it is empty or local to this machine."""
    if address and not is_local(check_address(address).rpartition(":")[0].strip("[]")):
        raise AgentError(f"watch must be an address on this machine only, for example 127.0.0.1:7447, got {address!r}")
    return address


def check_syslog(syslog: Any) -> str:
    """Return the address of a system log: a socket's path, udp:ADDRESS:PORT, or an empty text for none."""
    if isinstance(syslog, bool):
        return _SYSLOG if syslog else ""
    rule = f'log.syslog must be true, a path such as "{_SYSLOG}", or "udp:127.0.0.1:514", got {syslog!r}'
    if not isinstance(syslog, str):
        raise AgentError(rule)
    if syslog.startswith("udp:"):
        address, _, port = syslog.removeprefix("udp:").rpartition(":")
        try:  # a name would have to be looked up, which may take long
            ipaddress.ip_address(address.strip("[]"))
        except ValueError:
            raise AgentError(rule) from None
        if not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536):
            raise AgentError(rule)
    elif syslog and not syslog.startswith("/"):
        raise AgentError(rule)
    return syslog


def check_start(start: str | None, parameters: dict[str, Any], lock_step: bool) -> None:
    """Raise unless a host can start in this way."""
    starts = ["random"] if parameters.get("exchange") == "walks" else ["spectral", "random"]
    starts += [] if lock_step else ["neighbours"]
    if start is not None and start not in starts:
        raise AgentError(f"learning.start must be {' or '.join(starts)}, got {start!r}")


def _check(tables: dict[str, Any]) -> Config:
    learning, peers, limits, log = (_table(tables, name) for name in ("learning", "peers", "limits", "log"))
    peers = {_RENAMED.get(name, name): value for name, value in peers.items() if name not in _GONE}
    lock_step = _table(tables, "lock_step")
    _check_names(tables, ("name", "listen", "watch", "learning", "peers", "limits", "lock_step", "log"), "")
    _check_names(learning, (*PARAMETERS_OF_HOSTS, "start", "weighted"), "learning.")
    _check_names(lock_step, ("random_state", "numbers"), "lock_step.")
    _check_names(log, ("syslog", "hash_names"), "log.")
    if not isinstance(log.get("hash_names", False), bool):
        raise AgentError(f"log.hash_names must be true or false, got {log['hash_names']!r}")
    parameters = {name: learning[name] for name in PARAMETERS_OF_HOSTS if name in learning}
    for name, value in parameters.items():
        check(name, value)
    weighted = learning.get("weighted", False)
    if not isinstance(weighted, bool):
        raise AgentError(f"learning.weighted must be true or false, got {weighted!r}")
    start = learning.get("start")
    check_start(start, parameters, "lock_step" in tables)
    seed = None
    if "lock_step" in tables:
        check("random_state", lock_step.get("random_state", 0))
        seed = int(lock_step.get("random_state", 0))
    config = Config(
        name=check_host_name(_text(tables, "name")),
        listen=check_address(_text(tables, "listen")),
        parameters=parameters,
        weighted=weighted,
        start=start,
        peers=read_table(PeerOptions, peers, "peers"),
        rates=read_table(RateLimits, limits, "limits"),
        seed=seed,
        numbers=_text(lock_step, "numbers") if "numbers" in lock_step else Config.numbers,
        watch=check_watch(_text(tables, "watch")) if "watch" in tables else "",
        log=LogOptions(check_syslog(log.get("syslog", "")), log.get("hash_names", False)),
    )
    terms = config.terms(0)
    if config.peers.epsilon > 0.0 and (terms.hops > 2 or start == "neighbours" or terms.settings.exchange == "walks"):
        raise AgentError("peers.epsilon needs messages, at most two ratios, and a start by spectral or random")
    return config


def _table(tables: dict[str, Any], name: str) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise AgentError(f"{name} must be a table, for example [{name}]")
    return table


def _check_names(table: dict[str, Any], known: tuple[str, ...], prefix: str) -> None:
    for name in table:
        if name not in known:
            raise AgentError(f"{prefix}{name} is unknown; known are {', '.join(prefix + other for other in known)}")


def _text(table: dict[str, Any], name: str) -> str:
    if not isinstance(table.get(name), str):
        raise AgentError(f"{name} must be given, as text in quotes")
    return str(table[name])
