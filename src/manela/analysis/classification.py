"""How well vectors tell labels: F1 of logistic regression as in the paper, and the separation of communities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, silhouette_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import NearestCentroid

from manela.errors import ParameterError
from manela.kernels.layout import RowNumbers
from manela.kernels.randomness import seed_of

Labels = npt.NDArray[np.bool_]
Chances = npt.NDArray[np.float64]

TRAIN_RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Scores:
    """F1 scores, one value for each shuffle."""

    # the number of labels of a test node is known, as in the literature
    micro: npt.NDArray[np.float64]
    macro: npt.NDArray[np.float64]
    # it is not known: all labels above the threshold that is best for the training nodes are predicted
    open_micro: npt.NDArray[np.float64]
    open_macro: npt.NDArray[np.float64]


def classify(
    vectors: npt.NDArray[np.floating],
    labels: Any,
    *,
    train_ratio: float = 0.5,
    shuffles: int = 10,
    random_state: Any = 0,
    test: npt.NDArray[np.bool_] | None = None,
    jobs: int = 1,
    done: Callable[[], None] = lambda: None,
) -> Scores:
    """Learn labels from the vectors of a random part of the nodes and predict those of the rest.

    Parameters
    ----------
    vectors : array, shape (n, m)
    labels : array or sparse matrix of 0 and 1, shape (n, number of labels)
        Nodes without a label are ignored.
    train_ratio : float
        Share of the nodes to train on.
    shuffles : int
        Number of random splits. They depend only on the labels and `random_state`, so all methods get the same.
    test : array of bool, shape (n,), optional
        Predict the labels of these nodes from all others, once, instead of splitting at random.
    jobs : int
        Threads; their number does not change the scores.
    done : callable
        Called after each shuffle.
    """
    truth = as_labels(labels, len(vectors))
    is_labelled = truth.any(axis=1)
    features, truth = np.asarray(vectors)[is_labelled], truth[is_labelled]
    if test is not None:
        is_test = np.asarray(test)[is_labelled]
        splits = [(np.flatnonzero(~is_test), np.flatnonzero(is_test))]
    else:
        splits = split(len(truth), train_ratio, shuffles, random_state)

    def score(parts: tuple[RowNumbers, RowNumbers]) -> tuple[float, float, float, float]:
        scores = _score(features, truth, *parts)
        done()
        return scores

    with ThreadPoolExecutor(jobs) as threads:
        columns = zip(*threads.map(score, splits), strict=True)
        return Scores(*(np.array(column) for column in columns))


def split(nodes: int, train_ratio: float, shuffles: int, random_state: Any = 0) -> list[tuple[RowNumbers, RowNumbers]]:
    """Return row numbers to train and to test on for each shuffle; a larger ratio extends the same training set."""
    first = round(train_ratio * nodes)
    if not 0 < first < nodes:
        raise ParameterError(
            f"train_ratio must leave nodes on both sides, got {train_ratio:g} of {nodes} nodes with labels"
        )
    random = np.random.default_rng(seed_of(random_state))
    orders = [random.permutation(nodes) for _ in range(shuffles)]
    return [(order[:first], order[first:]) for order in orders]


def as_labels(labels: Any, nodes: int) -> Labels:
    """Convert labels to an array of bool, shape (nodes, number of labels)."""
    truth: Labels = np.asarray(labels.todense() if sp.issparse(labels) else labels).astype(bool)
    if truth.ndim != 2 or len(truth) != nodes:
        raise ParameterError(f"labels must have {nodes} rows, one a vector, got the shape {truth.shape}")
    return truth


def _score(
    features: npt.NDArray[np.floating], truth: Labels, train: RowNumbers, test: RowNumbers
) -> tuple[float, float, float, float]:
    """Return micro- and macro-F1 with known numbers of labels, and the same by threshold."""
    at_test, at_train = learn(features, truth, train, test)
    predicted = take_best(at_test, truth[test].sum(axis=1))
    open_predicted = at_test >= best_threshold(at_train, truth[train])
    return (*_f1(truth[test], predicted), *_f1(truth[test], open_predicted))


def _f1(truth: Labels, predicted: Labels) -> tuple[float, float]:
    micro, macro = (f1_score(truth, predicted, average=average, zero_division=0) for average in ("micro", "macro"))
    return float(micro), float(macro)


def learn(
    features: npt.NDArray[np.floating], truth: Labels, train: RowNumbers, test: RowNumbers
) -> tuple[Chances, Chances]:
    """Return label probabilities for test and training nodes; −1 for a label that no training node has, 2 if all do."""
    in_all = truth[train].all(axis=0)
    seen = np.flatnonzero(truth[train].any(axis=0) & ~in_all)
    at_test, at_train = (np.full((len(part), truth.shape[1]), -1.0) for part in (test, train))
    at_test[:, in_all] = at_train[:, in_all] = 2.0
    # OneVsRestClassifier resets the warning filters, which threads share, so that it sometimes warned in another one
    for label in seen:
        model = LogisticRegression(solver="liblinear", max_iter=100).fit(features[train], truth[train, label])
        for probabilities, part in ((at_test, test), (at_train, train)):
            probabilities[:, label] = model.predict_proba(features[part])[:, 1]
    return at_test, at_train


def take_best(chances: Chances, counts: npt.NDArray[np.integer]) -> Labels:
    """Return True for the counts[i] largest values of each row i."""
    ranks = np.argsort(np.argsort(-chances, axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray(ranks < counts[:, None])


def best_threshold(chances: Chances, truth: Labels) -> float:
    """Return the threshold for which predicting all labels at or above it has the largest micro-F1.

    Examples
    --------
    >>> best_threshold(np.array([[0.9, 0.4], [0.6, 0.1]]), np.array([[True, False], [True, False]]))
    0.6
    """
    order = np.argsort(-chances, axis=None, kind="stable")
    values, right = chances.ravel()[order], np.cumsum(truth.ravel()[order])
    f1 = 2 * right / (np.arange(1, len(order) + 1) + truth.sum())
    last_of_its_value = np.append(values[1:] != values[:-1], True)
    return float(values[np.argmax(np.where(last_of_its_value, f1, -1.0))])


def summarise(scores: Sequence[float] | npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean and the sample standard deviation, which is 0 for a single score."""
    values = np.asarray(scores, dtype=np.float64)
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class Separation:
    """Silhouette, from −1 to 1, and the share of nodes nearest to the centre of their own community."""

    silhouette: float
    accuracy: float


def measure_separation(
    vectors: npt.NDArray[np.floating], communities: npt.NDArray[np.integer], metric: str = "cosine"
) -> Separation:
    """Score vectors, shape (n, m), against communities, shape (n,); centres are computed without the tested nodes.

    The silhouette uses cosine distances, or another metric of scikit-learn, such as "euclidean" for points on a plane.
    """
    nearest = cross_val_predict(NearestCentroid(), vectors, communities, cv=10)
    return Separation(
        silhouette=float(silhouette_score(vectors, communities, metric=metric)),
        accuracy=float(np.mean(nearest == communities)),
    )
