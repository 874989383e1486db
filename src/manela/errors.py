"""Every error and warning that users of manela meet.

ManelaError                       the user can fix it; the command exits with status 2 and prints this one line
├── ParameterError (ValueError)   a parameter breaks its rule
├── GraphError (ValueError)       the input is not a network that can be learned from
├── FormatError (ValueError)      the content of a file does not match its format
├── UnknownNodeError (KeyError)   no node has this id
├── CheckpointError               a checkpoint is damaged or belongs to another run
├── DatasetError                  a data set is unknown, unavailable, or differs from the published one
├── SourceError                   a source of edges cannot be read
├── OutputError (OSError)         a file cannot be written
├── MissingExtraError (ImportError)  an optional dependency is not installed
├── DivergenceError (ArithmeticError)  vectors are no longer finite
├── DeviceError                   a GPU is missing or too small
├── ClusterError                  a Ray cluster does not answer, or is too small
├── AgentError                    a host's folder, key, certificate or configuration cannot be used
├── PeerError                     a peer cannot be reached, or does not answer
└── RefusedError                  a peer asks for or sends something that is not allowed
    ├── UnknownPeerError          its certificate is unknown
    ├── ClaimError                it claims what belongs to another host
    ├── NotAdjacentError          it sends a request over an edge that does not exist
    ├── TooFarError               it requests more hops than agreed
    ├── TermsError                its protocol, settings or round do not match
    ├── SessionError              its session is unknown; it must introduce its edges again
    ├── MalformedError            it sends something that is not a message of this protocol
    ├── TooLargeError             it sends more than a size limit allows
    ├── OutOfOrderError           frames are replayed or out of order
    ├── BadVectorError            a vector is not finite
    ├── TooOftenError             it exceeds a limit on the rate or number of requests
    └── TooSlowError              a request, a reply or a round timed out

ManelaWarning (UserWarning)       worth knowing; the run continues
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_LONGEST_WORDS = 300


@dataclass(frozen=True)
class Option:
    """A parameter that a message names: `directed=True` in Python, `--directed` at the command line."""

    name: str
    value: Any = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value!r}"


def write_message(message: BaseException, write: Callable[[Option], str] = str) -> str:
    """Join the parts of an error or a warning; `write` returns the text of an `Option`.

    Examples
    --------
    >>> write_message(ManelaWarning("pass ", Option("duplicates", "first"), " to count each edge once"))
    "pass duplicates='first' to count each edge once"
    """
    return "".join(write(part) if isinstance(part, Option) else str(part) for part in message.args)


class ManelaError(Exception):
    """The base class of all errors that the user can fix; its arguments are the parts of the message."""

    def __str__(self) -> str:
        return write_message(self)


class ParameterError(ManelaError, ValueError):
    """A parameter breaks its rule.

    Attributes
    ----------
    parameter : str
        The name of the parameter; empty if the rule is about several.
    rule : str
        What its value must be.
    value : object
        The value got.
    """

    parameter, rule, value = "", "", None

    @classmethod
    def of(cls, parameter: str, rule: str, value: Any) -> ParameterError:
        """Return the error of a parameter whose value breaks its rule.

        Examples
        --------
        >>> str(ParameterError.of("window", "must be a whole number", 0.5))
        'window must be a whole number, got 0.5'
        """
        error = cls(Option(parameter), f" {rule}, got {value!r}")
        error.parameter, error.rule, error.value = parameter, rule, value
        return error


class GraphError(ManelaError, ValueError):
    """The input is not a network that can be learned from."""


class FormatError(ManelaError, ValueError):
    """The content of a file does not match its format."""


class UnknownNodeError(ManelaError, KeyError):
    """No node has this id."""


class CheckpointError(ManelaError):
    """A checkpoint is damaged or belongs to another run."""


class DatasetError(ManelaError):
    """A data set is unknown, unavailable, or differs from the published one."""


class SourceError(ManelaError):
    """A source of edges cannot be read."""


class OutputError(ManelaError, OSError):
    """A file cannot be written."""


class MissingExtraError(ManelaError, ImportError):
    """An optional dependency is not installed."""


class DivergenceError(ManelaError, ArithmeticError):
    """Vectors are no longer finite."""


class DeviceError(ManelaError):
    """A GPU is missing or too small."""


class ClusterError(ManelaError):
    """A Ray cluster does not answer, or is too small."""


class AgentError(ManelaError):
    """A host's folder, key, certificate or configuration cannot be used."""


class PeerError(ManelaError):
    """A peer cannot be reached, or does not answer."""


@dataclass(frozen=True)
class NodeName:
    """A node that a refusal names: the text that a person reads, and the node as `name@host`, by which it is hashed."""

    text: str
    node: str

    def __str__(self) -> str:
        return self.text


class RefusedError(ManelaError):
    """A peer asks for or sends something that is not allowed; raised as one of the subclasses below.

    The message, which may quote a peer, is made short and printable. `times` is how often it happened, and `remote`
    whether the peer refused this host rather than the reverse.

    Attributes
    ----------
    reason : str
        The name under which refusals are counted, logged and sent to the peer.
    expected : bool
        Whether it also happens among honest peers, so that it is not a sign of misbehaviour.
    """

    reason = "refused"
    expected = False

    def __init_subclass__(cls, *, reason: str, expected: bool = False) -> None:
        super().__init_subclass__()
        cls.reason, cls.expected = reason, expected

    def __init__(self, *parts: str | NodeName, times: int = 1, remote: bool = False) -> None:
        self.parts = parts
        super().__init__(self.write(str))
        self.times, self.remote = times, remote

    def write(self, show: Callable[[NodeName], str]) -> str:
        """Return the message, with each node that it names as `show` returns it.

        Examples
        --------
        >>> refusal = ClaimError(NodeName("ann@beta", "ann@beta"), " is not a node of gamma")
        >>> str(refusal), refusal.write(lambda node: "#1")
        ('ann@beta is not a node of gamma', '#1 is not a node of gamma')
        """
        message = "".join(show(part) if isinstance(part, NodeName) else part for part in self.parts)
        return "".join(letter if letter.isprintable() else "?" for letter in message[:_LONGEST_WORDS])


class UnknownPeerError(RefusedError, reason="unknown peer"):
    """The peer's certificate is unknown."""


class ClaimError(RefusedError, reason="claims what is another host's"):
    """The peer claims what belongs to another host."""


class NotAdjacentError(RefusedError, reason="not adjacent"):
    """The peer sends a request over an edge that does not exist."""


class TooFarError(RefusedError, reason="more hops than agreed"):
    """The peer requests more hops than agreed."""


class TermsError(RefusedError, reason="other terms"):
    """The peer's protocol, settings or round do not match."""


class SessionError(RefusedError, reason="unknown session", expected=True):
    """The peer's session is unknown; it must introduce its edges again."""


class MalformedError(RefusedError, reason="malformed"):
    """The peer sends something that is not a message of this protocol."""


class TooLargeError(RefusedError, reason="too large"):
    """The peer sends more than a size limit allows."""


class OutOfOrderError(RefusedError, reason="replayed or out of order"):
    """Frames are replayed or out of order."""


class BadVectorError(RefusedError, reason="bad vector"):
    """A vector is not finite."""


class TooOftenError(RefusedError, reason="too often"):
    """The peer exceeds a limit on the rate or number of requests."""


class TooSlowError(RefusedError, reason="too slow"):
    """A request, a reply or a round timed out."""


REFUSALS = {kind.reason: kind for kind in RefusedError.__subclasses__()}
"""The subclasses of `RefusedError` by reason."""


class ManelaWarning(UserWarning):
    """Worth knowing; the run continues. Its arguments are the parts of the message."""

    def __str__(self) -> str:
        return write_message(self)


_PACKAGES = {"google": "protobuf", "grpc": "grpcio", "grpc_health": "grpcio-health-checking"}
"""Packages whose name differs from that of their module."""


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Import an optional dependency, or raise an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = _PACKAGES.get(name := module.partition(".")[0], name)
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed: pip install 'manela[{extra}]'"
        ) from error
