"""Every error and warning that manela raises.

ManelaError                       the user can fix it; the command ends with status 2 and this one line
├── ParameterError (ValueError)   a parameter breaks its rule
├── GraphError (ValueError)       what was given is not a network that can be learned from
├── FormatError (ValueError)      a file does not hold what its format says
├── UnknownNodeError (KeyError)   no node has this id
├── CheckpointError               a checkpoint is damaged or belongs to another run
├── DatasetError                  a data set is unknown, cannot be had, or is not the one that was published
├── SourceError                   a place that edges are imported from cannot be read
├── OutputError (OSError)         a file cannot be written
├── MissingExtraError (ImportError)  an optional dependency is not installed
├── DivergenceError (ArithmeticError)  vectors stopped being finite
├── DeviceError                   a GPU is not there, or too small
├── ClusterError                  a Ray cluster does not answer, or has no room
├── AgentError                    a host's folder, key, certificate or configuration cannot be used
├── PeerError                     a peer cannot be reached, or its answer did not come
└── RefusedError                  a peer asks for, or sends, what it may not
    ├── UnknownPeerError          its certificate is not known
    ├── ClaimError                it claims what is another host's
    ├── NotAdjacentError          it asks through an edge that is not there
    ├── TooFarError               it asks for more hops than agreed
    ├── TermsError                it learns on other terms
    ├── SessionError              it must introduce its edges again
    ├── MalformedError            what it sends is no message of this protocol
    ├── TooLargeError             what it sends is larger than it may be
    ├── OutOfOrderError           frames are replayed or out of order
    ├── BadVectorError            a vector is not finite
    ├── TooOftenError             it asks for more than agreed in a second
    └── TooSlowError              a request, an answer or a round did not come in time

ManelaWarning (UserWarning)       worth knowing; the run goes on
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_LONGEST_WORDS = 300


class ManelaError(Exception):
    """The base of all errors that the user can fix."""


class ParameterError(ManelaError, ValueError):
    """A parameter breaks its rule."""


class GraphError(ManelaError, ValueError):
    """What was given is not a network that can be learned from."""


class FormatError(ManelaError, ValueError):
    """A file does not hold what its format says."""


class UnknownNodeError(ManelaError, KeyError):
    """No node has this id."""

    def __str__(self) -> str:
        return str(self.args[0])


class CheckpointError(ManelaError):
    """A checkpoint is damaged or belongs to another run."""


class DatasetError(ManelaError):
    """A data set is unknown, cannot be had, or is not the one that was published."""


class SourceError(ManelaError):
    """A place that edges are imported from cannot be read."""


class OutputError(ManelaError, OSError):
    """A file cannot be written."""


class MissingExtraError(ManelaError, ImportError):
    """An optional dependency is not installed."""


class DivergenceError(ManelaError, ArithmeticError):
    """Vectors stopped being finite."""


class DeviceError(ManelaError):
    """A GPU is not there, or too small."""


class ClusterError(ManelaError):
    """A Ray cluster does not answer, or has no room."""


class AgentError(ManelaError):
    """A host's folder, key, certificate or configuration cannot be used."""


class PeerError(ManelaError):
    """A peer cannot be reached, or its answer did not come."""


class RefusedError(ManelaError):
    """A peer asks for, or sends, what it may not; raised as one of the types below.

    The message, which may quote a peer, is short and printable. `times` is how often it happened, and `remote` whether
    it is the peer that refuses us.

    Attributes
    ----------
    reason : str
        By which refusals are counted, written down and told.
    """

    reason = "refused"
    expected = False
    """Whether the protocol makes it happen among honest peers, so that it says nothing against one."""

    def __init__(self, message: str, *, times: int = 1, remote: bool = False) -> None:
        super().__init__("".join(c if c.isprintable() else "?" for c in message[:_LONGEST_WORDS]))
        self.times, self.remote = times, remote


class UnknownPeerError(RefusedError):
    """Its certificate is not known."""

    reason = "unknown peer"


class ClaimError(RefusedError):
    """It claims what is another host's."""

    reason = "claims what is another host's"


class NotAdjacentError(RefusedError):
    """It asks through an edge that is not there."""

    reason = "not adjacent"


class TooFarError(RefusedError):
    """It asks for more hops than agreed."""

    reason = "more hops than agreed"


class TermsError(RefusedError):
    """It learns on other terms."""

    reason = "other terms"


class SessionError(RefusedError):
    """It must introduce its edges again."""

    reason = "unknown session"
    expected = True


class MalformedError(RefusedError):
    """What it sends is no message of this protocol."""

    reason = "malformed"


class TooLargeError(RefusedError):
    """What it sends is larger than it may be."""

    reason = "too large"


class OutOfOrderError(RefusedError):
    """Frames are replayed or out of order."""

    reason = "replayed or out of order"


class BadVectorError(RefusedError):
    """A vector is not finite."""

    reason = "bad vector"


class TooOftenError(RefusedError):
    """It asks for more than agreed in a second."""

    reason = "too often"


class TooSlowError(RefusedError):
    """A request, an answer or a round did not come in time."""

    reason = "too slow"


REFUSALS = {kind.reason: kind for kind in RefusedError.__subclasses__()}
"""The types of refusals by their reasons."""


class ManelaWarning(UserWarning):
    """Worth knowing; the run goes on."""


_PACKAGES = {"google": "protobuf", "grpc": "grpcio", "grpc_health": "grpcio-health-checking"}
"""Packages that are not called as the modules in them."""


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Import an optional dependency, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = _PACKAGES.get(name := module.partition(".")[0], name)
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed: pip install 'manela[{extra}]'"
        ) from error
