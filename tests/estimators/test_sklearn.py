"""What scikit-learn's users expect of a transformer."""

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from manela import Manela, ProNE
from manela.formats.datasets import stochastic_block_model

FAILURES = {
    "check_n_features_in": "X is a network, which has nodes and no features",
    "check_n_features_in_after_fitting": "X is a network, which has nodes and no features",
    "check_complex_data": "refused, in words of our own",
    "check_positive_only_tag_during_fit": "refused, in words of our own",
    "check_estimators_nan_inf": "refused, in words of our own: a weight must be finite and above 0",
    "check_estimators_empty_data_messages": "refused, in words of our own",
    "check_dtype_object": "an array of objects is no matrix: ids come in lists, frames and pairs",
    "check_transformer_data_not_an_array": "what has only __array__ may be ids, pairs or a matrix, and is refused",
    "check_transformer_general": "rows of X are nodes, and so are its columns: there are more vectors than rows",
    "check_methods_sample_order_invariance": "rows of X are not samples: other rows are another network",
    "check_methods_subset_invariance": "rows of X are not samples: fewer rows are another network",
    "check_fit2d_predict1d": "numbers in one dimension are ids, and these are unknown",
}
"""Checks of tables of samples and features that a network cannot pass, and why."""


class AsTable(Manela):
    """The estimator, with a tag that makes scikit-learn try it with tables of samples and features."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


@pytest.mark.filterwarnings("ignore")
def test_all_checks_pass_but_those_that_are_listed():
    results = check_estimator(AsTable(dimensions=4), expected_failed_checks=FAILURES, on_fail=None, on_skip=None)
    assert len(results) > 40
    assert [one["check_name"] for one in results if one["status"] == "failed"] == []
    assert {one["check_name"] for one in results if one["status"] == "xfail"} == set(FAILURES)


def test_tags_tell_the_truth():
    tags = get_tags(Manela())
    assert (tags.input_tags.two_d_array, tags.input_tags.sparse, tags.input_tags.positive_only) == (False, True, True)
    assert not tags.target_tags.required


def test_ids_are_cross_validated():
    graph, communities = stochastic_block_model(nodes=120, inside=0.3, between=0.01)
    model = Manela(dimensions=8).fit(graph)
    pipeline = make_pipeline(FrozenEstimator(model), LogisticRegression())
    assert cross_val_score(pipeline, graph.nodes, communities, cv=3).mean() > 0.9


@pytest.mark.parametrize("kind", [Manela, ProNE])
def test_frames_have_ids_and_names(kind):
    edges = pd.DataFrame({"source": ["ann", "bob", "cem"], "target": ["bob", "cem", "ann"]})
    model = kind(dimensions=2).set_output(transform="pandas")
    frame = model.fit_transform(edges)
    assert frame.index.tolist() == ["ann", "bob", "cem"]
    assert frame.columns.tolist() == [f"{kind.__name__.lower()}{place}" for place in range(2)]
    pd.testing.assert_frame_equal(model.transform(["cem", "ann"]), frame.loc[["cem", "ann"]])
    polars = kind(dimensions=2).set_output(transform="polars").fit_transform(edges)
    np.testing.assert_array_equal(polars.to_numpy(), frame.to_numpy())
