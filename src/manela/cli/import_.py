"""manela import: writes the edges of a source to a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter as Argument
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from manela.cli.mail_sources import MAIL_BUILDERS
from manela.cli.sources import BUILDERS
from manela.errors import ParameterError

if TYPE_CHECKING:
    from manela.sources.source import Source

Builder = Callable[..., "Source"]

imports = typer.Typer(help="Import edges from where a network lives: mail, the fediverse, key rings, databases.")


def add_sources(group: typer.Typer, finish: Callable[..., None]) -> None:
    """Add a command for each source to a group; it builds the source from its flags, and passes it to `finish`.

    The flags of a command are those of the source and those of `finish`, except for its first argument.
    """
    for name, build in {**MAIL_BUILDERS, **BUILDERS}.items():
        group.command(name)(_make_command(build, finish))


def _make_command(build: Builder, finish: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the flags of two functions: one builds a source, the other uses it."""
    flags, finish_flags = _arguments(build), _arguments(finish)
    del finish_flags[next(iter(finish_flags))]

    @wraps(build)
    def command(**values: Any) -> None:
        finish_values = {name: values.pop(name) for name in finish_flags}
        _check_paths(values, finish_values)
        finish(build(**values), **finish_values)

    arguments = [argument.replace(kind=Argument.KEYWORD_ONLY) for argument in (*flags.values(), *finish_flags.values())]
    command.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    command.__annotations__ = {argument.name: argument.annotation for argument in arguments}
    return command


def _check_paths(inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
    """Refuse to overwrite an input, or to write two outputs to one file."""
    used = [path for value in inputs.values() for path in (value if isinstance(value, list) else [value])]
    for path in (path for path in outputs.values() if isinstance(path, Path)):
        for used_path in used:
            if isinstance(used_path, Path) and used_path.exists() and path.exists() and path.samefile(used_path):
                raise ParameterError(f"{path}: is read by this import, and would be overwritten; name another file.")
            if isinstance(used_path, Path) and path.absolute() == used_path.absolute():
                raise ParameterError(f"{path}: is named twice; name another file.")
        used.append(path)


def _arguments(function: Callable[..., Any]) -> dict[str, Argument]:
    """Return the arguments of a function, with their annotations resolved."""
    hints = get_type_hints(function, {**function.__globals__, "Source": Any}, include_extras=True)
    return {name: argument.replace(annotation=hints[name]) for name, argument in signature(function).parameters.items()}


def write_file(
    source: Source,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="CSV file for the edges; - for stdout.")
    ],
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="File for the position in the source, so that the next import reads only what is new.",
        ),
    ] = None,
) -> None:
    """Write the edges of a source to a file."""
    import sys

    from manela.sources.writing import STDOUT, import_to_file
    from manela.system.files import check_writable

    if output != STDOUT:
        check_writable(output)
    written = import_to_file(source, output, state)
    print(f"{output}: {written:,} edges; {source.describe()}", file=sys.stderr)


add_sources(imports, write_file)
