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


def summaries(command, words):
    """Yield the words of each group of commands, with its help in a terminal of 80 columns."""
    if hasattr(command, "commands"):
        with command.make_context(words[-1], [], resilient_parsing=True, terminal_width=80) as context:
            yield " ".join(words), command.get_help(context)
        for name, inner in command.commands.items():
            yield from summaries(inner, [*words, name])


def test_no_summary_of_a_command_is_cut_at_80_columns():
    for words, text in summaries(typer.main.get_command(app), ["manela"]):
        shown = text.partition("Commands:")[2]
        assert shown, words
        assert "..." not in shown, (words, shown)
        assert max(map(len, text.splitlines())) <= 80


def test_each_flag_of_a_long_help_is_in_a_panel(manela_here):
    for command in (["embed"], ["info"], ["federate"], ["agent", "init"], ["evaluate", "links"]):
        shown = manela_here(*command, "--help").stdout
        left = shown.partition("\nOptions:\n")[2]
        assert [line.split()[0] for line in left.splitlines() if line.startswith("  -")] == ["-h,"]
        titles = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
        assert {"Learning:", "Running:", "Advanced:"} <= set(titles)


def test_the_page_of_the_command_line_names_every_command():
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    agent = typer.main.get_command(app).commands["agent"]
    for name, command in agent.commands.items():
        for words in [f"{name} {inner}" for inner in getattr(command, "commands", [])] or [name]:
            assert f"`{words}" in page, words
    for name in typer.main.get_command(app).commands:
        assert f"manela {name}" in page, name


def test_commands_and_flags_are_those_that_are_known():
    lines = sorted(describe(typer.main.get_command(app), ["manela"]))
    assert lines == KNOWN.read_text(encoding="utf-8").splitlines()
