"""What mkdocs builds besides the pages that are written by hand: the help of every command."""

from __future__ import annotations

from typing import Any

PAGE = "reference-commands.md"
MARK = "<!-- every command -->"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the help of every command where the page says."""
    return markdown.replace(MARK, describe_commands()) if page.file.src_uri == PAGE else markdown


def describe_commands() -> str:
    """The help of every command as the command shows it, under a heading each."""
    import typer

    from manela.cli.main import app

    command: Any = typer.main.get_command(app)
    return "\n\n".join(_describe(command, "manela", None))


def _describe(command: Any, path: str, parent: Any) -> list[str]:
    context = type(command).context_class(command, info_name=path.split()[-1], parent=parent)
    context.max_content_width = context.terminal_width = 100
    text = command.get_help(context)
    parts = [f"## {path}", f"```text\n{text}\n```"]
    for name, inner in getattr(command, "commands", {}).items():
        parts += _describe(inner, f"{path} {name}", context)
    return parts
