"""Selection: what an engine is, and which one runs a job."""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import Arcs
from manela.engines.cpu import CpuEngine
from manela.engines.messages import MessageEngine
from manela.engines.neighbours import Neighbours
from manela.engines.state import State
from manela.errors import DeviceError, ManelaWarning, ParameterError
from manela.graph import Graph
from manela.kernels.layout import Table
from manela.params import MOST_GPU_DIMENSIONS
from manela.schedule import Schedule, count_pairs
from manela.settings import Settings

_SPEED_OF_A_CORE = 5e6
"""Update pairs of 128 dimensions a second, roughly."""
_WORTH = 20.0
"""Seconds of work on the processors from which on a GPU's start pays."""

_SNAPSHOTS = {"cpu": ("float32",), "gpu": ("float32", "bfloat16"), "ray": ("float32", "float16")}
"""How nodes can read each other's vectors with each engine."""


class Engine(Protocol):
    """Moves a state through the rounds; `stop` may be called from any thread and ends a round unfinished.

    Attributes
    ----------
    name : str
    state : State
        Its round is right at all times, its tables and pairs after `collect`.
    arcs : Arcs
        Whom walks can step to.
    """

    name: str
    state: State
    arcs: Arcs

    @property
    def updates(self) -> npt.NDArray[np.int64]:
        """Update pairs that each node has made with this engine."""
        ...

    @property
    def pairs(self) -> int:
        """Update pairs made, with those that the state began with."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object, /) -> None: ...

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; False if it was stopped, and then nothing has moved."""
        ...

    def stop(self, *, keep: bool = True) -> None:
        """End the round that is being computed, or before the next; `keep` is whether the state is used after that."""
        ...

    def has_grown(self) -> bool:
        """Whether the vectors lie far enough apart for the learning rate to fall."""
        ...

    def collect(self) -> None:
        """Bring the state up to date."""
        ...

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Some rows of a table as they are now, shape (len(rows), m)."""
        ...

    def is_finite(self) -> bool:
        """Whether all vectors are."""
        ...

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Update pairs a second, tried for about this long; moves nothing."""
        ...


def open_engine(graph: Graph, settings: Settings, state: State, neighbours: Neighbours | None = None) -> Engine:
    """The engine that was asked for, or with "auto" a GPU where there is one and the work is worth its start.

    `neighbours` are those of the graph, where they are known already.
    """
    name = settings.engine
    on_cluster = settings.workers is not None or settings.address is not None
    if on_cluster and name == "auto":
        name = "ray"
    if on_cluster and name != "ray":
        raise ParameterError(f"workers and address are for engine 'ray', got engine '{name}'.")
    if name == "auto" and settings.snapshot != "float32":
        name = "ray" if settings.snapshot == "float16" else "gpu"
    kinds = _SNAPSHOTS["cpu" if name == "auto" else name]
    if settings.snapshot not in kinds:
        raise ParameterError(f"snapshot must be {' or '.join(kinds)} with engine '{name}', got {settings.snapshot!r}.")
    if settings.exchange == "messages":
        if name not in ("auto", "cpu"):
            raise ParameterError(
                f"exchange must be 'walks' with engine '{name}', got 'messages', which so far runs with engine 'cpu': "
                "give exchange='walks', or Manela.paper(…) (--paper), or another engine."
            )
        return MessageEngine(neighbours or graph, settings, state)
    if name == "ray":
        return _open_cluster(graph, settings, state)
    if name == "gpu":
        return _open_gpu(graph, settings, state)
    if name == "auto" and _is_worth_a_gpu(graph, settings):
        try:
            engine = _open_gpu(graph, settings, state)
        except DeviceError as error:
            warnings.warn(f"goes on without the GPU: {error}", ManelaWarning, stacklevel=3)
        else:
            warnings.warn(f"runs on {engine.name}", ManelaWarning, stacklevel=3)
            return engine
    return CpuEngine(neighbours.arcs if neighbours is not None else graph, settings, state)


def has_gpu() -> bool:
    """Whether there is a GPU that the extra `gpu` can use."""
    if find_spec("torch") is None or find_spec("triton") is None:
        return False
    return bool(import_module("torch").cuda.is_available())


def _is_worth_a_gpu(graph: Graph, settings: Settings) -> bool:
    if settings.dimensions > MOST_GPU_DIMENSIONS:
        return False
    seconds = settings.max_seconds
    if seconds is None:
        speed = _SPEED_OF_A_CORE * settings.threads * 128 / (settings.dimensions * (1 + settings.context))
        seconds = count_pairs(graph, settings) / speed
    return seconds > _WORTH and has_gpu()


def _open_gpu(graph: Graph, settings: Settings, state: State) -> Engine:
    from manela.engines.gpu import GpuEngine

    return GpuEngine(graph, settings, state)


def _open_cluster(graph: Graph, settings: Settings, state: State) -> Engine:
    from manela.engines.cluster import RayEngine

    return RayEngine(graph, settings, state)
