"""Node classification as in the paper: one-versus-rest logistic regression on vectors, micro- and macro-F1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier

from manela.randomness import seed_of

Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Scores:
    """F1 of several shuffles, an array each."""

    micro: npt.NDArray[np.float64]
    macro: npt.NDArray[np.float64]


def classify(
    vectors: npt.NDArray[np.floating],
    labels: Any,
    *,
    train_ratio: float = 0.5,
    shuffles: int = 10,
    random_state: Any = 0,
    test: npt.NDArray[np.bool_] | None = None,
) -> Scores:
    """Learn labels from the vectors of a random part of the nodes and predict those of the rest.

    As in the literature, the number of labels of a test node is known, and its most probable ones are predicted.

    Parameters
    ----------
    vectors : array, shape (n, m)
    labels : array or sparse matrix of 0 and 1, shape (n, number of labels)
        Nodes without a label are left out.
    train_ratio : float
        Part of the nodes to train on.
    shuffles : int
        How often to split anew.
    test : array of bool, shape (n,), optional
        Predict the labels of these nodes from all others, once, instead of splitting at random.
    """
    truth: Labels = np.asarray(labels.todense() if sp.issparse(labels) else labels).astype(bool)
    kept = truth.any(axis=1)
    features, truth = np.asarray(vectors)[kept], truth[kept]
    if test is not None:
        chosen = np.asarray(test)[kept]
        splits = [(np.flatnonzero(~chosen), np.flatnonzero(chosen))]
    else:
        random = np.random.default_rng(seed_of(random_state))
        orders = [random.permutation(len(truth)) for _ in range(shuffles)]
        first = round(train_ratio * len(truth))
        splits = [(order[:first], order[first:]) for order in orders]
    micro, macro = [], []
    for train_part, test_part in splits:
        predicted = _predict(features, truth, train_part, test_part)
        micro.append(f1_score(truth[test_part], predicted, average="micro", zero_division=0))
        macro.append(f1_score(truth[test_part], predicted, average="macro", zero_division=0))
    return Scores(np.array(micro), np.array(macro))


def _predict(
    features: npt.NDArray[np.floating], truth: Labels, train: npt.NDArray[np.int64], test: npt.NDArray[np.int64]
) -> Labels:
    """The k most probable labels of each test node, k being how many it has; labels never seen are never predicted."""
    seen = np.flatnonzero(truth[train].any(axis=0) & ~truth[train].all(axis=0))
    always = np.flatnonzero(truth[train].all(axis=0))
    model = OneVsRestClassifier(LogisticRegression(solver="liblinear", max_iter=100))
    model.fit(features[train], truth[train][:, seen].astype(np.int64))
    chances = np.full((len(test), truth.shape[1]), -1.0)
    chances[:, seen] = model.predict_proba(features[test]).reshape(len(test), -1)[:, -len(seen) :]
    chances[:, always] = 2.0
    return take_best(chances, truth[test].sum(axis=1))


def take_best(chances: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]) -> Labels:
    """True for the counts[i] largest values of each row i."""
    ranks = np.argsort(np.argsort(-chances, axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray(ranks < counts[:, None])
