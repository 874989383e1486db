"""The commands and flags that users rely on; one that goes is deprecated first, as CONTRIBUTING.md says."""

from pathlib import Path

import typer

from manela.cli.main import app

KNOWN = Path(__file__).with_name("flags.txt")
"""A line for each command: its words, then its arguments and flags. A new one is added to the file."""


def describe(command, words):
    """Yield a line for a command and for each command below it."""
    below = getattr(command, "commands", {})
    names = [max(parameter.opts, key=len) for parameter in command.params if not parameter.hidden]
    yield " ".join([*words, *names])
    for name, inner in below.items():
        yield from describe(inner, [*words, name])


def test_commands_and_flags_are_those_that_are_known():
    lines = sorted(describe(typer.main.get_command(app), ["manela"]))
    assert lines == KNOWN.read_text(encoding="utf-8").splitlines()
