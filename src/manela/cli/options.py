"""Flags that several commands share; those of parameters come from the table in `params`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from manela.errors import ParameterError
from manela.params import PARAMETERS

GraphArgument = Annotated[
    str, typer.Argument(metavar="GRAPH", help="A file (edge list, .mat, .npz, GraphML, …) or a data set's name.")
]
Directed = Annotated[bool, typer.Option("--directed", help="Follow arcs as given, rather than both ways.")]
Unweighted = Annotated[bool, typer.Option("--unweighted", help="Leave out weights and further columns.")]
MatfileVariable = Annotated[str, typer.Option(help="The variable of a .mat file that holds the matrix.")]


def flag(name: str, *names: str, **more: Any) -> Any:
    """The option for a parameter, with its help."""
    return typer.Option(*names, help=PARAMETERS[name].help, **more)


def default(name: str) -> Any:
    """The default of a parameter, as the command line shows it."""
    value = PARAMETERS[name].default
    return ",".join(f"{part:g}" for part in value) if isinstance(value, tuple) else value


def parse_numbers(name: str, text: str) -> tuple[float, ...]:
    """0.7,0.3 as numbers."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(f"{name} must be numbers separated by commas, got {text!r}.") from None


def parse_ratios(text: str) -> tuple[float, ...]:
    """The ratios of a flag."""
    return parse_numbers("ratios", text)


Dimensions = Annotated[int, flag("dimensions")]
Window = Annotated[int, flag("window")]
Ratios = Annotated[str, flag("ratios", metavar="R1,R2,…")]
Negatives = Annotated[int, flag("negatives")]
LearningRate = Annotated[float, flag("learning_rate")]
Context = Annotated[bool, flag("context", "--context")]
Pairs = Annotated[int | None, flag("pairs")]
Updates = Annotated[float | None, flag("updates")]
MaxSeconds = Annotated[float | None, flag("max_seconds")]
Rounds = Annotated[int | None, flag("rounds")]
RandomState = Annotated[int, flag("random_state")]
Jobs = Annotated[int | None, flag("n_jobs", "--jobs", "-j")]
ReturnBias = Annotated[float, flag("p")]
LeavingBias = Annotated[float, flag("q")]
Engine = Annotated[str, flag("engine", metavar="auto|cpu|gpu|ray")]
Snapshot = Annotated[str, flag("snapshot", metavar="float32|float16|bfloat16")]
Workers = Annotated[int | None, flag("workers")]
Address = Annotated[str | None, flag("address")]
