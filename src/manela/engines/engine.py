"""Engine: the interface through which the training loop runs rounds, and the choice of one for a run."""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.engines.cpu import CpuEngine
from manela.engines.state import State
from manela.errors import DeviceError, ManelaWarning, ParameterError
from manela.kernels.layout import Arcs, Table
from manela.settings.budget import Sizes, resolve
from manela.settings.parameters import MOST_GPU_DIMENSIONS
from manela.settings.schedule import Schedule
from manela.settings.settings import Settings


class Engine(Protocol):
    """Moves a state through the rounds; `stop` may be called from any thread.

    An engine without a given state creates one, as the settings require.
    """

    name: str
    state: State  # its round is always up to date, its tables and pairs after `collect`
    arcs: Arcs  # those that walks follow

    @property
    def updates(self) -> npt.NDArray[np.int64]:
        """Number of update pairs of each node with this engine."""

    @property
    def pairs(self) -> int:
        """Number of update pairs made, including those of the initial state."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object, /) -> None: ...

    @property
    def is_sweeping(self) -> bool:
        """Whether sweeps are left to do before the rounds."""

    def sweep(self) -> int | None:
        """Do the next sweep and return how many are done; None if it was stopped before."""

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; return False if it was stopped, in which case it does not count."""

    def stop(self, *, keep: bool = True) -> None:
        """Stop during or after the current round; `keep` says whether the state is used afterwards."""

    def has_grown(self) -> bool:
        """Whether vectors lie far enough apart for the learning rate to fall; always True with walks."""

    def settle(self) -> None:
        """Secure the rounds done so far; if machines were lost, this may set the state back to an earlier round."""

    def finish(self) -> None:
        """Smooth the vectors and join the views, as the settings require, after the last round."""

    def collect(self) -> None:
        """Bring the state up to date."""

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Return the current vectors of some rows of a table, shape (len(rows), m)."""

    def is_finite(self) -> bool:
        """Whether all vectors are finite."""

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Measure update pairs per second for about `seconds`; changes no vector."""


_SPEED_OF_A_CORE = 10e6
"""Rough update pairs per second of one core with 128 dimensions; larger chooses a GPU less often."""
_WORTH = 20.0
"""Seconds of work on processors above which a GPU pays for its start; larger chooses a GPU less often."""


def open_engine(graph: Graph, settings: Settings, state: State | None = None) -> Engine:
    """Open the requested engine; "auto" takes a GPU if there is one and the work is worth its start.

    The engine continues from the state, or creates one.
    """
    name = settings.engine
    on_cluster = settings.workers is not None or settings.address is not None
    if on_cluster and name == "auto":
        name = "ray"
    if on_cluster and name != "ray":
        raise ParameterError(f"workers and address are for engine 'ray', got engine '{name}'")
    if name != "cpu" and settings.exchange == "walks":
        if name != "auto":
            raise ParameterError(
                f"walks run on the CPU: exchange='walks' needs engine 'cpu' or 'auto' without workers and address, got "
                f"engine {name!r}; give engine='cpu', or exchange='messages'"
            )
        name = "cpu"
    if name == "ray":
        from manela.engines.ray.engine import RayEngine

        return RayEngine(graph, settings, state)
    if name == "gpu":
        return _open_gpu(graph, settings, state)
    if name == "auto" and _is_worth_a_gpu(graph, settings):
        try:
            engine = _open_gpu(graph, settings, state)
        except DeviceError as error:
            warnings.warn(f"GPU not used: {error}", ManelaWarning, stacklevel=3)
        else:
            warnings.warn(f"runs on {engine.name}", ManelaWarning, stacklevel=3)
            return engine
    return CpuEngine(graph, settings, state)


def has_gpu() -> bool:
    """Whether there is a GPU that the extra `gpu` can use."""
    if find_spec("torch") is None or find_spec("triton") is None:
        return False
    return bool(import_module("torch").cuda.is_available())


def _is_worth_a_gpu(graph: Graph, settings: Settings) -> bool:
    if settings.dimensions > MOST_GPU_DIMENSIONS:
        return False
    budget = resolve(settings, Sizes.of(graph.indptr))
    seconds = budget.seconds
    if seconds is None:
        speed = _SPEED_OF_A_CORE * settings.threads * 128 / (settings.dimensions * (1 + settings.context))
        seconds = budget.expected_pairs / speed
    return seconds > _WORTH and has_gpu()


def _open_gpu(graph: Graph, settings: Settings, state: State | None) -> Engine:
    from manela.engines.gpu.engine import GpuEngine

    return GpuEngine(graph, settings, state)
