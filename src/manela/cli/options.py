"""Flags shared by several commands, including those from the table of parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter as Argument
from inspect import Signature, signature
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, get_type_hints

import typer

from manela.errors import Option, ParameterError
from manela.settings.parameters import PARAMETERS, PRESETS

GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH", help="A file (edge list, .mat, .npz, GraphML, …), a URL, - for stdin, or a data set."
    ),
]
Directed = Annotated[bool, typer.Option("--directed", help="Follow arcs as given, rather than both ways.")]
Columns = Annotated[
    str,
    typer.Option("--columns", metavar="A,B[,W]", help="Columns of an edge list: ends and weight, by name or number."),
]
Duplicates = Annotated[
    str,
    typer.Option(
        "--duplicates",
        metavar="sum|first|error",
        help="Repeated edges: add weights, keep the first, or stop with an error.",
    ),
]
Unweighted = Annotated[bool, typer.Option("--unweighted", help="Ignore weights and further columns.")]
SizeLimit = Annotated[
    float, typer.Option("--size-limit", metavar="GB", help="Largest download, piped input or unpacked file.")
]
MatfileVariable = Annotated[str, typer.Option(help="The variable of a .mat file that holds the matrix.")]

Paper = Annotated[bool, typer.Option("--paper", help="Use the settings of the paper; other flags override them.")]

Thorough = Annotated[bool, typer.Option("--thorough", help="Learn better vectors, with several times as many rounds.")]

Values = dict[str, Any]
"""Parameters by name."""

_NAMES: dict[str, tuple[str, ...]] = {"n_jobs": ("--jobs", "-j")}
"""Flags whose name differs from that of their parameter."""


class Flags:
    """Marks an argument of a command that is a dict of parameters, each with its own flag."""

    def __init__(self, *names: str) -> None:
        self.names = names


class Reading:
    """Marks an argument of a command that is a dict of the reading options of `load_graph`."""

    def __init__(self, directed: bool = False) -> None:
        self.flags = {name: hint for name, hint in READING.items() if directed or name != "directed"}


READING: dict[str, tuple[Any, Any]] = {
    "directed": (Directed, False),
    "unweighted": (Unweighted, False),
    "duplicates": (Duplicates, "sum"),
    "columns": (Columns, ""),
    "matfile_variable": (MatfileVariable, "network"),
    "size_limit": (SizeLimit, 16.0),
}
"""The flags for reading a network, with their defaults."""


def expand_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each argument of a command that is marked with `Flags` or `Reading` by its flags.

    The command receives their values as one dict for each such argument.
    """
    hints = get_type_hints(command, include_extras=True)
    arguments: list[Argument] = []
    groups: dict[str, tuple[str, ...]] = {}
    readings: dict[str, tuple[str, ...]] = {}
    for name, argument in signature(command).parameters.items():
        mark = next(
            (mark for mark in getattr(hints[name], "__metadata__", ()) if isinstance(mark, Flags | Reading)), None
        )
        if isinstance(mark, Flags):
            groups[name] = mark.names
            arguments += [_as_argument(parameter) for parameter in mark.names]
        elif isinstance(mark, Reading):
            readings[name] = tuple(mark.flags)
            arguments += [
                Argument(flag_name, Argument.KEYWORD_ONLY, default=default_value, annotation=hint)
                for flag_name, (hint, default_value) in mark.flags.items()
            ]
        else:
            arguments.append(argument.replace(annotation=hints[name], kind=Argument.KEYWORD_ONLY))

    @wraps(command)
    def run(invocation: typer.Context, **values: Any) -> None:
        preset = _find_preset(values, invocation)
        for name, parameters in groups.items():
            parsed = {parameter: _parse(parameter, values.pop(parameter)) for parameter in parameters}
            values[name] = parsed | {parameter: preset[parameter] for parameter in parameters if parameter in preset}
        for name, flags in readings.items():
            values[name] = {flag_name: values.pop(flag_name) for flag_name in flags}
            values[name]["columns"] = split_columns(values[name]["columns"])
        command(**values)

    arguments.insert(0, Argument("invocation", Argument.KEYWORD_ONLY, annotation=typer.Context))
    run.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    run.__annotations__ = {argument.name: argument.annotation for argument in arguments}
    return run


def _find_preset(values: Values, invocation: typer.Context) -> Values:
    """Return the parameters of a preset such as --paper, without those that the user set with a flag."""
    named = [name for name in PRESETS if values.get(name)]
    if len(named) > 1:
        raise ParameterError(f"at most one of {' and '.join('--' + name for name in named)} can be given")
    preset = PRESETS[named[0]] if named else {}
    sources = {name: invocation.get_parameter_source(name) for name in preset}
    return {name: value for name, value in preset.items() if getattr(sources[name], "name", "") != "COMMANDLINE"}


def as_flag(option: Option) -> str:
    """Return a parameter that a message names as a flag, with its value unless it is True or False.

    Examples
    --------
    >>> as_flag(Option("n_jobs")), as_flag(Option("duplicates", "first")), as_flag(Option("smooth", False))
    ('--jobs', '--duplicates first', '--no-smooth')
    """
    name = option.name.replace("_", "-")
    if option.value is False:
        return f"--no-{name}"
    flag_name = _NAMES.get(option.name, (f"--{name}",))[0]
    return flag_name if option.value in (None, True) else f"{flag_name} {quote(str(option.value))}"


def _as_argument(name: str) -> Argument:
    parameter = PARAMETERS[name]
    kind: Any = str if parameter.kind is tuple else parameter.kind
    hint: Any = kind | None if parameter.default is None else kind
    return Argument(name, Argument.KEYWORD_ONLY, default=default(name), annotation=Annotated[hint, flag(name)])


def flag(name: str) -> Any:
    """Return the option for a parameter, with its help."""
    parameter = PARAMETERS[name]
    names = _NAMES.get(name, ())
    if parameter.kind is bool:
        flag_name = name.replace("_", "-")
        names = (f"--{flag_name}/--no-{flag_name}",) if parameter.default else (f"--{flag_name}",)
    metavar = "R1,R2,…" if parameter.kind is tuple else "|".join(parameter.choices) or None
    return typer.Option(*names, help=parameter.help, metavar=metavar)


def default(name: str) -> Any:
    """Return the default of a parameter, as the command line shows it."""
    value = PARAMETERS[name].default
    return ",".join(f"{part:g}" for part in value) if isinstance(value, tuple) else value


def _parse(name: str, value: Any) -> Any:
    return parse_numbers(name, value) if PARAMETERS[name].kind is tuple and value is not None else value


def parse_numbers(name: str, text: str) -> tuple[float, ...]:
    """Parse numbers separated by commas, such as 0.7,0.3."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError.of(name, "must be numbers separated by commas", text) from None


RandomState = Annotated[int, flag("random_state")]
Jobs = Annotated[int | None, flag("n_jobs")]


HOME = Path("manela-host")
Home = Annotated[Path, typer.Option("--home", metavar="DIR", help="The host's folder.")]


def say_seconds(seconds: float) -> str:
    """Format a duration for people.

    Examples
    --------
    >>> say_seconds(7.4), say_seconds(200.0), say_seconds(90_000.0)
    ('7 s', '3 min', '25 h')
    """
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def split_columns(columns: str) -> list[str] | None:
    """Parse the value of --columns; return None if it is empty.

    Examples
    --------
    >>> split_columns("payer, payee"), split_columns("")
    (['payer', 'payee'], None)
    """
    return [name.strip() for name in columns.split(",")] if columns else None


def write_reading(reading: Values) -> list[str]:
    """Return the flags with which a network was read, quoted for a shell, without defaults.

    Examples
    --------
    >>> write_reading({"unweighted": True, "columns": ["payer", "to whom"], "duplicates": "sum"})
    ['--unweighted', "--columns 'payer,to whom'"]
    """
    flags = []
    for name, value in reading.items():
        shown = ",".join(value) if isinstance(value, list) else value
        if shown is True:
            flags.append(f"--{name.replace('_', '-')}")
        elif shown and shown != READING[name][1]:
            flags.append(f"--{name.replace('_', '-')} {quote(str(shown))}")
    return flags
