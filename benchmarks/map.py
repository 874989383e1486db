"""A map of 100,000 nodes: what its parts take, how large the page is, and when a browser shows the first picture."""

import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.table import spread, table
from manela import Manela
from manela.analysis.groups import find_groups
from manela.data.embedding import Embedding
from manela.formats.datasets import planted_partition
from manela.maps.page import find_all_neighbours, write_map
from manela.maps.points import NEIGHBOURS, lay_out

NODES, COMMUNITIES = 100_000, 60
_RUNS = 5
_FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
_PAINTERS = {"webgl": ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"], "canvas": ["--disable-3d-apis"]}


def main() -> None:
    graph, communities = planted_partition(NODES, COMMUNITIES, 12, 3, 0)
    vectors = Manela(rounds=30).fit(graph)._kept.vectors
    nodes = np.array([f"person {row:06} of {group}" for row, group in enumerate(communities)], dtype=object)
    embedding, graph = Embedding(nodes, vectors), replace(graph, nodes=nodes)
    find_all_neighbours(vectors[:100], 5)  # compiles
    with tempfile.TemporaryDirectory() as folder, table(f"{NODES:,} nodes, m = {vectors.shape[1]}", "") as rows:
        for method in ("kmeans", "hdbscan"):
            seconds, found = _time(lambda method=method: find_groups(vectors, method=method))
            scores = f"silhouette {found.silhouette:.3f}, agreement {found.stability:.3f}"
            rows.row(f"groups by {method}, seconds", f"{seconds:.1f}: {found.count} groups, {scores}")
        seconds, near = _time(lambda: find_all_neighbours(vectors, NEIGHBOURS - 1))
        rows.row("neighbours by the index, seconds", f"{seconds:.1f}")
        for method in ("pca", "umap"):
            seconds, _ = _time(lambda method=method: lay_out(vectors, method, 0, near))
            rows.row(f"layout by {method}, seconds", f"{seconds:.1f}")
        path = Path(folder) / "map.html"
        seconds, _ = _time(lambda: write_map(embedding, path, edges=graph, method="pca"))
        rows.row("`write_map` with principal components and links, seconds", f"{seconds:.1f}")
        rows.row("the page, MB (at most 15, 8 wanted)", f"{path.stat().st_size / 1e6:.2f}")
        for painter in _PAINTERS:
            times = _open(path, painter)
            words = "first picture in Chromium, seconds (at most 3, 1 wanted)"
            rows.row(f"{words}, {painter}", "no Chromium" if times is None else spread(times, ".2f"))


def _open(path: Path, painter: str) -> list[float] | None:
    """Seconds until the first picture, of some openings, each in a browser of its own; no card is used."""
    browser_path = shutil.which("chromium")
    if browser_path is None:
        return None
    from playwright.sync_api import sync_playwright

    times = []
    with sync_playwright() as playwright:
        for _ in range(_RUNS):
            browser = playwright.chromium.launch(executable_path=browser_path, args=[*_FLAGS, *_PAINTERS[painter]])
            page = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True).new_page()
            page.goto(path.as_uri())
            shown = page.wait_for_selector("html[data-first-picture]", state="attached")
            times.append(float(shown.get_attribute("data-first-picture")) / 1000)
            assert shown.get_attribute("data-painter") == painter
            browser.close()
    return times


def _time(work) -> tuple:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result
