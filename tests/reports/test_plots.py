import numpy as np
from matplotlib import pyplot

from manela.reports.plots import plot_communities, plot_complexity


def test_the_picture_has_a_size_and_the_colours_of_all_communities(tmp_path):
    communities = np.repeat([0, 1, 2], 30)
    vectors = np.eye(3)[communities] + 0.1 * np.random.default_rng(0).normal(size=(90, 3))
    plot_communities(vectors, communities, "three", tmp_path / "p.png")
    picture = pyplot.imread(tmp_path / "p.png")
    assert picture.shape[0] > 500
    assert picture.shape[1] > 500
    assert len(np.unique(picture.reshape(-1, picture.shape[2]).round(1), axis=0)) > 6
    plot_communities(vectors, communities, "three", tmp_path / "p.svg")
    assert "<svg" in (tmp_path / "p.svg").read_text()


def test_costs_are_drawn_also_where_tables_do_not_fit(tmp_path):
    methods = {
        name: {"preparing": 0.1, "sampling": 0.2, "updating": 0.3, "pairs": 1000} for name in ("manela", "node2vec")
    }
    rows = [
        {"nodes": 10 * k, "edges": 50 * k, "methods": methods, "transitions": {"bytes": 8, "seconds": seconds}}
        for k, seconds in ((1, 0.5), (2, None))
    ]
    plot_complexity({"nodes": rows, "degrees": rows}, tmp_path / "p.svg")
    assert "precomputed transitions" in (tmp_path / "p.svg").read_text()
