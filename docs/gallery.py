"""The gallery: notebooks that are written as Python, run when the site is built, and shown with what they printed."""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

LONGEST = 300
"""Seconds that a cell may take."""


def run_notebook(path: Path) -> Any:
    """Run a notebook of cells between `# %%`, in a folder of its own; an error in a cell is an error here."""
    import jupytext
    import nbclient

    notebook = jupytext.read(path, fmt="py:percent")
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for place, cell in enumerate(notebook.cells):
        cell.id = f"cell-{place}"  # the same for each build
    # the command that notebooks start is that of this environment
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(
            notebook, timeout=LONGEST, extra_arguments=["--log-level=40"], resources={"metadata": {"path": folder}}
        ).execute()
    return notebook


def as_page(notebook: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """The notebook as Markdown, and its pictures by the name of the file."""
    parts = ["---\nhide: [toc]\n---"]  # without headings there are no contents to show, and code gets their room
    pictures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                picture = f"{name}-{len(pictures) + 1}.png"
                pictures[picture] = base64.b64decode(data["image/png"])
                parts.append(f"![What the lines above draw]({picture})")
            else:
                text = (output.get("text") or data.get("text/plain", "")).rstrip()
                parts += [f"```text\n{text}\n```"] if text else []
    parts.append(f"[This page as a notebook]({name}.ipynb){{ download }}")
    return "\n\n".join(parts) + "\n", pictures
