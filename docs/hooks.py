"""What mkdocs builds besides the pages written by hand: the help of commands, the gallery, the values of defaults."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))
from gallery import as_page, run_notebook

GALLERY = "gallery/"
PAGE = "reference-commands.md"
MARK = "<!-- every command -->"
STORIES = Path(__file__).parents[1] / "tests" / "hosts" / "transcripts"
STORY_MARK = "<!-- every story -->"


class RealDefaults(griffe.Extension):
    """Shows the defaults of parameters by their values, where the code takes them from the table of parameters."""

    def on_attribute_instance(self, *, attr: Any, **_: Any) -> None:
        """Replace `default('window')` with 10, and so on: parameters are fields, from which Griffe makes signatures."""
        from manela.settings.parameters import default

        if str(attr.value) == f"default({attr.name!r})":
            attr.value = repr(default(attr.name))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the help of every command, and every story of hosts, where a page says."""
    if page.file.src_uri == PAGE:
        return markdown.replace(MARK, describe_commands())
    return markdown.replace(STORY_MARK, tell_stories()) if STORY_MARK in markdown else markdown


def on_post_page(output: str, **_: Any) -> str:
    """Name the dialog of the search, which the theme leaves without a name."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)


def on_files(files: Any, config: Any) -> Any:
    """Run the notebooks, and put pages, pictures and notebooks in the place of their Python."""
    import nbformat
    from mkdocs.structure.files import File

    sources = [file for file in files if file.src_uri.startswith(GALLERY) and file.src_uri.endswith(".py")]
    with ThreadPoolExecutor(2) as threads:
        notebooks = list(threads.map(lambda file: run_notebook(Path(file.abs_src_path)), sources))
    for file, notebook in zip(sources, notebooks, strict=True):
        files.remove(file)
        name = Path(file.src_uri).stem
        page, pictures = as_page(notebook, name)
        made = {f"{name}.md": page, f"{name}.ipynb": nbformat.writes(notebook), **pictures}
        for path, content in made.items():
            files.append(File.generated(config, f"{GALLERY}{path}", content=content))
    return files


def tell_stories() -> str:
    """Every story under a heading, which is its name, with its first line as text."""
    parts = []
    for path in sorted(STORIES.glob("*.txt")):
        title, _, story = path.read_text(encoding="utf-8").partition("\n")
        heading = path.stem.replace("_", " ").capitalize()
        parts.append(f"## {heading}\n\n{title.lstrip('# ')}\n\n```text\n{story.strip()}\n```")
    return "\n\n".join(parts)


def describe_commands() -> str:
    """The help of every command as the command shows it, under a heading each."""
    import typer

    from manela.cli.main import app

    command: Any = typer.main.get_command(app)
    return "\n\n".join(_describe(command, "manela", None))


def _describe(command: Any, path: str, parent: Any) -> list[str]:
    context = type(command).context_class(command, info_name=path.split()[-1], parent=parent)
    context.max_content_width = context.terminal_width = 80
    text = command.get_help(context)
    parts = [f"## {path}", f"```text\n{text}\n```"]
    for name, inner in getattr(command, "commands", {}).items():
        parts += _describe(inner, f"{path} {name}", context)
    return parts
