"""What notebooks show: figures, pictures, and a bar."""

import xml.etree.ElementTree as ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest

from manela import Graph, Manela
from manela.data.embedding import Embedding
from manela.errors import ParameterError
from manela.system.progress import Progress, RunBar, format_seconds, is_watched


def test_a_network_and_an_embedding_are_shown_as_html_without_what_ids_could_smuggle_in():
    graph = Graph.from_edges(["<script>", "b", "c"], ["b", "c", "d"])
    embedding = Embedding(graph.nodes, np.eye(4, 3, dtype=np.float32), provenance={"method": "<b>"})
    for shown, words in ((graph._repr_html_(), "mean degree"), (embedding._repr_html_(), "dimensions")):
        page = ElementTree.fromstring(shown)  # well-formed
        assert words in "".join(page.itertext())
        assert page.find(".//svg") is not None
        assert "<script>" not in shown
        assert "<b>&lt;b&gt;" not in shown


def test_html_of_many_nodes_is_small():
    embedding = Embedding(np.arange(20_000), np.random.default_rng(0).normal(size=(20_000, 8)).astype(np.float32))
    assert len(embedding._repr_html_()) < 100_000


@pytest.mark.parametrize("method", ["tsne", "pca"])
def test_vectors_are_plotted_with_a_colour_for_each_label(method):
    draw = np.random.default_rng(0)
    embedding = Embedding(np.arange(60), draw.normal(size=(60, 4)).astype(np.float32))
    axes = embedding.plot(labels=np.arange(60) % 3, method=method)
    assert len(axes.collections) == 3
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["0", "1", "2"]
    assert sum(len(points.get_offsets()) for points in axes.collections) == 60
    assert embedding.plot(method="pca", axes=axes) is axes
    by_name = embedding.plot(labels={node: "even" if node % 2 == 0 else "odd" for node in range(60)}, method="pca")
    assert [text.get_text() for text in by_name.get_legend().get_texts()] == ["even", "odd"]
    some = embedding.plot(labels={0: "known"}, method="pca")
    assert [text.get_text() for text in some.get_legend().get_texts()] == ["known", "no label"]
    few = Embedding(np.arange(2), np.eye(2, dtype=np.float32)).plot(method=method)
    assert np.isfinite(few.collections[0].get_offsets()).all()
    plt.close("all")
    with pytest.raises(ParameterError, match="one for each of 60 nodes"):
        embedding.plot(labels=[1, 2])
    with pytest.raises(ParameterError, match="method must be"):
        embedding.plot(method="umap")


def test_there_is_a_bar_only_where_somebody_looks(capsys):
    assert not is_watched()
    edges = [("ann", "bob"), ("bob", "cem")]
    Manela(dimensions=4).fit(edges)
    assert capsys.readouterr().err == ""
    Manela(dimensions=4).fit(edges, progress=True)
    assert "joining views" in capsys.readouterr().err
    with RunBar(False) as bar:
        assert bar.report is None
    with RunBar(True, "a title") as bar:
        bar.report(Progress(1, 2, 10, 1.0, 90.0, 0.025, -1.0))
    assert "a title" in capsys.readouterr().err
    assert format_seconds(3690) == "1:01:30"


@pytest.mark.parametrize("has_widgets", [True, False])
def test_a_notebook_is_watched_if_it_can_show_a_bar(monkeypatch, has_widgets):
    monkeypatch.setattr("manela.system.progress._has_widgets", lambda: has_widgets)
    monkeypatch.setattr("sys.stderr", None)
    shell = type("ZMQInteractiveShell", (), {"__module__": "ipykernel.zmqshell"})

    class IPython:
        get_ipython = shell

    monkeypatch.setitem(__import__("sys").modules, "IPython", IPython)
    assert is_watched() == has_widgets


def test_what_has_no_terminal_is_not_watched(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert not is_watched()
    Manela(dimensions=4).fit([("ann", "bob"), ("bob", "cem")])
