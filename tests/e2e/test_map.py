"""A map in a real browser without a network: what is drawn, found, hidden and saved, and that names do no harm."""

import io
import shutil
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from accessible import find_barriers
from manela.data.embedding import Embedding
from manela.maps.page import write_map

BROWSER = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
PAINTERS = {"webgl": ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"], "canvas": ["--disable-3d-apis"]}
STRANGE = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>"]
COLOURS = {"light": ["#2a6f97", "#c4570a", "#2e7d4f"], "dark": ["#6fb7e0", "#f59b4c", "#6cc48e"]}
"""Of the first three groups, as the page has them."""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium, as in Debian's package of that name")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """A map of 300 nodes in three groups of which some have strange names, with links."""
    rng = np.random.default_rng(0)
    planted = np.repeat(np.arange(3), [150, 90, 60])
    nodes = np.empty(300, dtype=object)
    nodes[:] = [f"person {row}" for row in range(298)] + STRANGE
    vectors = np.eye(3)[planted] + rng.normal(scale=0.08, size=(300, 3))
    path = tmp_path_factory.mktemp("map") / "map.html"
    labels = [["alpha", "beta", STRANGE[0]][group] for group in planted]
    edges = [(nodes[row], nodes[row + 1]) for row in range(299)]
    write_map(Embedding(nodes, vectors.astype(np.float32)), path, labels, edges, method="pca")
    return path


@pytest.fixture
def opened(page_file):
    """A function that opens the map and waits until all of it is there; nothing may go wrong or be asked for."""
    from playwright.sync_api import sync_playwright

    troubles = []
    with sync_playwright() as playwright:
        browsers = []

        def open_page(painter="webgl", width=1280, scheme="light"):
            browsers.append(playwright.chromium.launch(executable_path=BROWSER, args=[*FLAGS, *PAINTERS[painter]]))
            context = browsers[-1].new_context(
                viewport={"width": width, "height": 844}, color_scheme=scheme, offline=True, reduced_motion="reduce"
            )
            page = context.new_page()
            page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on("dialog", lambda dialog: troubles.append(dialog.message))
            page.on("request", lambda asked: None if asked.url == page_file.as_uri() else troubles.append(asked.url))
            page.goto(page_file.as_uri())
            page.wait_for_selector("html[data-first-picture][data-ready]", state="attached")
            assert page.locator("html").get_attribute("data-painter") == painter
            return page

        yield open_page
        for browser in browsers:
            browser.close()
    # the page's own icon is an empty data: address
    assert [trouble for trouble in troubles if trouble != "data:,"] == []


def count_colours(picture, scheme="light"):
    """How many pixels of a PNG have nearly the colour of each group."""
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), dtype=int)
    wanted = [[int(colour[place : place + 2], 16) for place in (1, 3, 5)] for colour in COLOURS[scheme]]
    return [int((np.abs(pixels - colour).max(axis=2) < 30).sum()) for colour in wanted]


def wait_for_pixels(page, holds, scheme="light"):
    """Take pictures until one is as wanted: a frame is drawn some time after what caused it."""
    for _ in range(100):
        counts = count_colours(page.locator("#stage").screenshot(), scheme)
        if holds(counts):
            return
    raise AssertionError(f"pixels of the groups' colours: {counts}")


@pytest.mark.parametrize("painter", ["webgl", "canvas"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_points_of_all_groups_are_drawn_in_their_colours(opened, painter, width, scheme):
    page = opened(painter, width, scheme)
    wait_for_pixels(page, lambda counts: min(counts) > 100, scheme)
    assert page.evaluate("performance.getEntriesByName('first-picture').length") == 1
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.locator("#link-words").inner_text() == "299"


@pytest.mark.parametrize("painter", ["webgl", "canvas"])
def test_a_group_is_hidden_and_shown_by_its_place_in_the_legend(opened, painter):
    page = opened(painter)
    beta = page.get_by_role("button", name="beta 90")
    beta.click()
    assert beta.get_attribute("aria-pressed") == "false"
    wait_for_pixels(page, lambda counts: counts[0] > 100 and counts[1] == 0)
    page.get_by_role("button", name="show only beta").click()
    wait_for_pixels(page, lambda counts: counts[0] == 0 and counts[1] > 100)
    page.get_by_role("button", name="Show all").click()
    wait_for_pixels(page, lambda counts: min(counts) > 100)


def test_search_finds_a_node_by_keyboard_and_flies_to_it(opened):
    page = opened()
    query = page.get_by_role("combobox", name="Find a node")
    query.fill("PERSON 29")
    options = page.get_by_role("option")
    assert options.first.inner_text().startswith("person 29\n")
    query.press("ArrowDown")
    query.press("ArrowDown")
    assert page.locator("[aria-selected=true]").inner_text().startswith("person 290")
    query.press("Enter")
    page.wait_for_selector("#stage[data-still=true]")
    assert page.locator("#matches").is_hidden()
    assert page.locator("#chosen .name").inner_text() == "person 290"
    assert page.locator("#near button").count() == 5
    # it is in the middle now; its neighbours lead on, and Escape lets it go
    page.locator("#stage").focus()
    page.keyboard.press("Enter")
    assert page.locator("#chosen .name").inner_text() == "person 290"
    near = page.locator("#near bdi").first.inner_text()
    page.locator("#near button").first.click()
    assert page.locator("#chosen .name").inner_text() == near
    page.locator("#stage").focus()
    page.keyboard.press("Escape")
    assert page.locator("#near").count() == 0
    query.fill("nobody")
    assert page.get_by_role("option").inner_text() == "No node has this name"


def test_the_pointer_shows_a_node_and_its_neighbours_and_names_are_words(opened, page_file):
    page = opened()
    query = page.get_by_role("combobox", name="Find a node")
    query.fill("<img")
    query.press("Enter")
    page.wait_for_selector("#stage[data-still=true]")
    assert page.locator("#chosen").inner_text().startswith(f"{STRANGE[0]}, {STRANGE[0]}")
    box = page.locator("#stage").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    assert page.locator("#tip strong").inner_text() == STRANGE[0]
    assert page.locator("#tip .near").count() == 5
    assert page.locator("img").count() == 0
    # wheel and drag move the map from under the pointer
    page.mouse.move(middle[0] + 5, middle[1])
    page.mouse.down()
    page.mouse.move(middle[0] + 300, middle[1] + 200, steps=4)
    page.mouse.up()
    page.mouse.move(*middle)
    assert page.locator("#tip strong").all_inner_texts() != [STRANGE[0]] or page.locator("#tip").is_hidden()


@pytest.mark.parametrize("painter", ["webgl", "canvas"])
def test_pictures_are_saved(opened, painter):
    page = opened(painter)
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG").click()
    assert download.value.suggested_filename == "map.png"
    assert min(count_colours(download.value.path().read_bytes())) > 100
    with page.expect_download() as download:
        page.get_by_role("button", name="SVG").click()
    assert download.value.suggested_filename == "map.svg"
    root = ElementTree.fromstring(download.value.path().read_text(encoding="utf-8"))
    space = "{http://www.w3.org/2000/svg}"
    groups = root.findall(f"{space}g/{space}path")
    assert [path.get("stroke") for path in groups] == COLOURS["light"]
    assert [path.get("d").count("M") for path in groups] == [150, 90, 60]
    assert [text.text for text in root.iter(f"{space}text")] == ["alpha", "beta", STRANGE[0]]
    assert not list(root.iter(f"{space}script"))


def test_dark_colours_follow_the_system_and_the_button(opened):
    page = opened(scheme="dark")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.get_by_role("button", name="Light colours").click()
    assert page.locator("html").get_attribute("data-theme") == "light"
    wait_for_pixels(page, lambda counts: min(counts) > 100)
    page.get_by_role("button", name="Dark colours").click()
    wait_for_pixels(page, lambda counts: min(counts) > 100, "dark")
    # a page hears of the system's colours with a frame: two changes before it would be none, so each is waited for
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        wait_for_pixels(page, lambda counts: min(counts) > 100, scheme)


def test_all_controls_have_names_and_can_be_reached_by_keyboard(opened):
    page = opened(width=390)
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("main").count() == page.locator("h1").count() == 1
    for control in page.locator("button, input").all():
        words = control.get_attribute("aria-label") or control.inner_text()
        assert words or page.locator(f"label[for={control.get_attribute('id')}]").count() == 1
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"theme", "stage", "closer", "farther", "whole", "query", "all", "links", "save-png", "group"} <= reached
    assert find_barriers(page) == []
