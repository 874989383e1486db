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
        finish(build(**values), **rest)

    arguments = [argument.replace(kind=Argument.KEYWORD_ONLY) for argument in (*flags.values(), *ending.values())]
    command.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    command.__annotations__ = {argument.name: argument.annotation for argument in arguments}
    return command


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
