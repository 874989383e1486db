"""Real daemons and a real file, asked by a real browser."""

import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy as np
import pytest

from manela.data.embedding import Embedding
from manela.formats.datasets import stochastic_block_model
from manela.formats.embeddings import check_output
from manela.hosts.folder.config import FILE
from manela.hosts.folder.home import read_status
from manela.hosts.folder.store import Store
from manela.hosts.state.neighbourhood import Edge

BROWSER = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
STRANGE = "<img src=x onerror=alert(1)>"
PATIENCE = 300.0


def wait_until(condition, process=None):
    until = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert process is None or process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def ask(url, path, **query):
    with urllib.request.urlopen(f"{url}{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
        return json.loads(answer.read())


def find_free_addresses(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Two daemons with half of a network each, that have learned together; only the first is watched."""
    folder, run = tmp_path_factory.mktemp("hosts"), [sys.executable, "-m", "manela", "agent"]
    graph, communities = stochastic_block_model(120, 3, 0.3, 0.01, 1)
    place = ["alpha" if number % 2 else "beta" for number in range(120)]
    addresses = dict(zip(("alpha", "beta"), find_free_addresses(2), strict=True))
    for name, address in addresses.items():
        watch = ["--watch", "127.0.0.1:0"] if name == "alpha" else []
        command = [*run, "init", name, "--home", str(folder / name), "--listen", address, "--dimensions", "16", *watch]
        subprocess.run(command, check=True, capture_output=True)
        with Store(folder / name) as store:
            ends = [
                (row, other)
                for row in range(120)
                for other in graph.indices[graph.indptr[row] : graph.indptr[row + 1]].tolist()
                if place[row] == name
            ]
            store.add_edges([Edge(f"n{row}", (f"n{other}", place[other])) for row, other in ends])
            if name == "alpha":
                store.add_edges([Edge(STRANGE, ("n1", "alpha"))])
        text = (folder / name / FILE).read_text().replace("# rounds = 100", "rounds = 20")
        (folder / name / FILE).write_text(text)
    for name, other in (("alpha", "beta"), ("beta", "alpha")):
        command = [*run, "peer", "add", other, addresses[other], str(folder / other / "certificate.pem")]
        subprocess.run([*command, "--home", str(folder / name)], capture_output=True, check=True)
    with contextlib.ExitStack() as stack:
        for name in addresses:
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            command = [*run, "run", "--home", str(folder / name), "--while-stdin"]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
            stack.callback(process.wait, 30)
            stack.callback(process.kill)
            stack.callback(process.stdin.close)
        wait_until(lambda: all(read_status(folder / name).get("state") == "done" for name in addresses))
        yield folder / "alpha", communities


@pytest.fixture
def url(hosts, manela):
    home, _ = hosts
    done = manela("agent", "serve", "--home", home)
    assert done.returncode == 0, done.stderr
    found = re.search(r"http://127\.0\.0\.1:\d+/", done.stdout)[0]

    def answers():
        try:
            return ask(found, "api/names")
        except urllib.error.HTTPError:
            return None

    wait_until(answers)
    return found


def test_it_is_off_until_asked_for_and_ends_when_told(hosts, url, manela):
    home, _ = hosts
    assert manela("agent", "serve", "--off", "--home", home).returncode == 0

    def is_off():
        try:
            ask(url, "api/names")
        except urllib.error.HTTPError as error:
            return error.code == 404
        return False

    wait_until(is_off)
    with pytest.raises(urllib.error.HTTPError):
        ask(url, "answers")


def test_recommended_are_own_nodes_and_neighbours_that_the_host_may_see(hosts, url):
    home, communities = hosts
    with Store(home) as store:
        edges = list(store.edges())
    own = {edge.own for edge in edges}
    visible = {f"{edge.other[0]}@beta" for edge in edges if edge.other and edge.other[1] == "beta"}
    others = [edge.other for edge in edges if edge.own == "n3"]
    joined = {f"{name}@beta" if host == "beta" else name for name, host in others}
    found = {one["node"] for one in ask(url, "api/recommend", node="n3", count=1000)["recommended"]}
    assert found <= (own | visible) - joined - {"n3"}
    assert found & visible
    best = [one["node"] for one in ask(url, "api/recommend", node="n3", count=10)["recommended"]]
    numbers = [int(name.partition("@")[0][1:]) for name in best if name != STRANGE]
    assert np.mean(communities[numbers] == communities[3]) > 0.6
    with pytest.raises(urllib.error.HTTPError, match="404"):
        ask(url, "api/recommend", node=min(visible))


def test_it_is_for_this_machine_only(url):
    request = urllib.request.Request(f"{url}api/names", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="421"):
        urllib.request.urlopen(request, timeout=30)


@pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")
def test_an_operator_types_a_name_and_sees_who_is_near(url, tmp_path):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        troubles = []
        page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.set_default_timeout(PATIENCE * 1000)
        page.goto(f"{url}answers")
        page.get_by_label("Name of a node").fill("n1")
        page.get_by_role("button", name="Show").click()
        page.wait_for_selector("body[data-shown='n1']")
        near = page.locator("#near li")
        assert near.count() == 10
        assert page.locator("#recommended li").count() == 10
        page.locator("#group", has_text=re.compile("group [0-9]")).wait_for()
        page.locator("#other").fill("n3")
        page.get_by_role("button", name="Judge").click()
        page.locator("#verdict", has_text="joined").wait_for()
        page.screenshot(path=tmp_path / "answers.png", full_page=True)
        page.get_by_label("Name of a node").fill(STRANGE)
        page.get_by_role("button", name="Show").click()
        page.wait_for_selector("body[data-shown*=img]")
        assert page.locator("img").count() == 0
        assert troubles == []
        page.get_by_label("Name of a node").fill("nobody")
        page.get_by_role("button", name="Show").click()
        page.locator("#words", has_text="nobody").wait_for()
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        browser.close()


def test_a_file_of_vectors_is_served_without_a_daemon(tmp_path):
    graph, communities = stochastic_block_model(60, 2, 0.3, 0.01, 1)
    vectors = np.eye(4, dtype=np.float32)[communities] + 0.01 * np.arange(60, dtype=np.float32)[:, None]
    check_output(tmp_path / "vectors.npz").write(Embedding(graph.nodes, vectors))
    sources = np.repeat(np.arange(60), graph.degrees)
    lines = [f"{one},{other}\n" for one, other in zip(sources, graph.indices, strict=True) if one < other]
    (tmp_path / "edges.csv").write_text("".join(lines))
    command = [sys.executable, "-m", "manela", "serve", "vectors.npz", "--edges", "edges.csv"]
    command += ["--address", "127.0.0.1:0"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        url = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())[0]
        neighbours = set(map(str, graph.neighbours(0).tolist()))
        found = {one["node"] for one in ask(url, "api/recommend", node=0, count=60)["recommended"]}
        assert found == set(map(str, range(1, 60))) - neighbours
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert b"Who is near?" in answer.read()
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
    refused = subprocess.run([*command[:-1], "0.0.0.0:0"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "must be one of this machine" in refused.stderr
