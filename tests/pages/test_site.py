"""The site that `make docs` has built, opened as files in a real browser without a network."""

import shutil
from pathlib import Path

import pytest

from accessible import find_barriers

SITE = Path(__file__).resolve().parents[2] / "build" / "docs"
BROWSER = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="needs chromium, as in Debian's package of that name"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="needs the site: make docs builds it"),
]


@pytest.fixture
def opened():
    """A function that opens a page of the site; nothing may be asked for elsewhere."""
    from playwright.sync_api import sync_playwright

    troubles = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)

        def open_page(name, width=1280, scheme="light"):
            page = browser.new_page(
                viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
            )
            page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on(
                "request",
                lambda asked: None if asked.url.startswith(("file:", "data:")) else troubles.append(asked.url),
            )
            page.goto((SITE / name).as_uri())
            return page

        yield open_page
        browser.close()
    assert troubles == []


def test_search_finds_a_word_without_a_server(opened):
    page = opened("index.html")
    page.get_by_role("textbox", name="Search").click()
    page.keyboard.type("smoothing")
    page.wait_for_selector(".md-search-result__item")
    assert "matching documents" in page.locator(".md-search-result__meta").inner_text()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_everybody_can_use_the_home_page(opened, width, scheme):
    page = opened("index.html", width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert find_barriers(page) == []


def test_notebooks_are_shown_with_what_they_printed_and_can_be_taken_along(opened):
    page = opened("gallery/communities.html")
    assert "agreement with the communities: 1.000 of 1" in page.locator("article").inner_text()
    assert page.locator("article img").evaluate("one => one.naturalWidth") > 300
    assert (SITE / "gallery" / "communities.ipynb").exists()
    assert page.get_by_role("link", name="This page as a notebook").get_attribute("href") == "communities.ipynb"
