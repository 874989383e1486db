"""The report, made by the command from small experiments, in a real browser."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from accessible import find_barriers
from manela.reproduction.paper import MICRO_F1

BROWSER = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

SMALL = """
import sys
from dataclasses import replace
from manela.reproduction import laboratory as plan
plan.QUICK = replace(
    plan.QUICK, networks=("ppi",), train_ratios=(0.5,), shuffles=1, pairs_per_node=200, search_pairs_per_node=200,
    sweep=(0.0, 1.0), tuned_seeds=2,
)
from functools import partial
from manela.reproduction.report import pictures, tables
sample = tables.sample_nodes
tables.sample_nodes = lambda hidden, nodes, seed: sample(hidden, min(nodes or 200, 100), seed)
pictures.stochastic_block_model = partial(pictures.stochastic_block_model, nodes=150)
from manela.analysis import tuning
kept = tuning.candidates()[:2]
tuning.candidates = lambda: list(kept)
from manela.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture
def report(folder, real):
    real("ppi")
    if not (folder / "report.html").exists():
        done = reproduce(folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == str(folder / "report.html")
    return folder / "report.html"


def reproduce(folder, *more):
    command = [sys.executable, "-c", SMALL, "reproduce", "--quick", "-o", str(folder), *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_everything_is_written(report):
    names = {path.name for path in report.parent.iterdir()}
    figures = ("classification", "links", "visualisation", "relationship", "sweep")
    assert names == {
        "report.html", "results.json", "results.jsonl",
        *(f"{f}.{kind}" for f in (*figures, "links-all") for kind in ("png", "svg")),
    }  # fmt: skip
    results = json.loads((report.parent / "results.json").read_text())["results"]
    assert set(results) == {*figures, "tuned"}
    for line in (report.parent / "results.jsonl").read_text().splitlines():
        assert set(json.loads(line)) == {"part", "about", "result", "seconds", "version", "machine"}


def test_numbers_of_the_page_are_those_of_the_results(report):
    results = json.loads((report.parent / "results.json").read_text())["results"]
    row = next(one for one in results["classification"]["ppi"]["manela"]["rows"] if one["train_ratio"] == 0.5)
    text = report.read_text()
    assert f">{row['micro'][0]:.3f}<" in text
    counted = next(
        one for one in results["classification"]["ppi"]["relational-neighbors"]["rows"] if one["train_ratio"] == 0.5
    )
    assert f">{counted['micro'][0] - MICRO_F1['relational-neighbors']['ppi']:+.3f}<" in text


def test_single_values_have_no_deviation_and_one_run_is_one(report):
    text = report.read_text()
    assert "± 0.000" not in text
    assert "PPI, 1 run (" in text


def test_the_summary_comes_first_and_compares_only_what_got_the_papers_work(report):
    summary = report.read_text().split('id="summary"')[1].split("</section>")[0]
    # Relational Neighbors on PPI is all that this budget can compare
    assert "0 of the 1 values that could be compared are" in " ".join(summary.split())
    assert "1 higher, most Relational Neighbors, PPI (+" in summary
    assert "too little work to say which is best" in summary


def test_a_finished_run_does_nothing_again(report):
    before = (report.parent / "results.jsonl").read_bytes()
    page = report.read_text()
    report.unlink()
    done = reproduce(report.parent, "--only", "links,sweep")
    assert done.returncode == 0
    assert (report.parent / "results.jsonl").read_bytes() == before
    # what is there already stays in the page
    assert report.read_text() == page


def test_the_page_needs_no_network(report):
    text = report.read_text()
    names = re.findall(r'https?://[^"\s)]+', text)
    assert set(names) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink", *filter(is_name, names)}


def is_name(address):
    """Names of vocabularies in SVG metadata, which nothing fetches."""
    return address.startswith(
        ("http://www.w3.org/", "http://purl.org/", "http://creativecommons.org/", "https://matplotlib.org")
    )


@pytest.mark.skipif(BROWSER is None, reason="needs chromium, as in Debian's package of that name")
def test_a_browser_shows_it_without_errors_and_without_scrolling_sideways(report):
    from playwright.sync_api import sync_playwright

    errors = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        for width, scheme in ((1280, "light"), (390, "dark")):
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("requestfailed", lambda request: errors.append(request.url))
            page.goto(report.as_uri())
            boxes = [figure.bounding_box() for figure in page.locator("figure svg").all()]
            assert len(boxes) == 6
            assert all(box["width"] > 0.5 * min(width, 500) and box["height"] > 50 for box in boxes)
            assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
            tables = "[...document.querySelectorAll('.wide')].map(one => one.scrollWidth - one.clientWidth)"
            assert max(page.evaluate(tables)) <= 0
            ink, paper = (
                sum(map(int, re.findall(r"\d+", page.evaluate(f"getComputedStyle(document.body).{name}"))[:3]))
                for name in ("color", "backgroundColor")
            )
            assert (paper > ink) == (scheme == "light")
            assert find_barriers(page) == []
            page.close()
        browser.close()
    assert errors == []


def test_only_what_is_there_can_be_asked_for(tmp_path):
    done = reproduce(tmp_path / "new", "--only", "links,magic")
    assert done.returncode == 2
    assert "--only must be some of classification" in done.stderr
    assert "'magic'" in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    done = reproduce(tmp_path / "file")
    assert done.returncode == 2
    assert "cannot be created" in done.stderr
