"""manela import: edges from where a network lives, as a file."""

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
    """Give a group of commands one for each source: it makes the source of its flags, and hands it to `finish`.

    The flags of a command are those of the source, and those of `finish` behind its first argument.
    """
    for name, build in {**MAIL_BUILDERS, **BUILDERS}.items():
        group.command(name)(_join(build, finish))


def _join(build: Builder, finish: Callable[..., None]) -> Callable[..., None]:
    flags, ending = _arguments(build), _arguments(finish)
    del ending[next(iter(ending))]

    @wraps(build)
    def command(**values: Any) -> None:
        rest = {name: values.pop(name) for name in ending}
        _keep_apart(values, rest)
        finish(build(**values), **rest)

    arguments = [argument.replace(kind=Argument.KEYWORD_ONLY) for argument in (*flags.values(), *ending.values())]
    command.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    command.__annotations__ = {argument.name: argument.annotation for argument in arguments}
    return command


def _keep_apart(read: dict[str, Any], written: dict[str, Any]) -> None:
    """Refuse to write to what is read, and two things to one file."""
    taken = [path for value in read.values() for path in (value if isinstance(value, list) else [value])]
    for path in (path for path in written.values() if isinstance(path, Path)):
        for other in taken:
            if isinstance(other, Path) and other.exists() and path.exists() and path.samefile(other):
                raise ParameterError(f"{path}: is read by this import, and would be overwritten; name another file.")
            if isinstance(other, Path) and path.absolute() == other.absolute():
                raise ParameterError(f"{path}: is named twice; name another file.")
        taken.append(path)


def _arguments(function: Callable[..., Any]) -> dict[str, Argument]:
    hints = get_type_hints(function, {**function.__globals__, "Source": Any}, include_extras=True)
    return {name: argument.replace(annotation=hints[name]) for name, argument in signature(function).parameters.items()}


def write_file(
    source: Source,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the edges go, as CSV; - for stdout.")
    ],
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="Keep here how far the source was read; the next import reads only what is new.",
        ),
    ] = None,
) -> None:
    """Write the edges of a source to a file."""
    import sys

    from manela.files import check_writable
    from manela.sources.writing import STDOUT, import_to_file

    if output != STDOUT:
        check_writable(output)
    written = import_to_file(source, output, state)
    print(f"{output}: {written:,} edges; {source.describe()}", file=sys.stderr)


add_sources(imports, write_file)
