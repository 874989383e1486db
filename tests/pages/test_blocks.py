"""Blocks of code in the README and in docs/, run as they are written, each by itself; `make docs` runs them.

A block stands in a folder with friends.csv, the network of a hundred people, and what else a page says that it begins
with. One that cannot be run here says why in a comment before it, as in <!-- not run: it needs a Mastodon server -->.
A block of text behind one of Python is what it prints.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

from manela.datasets.generators import stochastic_block_model
from manela.errors import ManelaWarning

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]+) -->\n+)?^```(?P<language>python|sh)\n(?P<code>.*?)^```$"
    r"(?:\n\n```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A block of code on a page."""

    name: str
    language: str
    code: str
    printed: str | None
    why: str | None


def find_blocks():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in FENCE.finditer(text):
            line = text[: found.start("code")].count("\n")
            yield Block(f"{page.name}:{line}", found["language"], found["code"], found["printed"], found["why"])


BLOCKS = list(find_blocks())


@pytest.fixture
def folder(tmp_path):
    """A folder with a network of a hundred people, of whom three are alice, bob and carol."""
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


def test_there_are_blocks_and_those_that_are_not_run_say_why():
    assert len(BLOCKS) > 40
    assert all(block.why is None or len(block.why) > 10 for block in BLOCKS)


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "python" and one.why is None], ids=name_of)
def test_python_runs_as_it_is_written(block, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    prepare(block, folder)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(action="ignore", category=ManelaWarning):
        exec(compile(block.code, block.name, "exec"), {"__name__": "__main__"})
    if block.printed is not None:
        assert printed.getvalue().strip() == block.printed.strip()


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "sh" and one.why is None], ids=name_of)
def test_a_shell_runs_it_as_it_is_written(block, folder):
    prepare(block, folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", block.code], cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def prepare(block, folder):
    """What a page says that there is before its blocks: vectors of friends.csv, a ledger."""
    from manela import Manela

    if re.search(r"vectors\.npz", block.code) and "-o vectors.npz" not in block.code and "save(" not in block.code:
        Manela(dimensions=16, random_state=0).fit(folder / "friends.csv").save(folder / "vectors.npz")
    if "ledger.db" in block.code:
        import sqlite3

        database = sqlite3.connect(folder / "ledger.db")
        database.execute("CREATE TABLE transfers (payer TEXT, payee TEXT, amount REAL)")
        database.executemany("INSERT INTO transfers VALUES (?, ?, 1)", [(f"a{n % 9}", f"b{n % 7}") for n in range(60)])
        database.commit()
        database.close()
