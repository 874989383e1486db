"""Commands whose help lists flags in panels, in plain text, so that it is the same in a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

Function = TypeVar("Function", bound=Callable[..., Any])

PANELS = {
    "Input": (
        "labels", "edges", "directed", "unweighted", "duplicates", "columns", "matfile_variable", "size_limit",
    ),
    "Output": ("output", "page", "json", "plot", "count", "title", "as_json", "dry_run", "quiet", "state"),
    "Learning": (
        "paper", "thorough", "dimensions", "ratios", "context", "exchange", "pairs", "rounds", "max_seconds", "method",
        "weighted",
    ),
    "Running": (
        "random_state", "n_jobs", "jobs", "engine", "workers", "address", "checkpoint", "checkpoint_every", "resume",
        "hosts", "by", "folder", "lock_step", "trace", "home", "listen", "watch", "share", "nodes", "runs", "shuffles",
    ),
    "Advanced": (
        "window", "negatives", "learning_rate", "negative_source", "frequency", "start", "views", "smooth", "updates",
        "patience", "p", "q", "float32", "noise",
    ),
}  # fmt: skip
"""The flags of each panel, by the names of their arguments; other flags come last."""
_FEW = 6
"""Flags up to which a command has no panels; if larger, longer lists of flags are shown in one piece."""


class Command(TyperCommand):
    """A command whose help lists arguments, then the flags of each panel."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and flags to the help."""
        rows: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Arguments", *PANELS, "Options")}
        parameters = self.get_params(ctx)
        flags = [parameter for parameter in parameters if parameter.param_type_name == "option"]
        panels = {name: title for title, names in PANELS.items() for name in names if len(flags) > _FEW}
        for parameter in parameters:
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_flag = parameter.param_type_name == "option"
                rows[panels.get(parameter.name, "Options") if is_flag else "Arguments"].append(record)
        for title, records in rows.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Commands(typer.Typer):
    """A group of commands; without one of them it prints its help."""

    def __init__(self, summary: str, **options: Any) -> None:
        super().__init__(help=summary, no_args_is_help=True, rich_markup_mode=None, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Function], Function]:
        """Register a command whose help has panels."""
        return super().command(name, cls=Command, **options)
