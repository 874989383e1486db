"""Downloads from a real HTTP server on this machine."""

import hashlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from manela.errors import DatasetError, ParameterError
from manela.formats import datasets as catalogue
from manela.formats.datasets import (
    DATASETS,
    Dataset,
    draw_random,
    fetch,
    find,
    locate,
    planted_partition,
    stochastic_block_model,
)

CONTENT = bytes(range(256)) * 2000


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT, with ranges; /short breaks off, /whole ignores ranges, /long sends too much."""

    requests: list = []

    def do_GET(self):
        asked = self.headers.get("Range")
        self.requests.append((self.path, asked))
        if self.path == "/none":
            self.send_error(404)
            return
        if self.path == "/nonsense":
            self.wfile.write(b"this is not HTTP\r\n\r\n")
            return
        first = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.path != "/whole" else 0
        body = CONTENT[first:]
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(body) + 5 * (self.path == "/long")))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path == "/short" and not first else body)
        if self.path == "/long":
            self.wfile.write(b"extra")

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    Handler.requests = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def dataset(server, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("MANELA_DATA", raising=False)
    return Dataset(
        name="bytes",
        title="",
        nodes=2,
        licence="",
        file="bytes.mat",
        home=f"{server}/good",
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )


def at(dataset, path):
    return replace(dataset, home=dataset.home.replace("/good", path))


def test_a_file_is_downloaded_once_with_progress(dataset, tmp_path):
    told = []
    path = fetch(dataset, lambda have, size: told.append((have, size)))
    assert path == tmp_path / "manela" / "bytes.mat"
    assert path.read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [have for have, _ in told] == sorted(have for have, _ in told)
    assert fetch(dataset) == path == locate(dataset)
    assert len(Handler.requests) == 1


def test_a_download_that_broke_off_goes_on_where_it_was(dataset, tmp_path):
    with pytest.raises(DatasetError, match="ended after .* continues where it stopped"):
        fetch(at(dataset, "/short"))
    assert (tmp_path / "manela" / "bytes.mat.part").stat().st_size == len(CONTENT) // 2
    assert locate(dataset) is None
    assert fetch(dataset).read_bytes() == CONTENT
    assert Handler.requests[-1] == ("/good", f"bytes={len(CONTENT) // 2}-")


def test_a_server_without_ranges_is_asked_for_all(dataset):
    with pytest.raises(DatasetError):
        fetch(at(dataset, "/short"))
    assert fetch(at(dataset, "/whole")).read_bytes() == CONTENT


def test_another_file_than_the_published_one_is_refused_and_not_kept(dataset, tmp_path):
    with pytest.raises(DatasetError, match="SHA-256 must be 0000000000000000…"):
        fetch(replace(dataset, sha256="0" * 64))
    with pytest.raises(DatasetError, match="longer than"):
        fetch(at(dataset, "/long"))
    assert list((tmp_path / "manela").iterdir()) == []


@pytest.mark.parametrize("path", ["/none", "/nonsense", ":1/closed"])
def test_a_home_that_does_not_answer_is_named_with_what_to_do(dataset, path):
    home = dataset.home.rsplit(":", 1)[0] + ":1/closed" if path.startswith(":") else at(dataset, path).home
    with pytest.raises(
        DatasetError, match=r"bytes cannot be downloaded from http.*set MANELA_DATA to a folder with bytes\.mat"
    ):
        fetch(replace(dataset, home=home))


def test_the_folder_of_manela_data_comes_first_and_is_checked(dataset, tmp_path, monkeypatch):
    monkeypatch.setenv("MANELA_DATA", str(tmp_path))
    (tmp_path / "bytes.mat").write_bytes(CONTENT)
    assert fetch(dataset) == tmp_path / "bytes.mat"
    assert Handler.requests == []
    (tmp_path / "bytes.mat").write_bytes(b"other")
    with pytest.raises(DatasetError, match="is not bytes as published"):
        fetch(dataset)


def test_the_catalogue_has_the_papers_networks_and_says_so_for_a_wrong_name():
    assert list(DATASETS) == ["blogcatalog", "ppi", "wikipedia", "sbm"]
    with pytest.raises(DatasetError, match="unknown data set 'facebook'; known are blogcatalog, ppi"):
        find("facebook")
    with pytest.raises(DatasetError, match="sbm is generated"):
        fetch(DATASETS["sbm"])


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "weighted", "loops"),
    [
        ("blogcatalog", 10_312, 333_983, False, 0),
        ("ppi", 3_890, 37_845, False, 894),
        ("wikipedia", 4_777, 92_295, True, 222),
    ],
)
def test_the_published_networks_are_what_their_catalogue_says(real, name, nodes, edges, weighted, loops):
    from manela.formats.loading import load_graph

    assert catalogue._verify(real(name), find(name), "") is None
    graph = load_graph(name)
    assert (graph.number_of_nodes, graph.number_of_edges) == (nodes, edges)
    assert graph.is_weighted == weighted
    assert graph.self_loops == loops
    assert not load_graph(name, unweighted=True).is_weighted


def test_the_block_model_has_the_papers_size_and_probabilities():
    graph, communities = stochastic_block_model()
    assert graph.number_of_nodes == 1024
    assert 20_000 < graph.number_of_edges < 22_000
    same = communities[:, None] == communities[None, :]
    matrix = graph.to_scipy().toarray()
    np.fill_diagonal(same, False)
    assert matrix[same].mean() == pytest.approx(0.1, abs=0.005)
    assert matrix[communities[:, None] != communities[None, :]].mean() == pytest.approx(0.01, abs=0.001)


def test_the_same_seed_gives_the_same_network():
    assert stochastic_block_model(nodes=50, seed=3)[0].digest == stochastic_block_model(nodes=50, seed=3)[0].digest
    assert stochastic_block_model(nodes=50, seed=3)[0].digest != stochastic_block_model(nodes=50, seed=4)[0].digest
    assert draw_random(100, 300, 1).digest == draw_random(100, 300, 1).digest


def test_what_is_no_probability_is_refused():
    with pytest.raises(ParameterError, match="inside must be a probability, got 1.5"):
        stochastic_block_model(inside=1.5)


def test_planted_communities_have_the_edges_that_were_asked_for():
    graph, communities = planted_partition(2000, 20, inside=3, outside=3, seed=1)
    assert graph.number_of_nodes == len(communities) == 2000
    assert 0.95 * 12_000 < graph.number_of_edges <= 12_000
    rows, columns = graph.to_scipy().nonzero()
    inside = np.mean(communities[rows] == communities[columns])
    assert inside == pytest.approx(0.5 + 0.5 / 20, abs=0.02)


def test_planted_communities_without_edges_are_refused():
    with pytest.raises(ParameterError, match="inside and outside"):
        planted_partition(10, 2, inside=0, outside=0)
