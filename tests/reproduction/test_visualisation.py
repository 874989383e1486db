import numpy as np

from manela.analysis.classification import measure_separation


def test_clear_communities_score_high_and_mixed_ones_low():
    rng = np.random.default_rng(0)
    communities = np.repeat([0, 1, 2], 40)
    clear = np.eye(3)[communities] + 0.05 * rng.normal(size=(120, 3))
    assert measure_separation(clear, communities).accuracy == 1.0
    assert measure_separation(clear, communities).silhouette > 0.9
    mixed = measure_separation(clear, rng.permutation(communities))
    assert mixed.accuracy < 0.6
    assert mixed.silhouette < 0.1
