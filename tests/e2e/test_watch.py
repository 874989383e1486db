"""A real daemon, watched: its page in a real browser, its metrics, and its end with somebody still connected."""

import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from accessible import find_barriers
from manela.hosts.folder.config import FILE
from manela.hosts.folder.home import read_status
from manela.hosts.folder.identity import make_identity, read_certificate
from manela.hosts.folder.store import Store
from manela.hosts.state.neighbourhood import Edge

BROWSER = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
STRANGE = "<img src=x onerror=alert(1)>"


def start(home):
    with (home / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "manela", "agent", "run", "--home", str(home), "--while-stdin"],
            stdin=subprocess.PIPE, stdout=log, stderr=log,
        )  # fmt: skip


@pytest.fixture
def daemon(tmp_path, manela_here):
    """A host with a peer that is away, learning for a long time."""
    home = tmp_path / "alpha"
    done = manela_here("agent", "init", "alpha", "--home", home, "--listen", "127.0.0.1:0", "--watch", "127.0.0.1:0",
                       "--dimensions", "8")  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (home / FILE).read_text()
    text = text.replace("# pairs = 1000000", "pairs = 10000000000").replace("# rounds = 100", "rounds = 1000000")
    text = re.sub(r"\n(start|wait) = [\d.]+", r"\n\1 = 0.0", text)
    (home / FILE).write_text(re.sub(r"deadline = [\d.]+", "deadline = 1.0", text))
    make_identity("beta", tmp_path / "beta.key", tmp_path / "beta.pem")
    with Store(home) as store:
        store.add_edges([Edge(f"n{i}", (f"n{(i + 1) % 30}", "alpha")) for i in range(30)])
        store.add_edges([Edge("n1", ("p", "beta"))])
        store.add_peer("beta", "127.0.0.1:1", read_certificate(tmp_path / "beta.pem"))
    process = start(home)
    until = time.monotonic() + 120
    while read_status(home).get("round", 0) < 3 or not read_status(home)["watch"]:
        assert process.poll() is None, (home / "log").read_text()
        assert time.monotonic() < until
        time.sleep(0.05)
    yield home, process
    process.kill()
    process.wait(60)
    process.stdin.close()


def read(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def metric(url, name):
    found = re.search(rf"^{re.escape(name)} ([\d.]+)$", read(url + "metrics"), re.M)
    return float(found[1]) if found else 0.0


def wait_for_more(url, name, before=None):
    before, until = metric(url, name) if before is None else before, time.monotonic() + 120
    while metric(url, name) <= before:
        assert time.monotonic() < until, read(url + "metrics")
        time.sleep(0.1)


def test_status_names_the_page_and_metrics_go_on(daemon, manela_here):
    home, process = daemon
    done = manela_here("agent", "status", "--home", home)
    url = re.search(r"page +(http://127\.0\.0\.1:\d+/)", done.stdout)[1]
    wait_for_more(url, "manela_round")
    assert 'manela_peer_here{peer="beta"} 0' in read(url + "metrics")
    assert metric(url, "manela_trouble") == 0
    # on a full disk that is told, and all else goes on to be, also where refusals cannot be written down
    resource.prlimit(read_status(home)["pid"], resource.RLIMIT_FSIZE, (512, 512))
    with socket.create_connection(("127.0.0.1", read_status(home)["port"])) as stranger:
        stranger.send(b"nonsense" * 100)
        wait_for_more(url, "manela_trouble", 0)
        wait_for_more(url, 'manela_refusals_total{peer="unknown",reason="unknown peer"}', 0)
    wait_for_more(url, "manela_round")
    # whoever stays connected does not hold the daemon up
    with socket.create_connection(("127.0.0.1", int(url.split(":")[2].strip("/")))) as idle:
        idle.send(b"GET /status.json HTTP/1.1\r\n")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    done = manela_here("agent", "status", "--home", home)
    assert "not running" in done.stdout
    assert "page" not in done.stdout


def test_an_address_that_is_taken_ends_the_start_in_one_line(daemon, tmp_path, manela, manela_here):
    home, _ = daemon
    url = read_status(home)["watch"]
    other = tmp_path / "other"
    manela_here("agent", "init", "other", "--home", other, "--listen", "127.0.0.1:0", "--watch", url[7:-1])
    with Store(other) as store:
        store.add_edges([Edge("a", ("b", "other"))])
    done = manela("agent", "run", "--home", other)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"error: watch: cannot listen on {url[7:-1]}")
    assert "Traceback" not in done.stderr


def add_words(route):
    """The daemon's own answer, with words that a peer might choose."""
    status = route.fetch().json()
    status |= {"trouble": f"cannot be saved {STRANGE}", "refusals": {STRANGE: {STRANGE: 3}}}
    route.fulfill(json=status)


@pytest.mark.skipif(BROWSER is None, reason="needs chromium, as in Debian's package of that name")
def test_a_browser_shows_what_the_daemon_does(daemon):
    from playwright.sync_api import sync_playwright

    home, process = daemon
    errors = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        for width, scheme in ((360, "dark"), (1000, "light")):
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.goto(read_status(home)["watch"])
            page.get_by_text("learning", exact=True).wait_for()
            assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
            assert find_barriers(page) == []
        first = page.locator("#round").inner_text()
        page.wait_for_function("before => document.getElementById('round').textContent !== before", arg=first)
        page.wait_for_function("document.querySelector('#speed path').getAttribute('d').includes('L')")
        assert page.locator("h1").inner_text() == "alpha"
        assert re.fullmatch(r"[\d,]+ of 1,000,000", page.locator("#round").inner_text())
        assert "away" in page.locator("#peers").inner_text()
        # what is told is shown as words, whatever it holds
        page.route("**/status.json", add_words)
        page.get_by_text("cannot be saved").wait_for()
        assert page.locator("#trouble").inner_text() == f"cannot be saved {STRANGE}"
        assert STRANGE in page.locator("#refusals").inner_text()
        assert page.locator("img").count() == 0
        page.unroute_all(behavior="wait")  # before the daemon is killed that one of them may be asking
        assert errors == []
        process.kill()
        page.get_by_text("does not answer").wait_for()
        browser.close()
