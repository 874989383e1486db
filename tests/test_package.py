"""What is published: names, metadata, and links that lead somewhere."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

import manela

ROOT = Path(__file__).parents[1]
PUBLIC = {
    "Checkpoint", "DeepWalk", "Embedding", "Graph", "Manela", "ManelaError", "ManelaWarning", "NetMF", "Node2Vec",
    "ProNE", "RelationalNeighbors", "__version__", "read_graph",
}  # fmt: skip
"""A name that goes is deprecated for a minor version first: see CONTRIBUTING.md."""


def test_public_names_are_these_and_no_others():
    assert set(manela.__all__) == PUBLIC
    assert set(dir(manela)) == PUBLIC


def test_the_reference_has_all_public_names_and_what_the_guides_import():
    listed = set(re.findall(r"^::: manela\.(\S+)$", (ROOT / "docs" / "reference-python.md").read_text("utf-8"), re.M))
    assert {name for name in listed if "." not in name} == PUBLIC - {"__version__"}
    for name in listed - PUBLIC:
        module, _, function = name.rpartition(".")
        assert hasattr(importlib.import_module(f"manela.{module}"), function)
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "gallery").glob("*.py"), ROOT / "README.md"]
    imports = [re.findall(r"^from manela\.(\S+) import (.+)$", page.read_text("utf-8"), re.M) for page in pages]
    used = {f"{module}.{name}" for found in imports for module, names in found for name in names.split(", ")}
    assert used <= listed


@pytest.mark.parametrize("page", ["README.md", "SECURITY.md"])
def test_links_lead_to_files_that_are_there(page):
    base = r"https://(?:github\.com/manela/manela/blob/main|raw\.githubusercontent\.com/manela/manela/main)/"
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / page).read_text(encoding="utf-8"))
    assert links
    for link in links:
        local = re.sub(f"^{base}", "", link)
        if not local.startswith("http"):
            assert (ROOT / local).exists(), link


def test_links_of_the_readme_are_absolute_as_the_package_index_needs_them():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith(("http", "#"))] == []


def test_extras_name_what_tests_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    everything = set(re.search(r"manela\[([^\]]+)\]", project["optional-dependencies"]["dev"][0])[1].split(","))
    assert everything == set(project["optional-dependencies"]) - {"dev", "bench"}


def test_the_citation_is_of_the_version_that_is_made():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)[1]
    assert manela.__version__.startswith(cited)
