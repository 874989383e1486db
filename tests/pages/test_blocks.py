"""Blocks of code in the README and in docs/, run as they are written, each by itself; `make docs` runs them.

A block stands in a folder with friends.csv, the network of a hundred people, and what else a page says that it begins
with. One that goes on from another names what runs both, as in <!-- run by tests/e2e/test_hosts_page.py -->. A block of
text behind one of Python is what it prints.
"""

import contextlib
import fcntl
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest
from stage import set_up

from manela.errors import ManelaWarning
from manela.formats.datasets import stochastic_block_model

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"(?:<!-- run by (?P<runner>[^>]+) -->\n+)?^```(?P<language>python|sh)\n(?P<code>.*?)^```$"
    r"(?:\n\n```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A block of code on a page."""

    name: str
    language: str
    code: str
    printed: str | None
    runner: str | None


def find_blocks():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in FENCE.finditer(text):
            line = text[: found.start("code")].count("\n")
            yield Block(f"{page.name}:{line}", found["language"], found["code"], found["printed"], found["runner"])


BLOCKS = list(find_blocks())


@pytest.fixture
def folder():
    """A folder with a network of a hundred people, of whom three are alice, bob and carol."""
    path = Path(tempfile.mkdtemp(prefix="page"))  # short, as the path of a socket of GnuPG must be
    yield fill(path)
    shutil.rmtree(path, ignore_errors=True)


def fill(tmp_path):
    graph, communities = stochastic_block_model(100, 3, 0.3, 0.02, 1)
    names = ["alice", "bob", "carol", *(f"p{number}" for number in range(97))]
    sources = [row for row in range(100) for other in graph.neighbours(row).tolist() if row < other]
    targets = [other for row in range(100) for other in graph.neighbours(row).tolist() if row < other]
    lines = [f"{names[one]},{names[other]}" for one, other in zip(sources, targets, strict=True)]
    (tmp_path / "friends.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "labels.csv").write_text("".join(f"{name},c{communities[row]}\n" for row, name in enumerate(names)))
    return tmp_path


def name_of(block):
    return block.name


@contextlib.contextmanager
def shared_resources(block):
    """Hold the ports that the pages name, and Ray, while a block uses one: no other process does at the same time."""
    with (Path(tempfile.gettempdir()) / "manela-shared-by-pages").open("w") as file:
        if re.search(r"agent run|manela serve|://localhost:|\bray\b", block.code):
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        yield


def test_all_code_on_the_pages_is_run():
    """By the tests below, or by what a comment names, which must mention the page or the commands."""
    assert len(BLOCKS) > 40
    for block in BLOCKS:
        if block.runner is not None:
            text = (ROOT / block.runner).read_text(encoding="utf-8")
            commands = [line.split("#")[0].strip() for line in block.code.splitlines()]
            assert block.name.split(":")[0] in text or all(command in text for command in commands), block.name
    languages = {word for page in PAGES for word in re.findall(r"^```(\S+)$", page.read_text("utf-8"), re.MULTILINE)}
    assert languages == {"python", "sh", "text", "yaml"}  # text is what is printed, or lists that are no program


@pytest.mark.parametrize(
    "block", [one for one in BLOCKS if one.language == "python" and one.runner is None], ids=name_of
)
def test_python_runs_as_it_is_written(block, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    printed = io.StringIO()
    with (
        shared_resources(block),
        set_up(block.code, folder),
        contextlib.redirect_stdout(printed),
        warnings.catch_warnings(action="ignore", category=ManelaWarning),
    ):
        exec(compile(block.code, block.name, "exec"), {"__name__": "__main__"})
    if block.printed is not None:
        assert printed.getvalue().strip() == block.printed.strip()


SHELL = [one for one in BLOCKS if one.language == "sh"]


@pytest.mark.parametrize("block", [one for one in SHELL if one.runner is None], ids=name_of)
def test_a_shell_runs_it_as_it_is_written(block, folder):
    with shared_resources(block), set_up(block.code, folder) as variables:
        process = subprocess.Popen(
            ["bash", "-e", "-c", block.code], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            stdin=subprocess.DEVNULL, start_new_session=True, env={**os.environ, "PATH": PATH, **variables},
        )  # fmt: skip
        try:
            if UNTIL_STOPPED.search(block.code):
                printed = wait_and_stop(process)
                assert process.returncode in (0, -signal.SIGTERM, 128 + signal.SIGTERM), printed
            else:
                printed, _ = process.communicate(timeout=300)
                assert process.returncode == 0, printed
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
UNTIL_STOPPED = re.compile(r"^manela (agent run|serve)\b.*\n\Z", re.MULTILINE)
"""Code of which the last command goes on until it is stopped."""


def wait_and_stop(process):
    """Read until it listens, and end it; returns what it printed."""
    printed = []
    for line in process.stdout:
        printed.append(line)
        if '"event": "listening"' in line or "http://127.0.0.1" in line:
            os.killpg(process.pid, signal.SIGTERM)
            break
    printed.append(process.communicate(timeout=60)[0])
    return "".join(printed)


@pytest.mark.parametrize("block", [one for one in SHELL if "manela " in one.code], ids=name_of)
def test_every_command_on_a_page_is_one_with_all_its_flags(block):
    """The arguments are read as the command reads them, and nothing is done."""
    check_commands(re.sub(r"\\\n *", " ", block.code).splitlines())


def test_every_command_of_the_list_in_the_readme_is_one():
    lines = re.findall(r"^(manela [^…|\n]+)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) > 15
    check_commands(lines)


def check_commands(lines):
    for line in lines:
        reader = shlex.shlex(line, posix=True, punctuation_chars="&|;<>")
        reader.whitespace_split = True
        words = list(reader)
        while words:
            ends = [place for place, word in enumerate(words) if set(word) <= set("&|;<>")]
            command, words = (words[: ends[0]], words[ends[0] + 1 :]) if ends else (words, [])
            if command[:1] == ["manela"]:
                read_arguments(command[1:])


def read_arguments(words):
    """Raise an error of misuse unless the command takes these words."""
    import typer

    from manela.cli.main import app

    command, context = typer.main.get_command(app), None
    while hasattr(command, "commands"):
        if words[:1] in (["-h"], ["--help"], ["--version"]):
            return
        assert words[:1], command.name
        name, *words = words
        if name not in command.commands and "file" in command.commands:  # edges of a file
            name, words = "file", [name, *words]
        assert name in command.commands, f"no command is called {name}"
        command = command.commands[name]
    if words[:1] not in (["-h"], ["--help"]):
        command.make_context(command.name, list(words), parent=context)
