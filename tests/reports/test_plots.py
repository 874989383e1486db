import numpy as np
from matplotlib import pyplot

from manela.reports.plots import plot_communities


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
