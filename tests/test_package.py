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
    "ProNE", "RelationalNeighbors", "__version__", "load_graph", "planted_partition", "read_embedding", "read_graph",
    "stochastic_block_model",
}  # fmt: skip
PUBLIC_IN_ROOMS = {
    "analysis": {
        "classify", "find_groups", "find_odd_edges", "hide_edges", "measure_separation", "rank_links", "recommend",
        "sample_nodes", "score_vectors",
    },
    "maps": {"write_map"},
    "sources": {"SqlSource", "gather_graph"},
}  # fmt: skip
"""A name that goes is deprecated for a minor version first: see CONTRIBUTING.md."""


def test_public_names_are_these_and_no_others():
    assert set(manela.__all__) == PUBLIC
    assert set(dir(manela)) == PUBLIC
    for room, names in PUBLIC_IN_ROOMS.items():
        module = importlib.import_module(f"manela.{room}")
        assert set(module.__all__) == set(dir(module)) == names
        assert all(getattr(module, name) is not None for name in names)


def test_the_reference_has_all_public_names_and_guides_import_no_others():
    in_rooms = {f"{room}.{name}" for room, names in PUBLIC_IN_ROOMS.items() for name in names}
    public = PUBLIC - {"__version__"} | in_rooms
    listed = re.findall(r"^::: manela\.(\S+)$", (ROOT / "docs" / "reference-python.md").read_text("utf-8"), re.M)
    assert sorted(listed) == sorted(public)
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "gallery").glob("*.py"), ROOT / "README.md"]
    imports = [re.findall(r"^from manela(?:\.(\S+))? import (.+)$", page.read_text("utf-8"), re.M) for page in pages]
    used = {f"{room}.{name}".lstrip(".") for found in imports for room, names in found for name in names.split(", ")}
    assert used <= public


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
