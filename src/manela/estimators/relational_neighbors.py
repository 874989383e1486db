"""RelationalNeighbors: a classifier that gives a node the most frequent label of its neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from manela.errors import ParameterError
from manela.formats.loading import load_graph


class RelationalNeighbors(BaseEstimator):  # type: ignore[misc]
    """Label nodes by their neighbours (Macskassy and Provost, 2003), repeatedly until all have labels.

    In each iteration, every unlabelled node with a labelled neighbour gets the label that is most frequent among its
    neighbours, weighted by edge weights on a weighted network. An iteration reads only labels from before it, so the
    order of nodes does not matter. A node that no label can reach gets the most frequent one of all.

    Attributes
    ----------
    chances_ : array, shape (n, number of labels)
        Share of each label among the neighbours when the node was labelled; 1 or 0 where labels were given.
    classes_ : array, or None
        The labels, if one for each node was given.
    iterations_ : int
        Number of iterations.

    Examples
    --------
    >>> from manela import Graph, RelationalNeighbors
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> given = [[True, False], [False, False], [False, False], [False, False], [False, True]]
    >>> model = RelationalNeighbors().fit(path, given)
    >>> model.iterations_, model.predict()[:, 0].tolist()
    (2, [True, True, True, False, False])
    >>> RelationalNeighbors().fit(path, ["red", None, None, None, "blue"]).predict().tolist()
    ['red', 'red', 'red', 'blue', 'blue']
    """

    def fit(self, X: Any, y: Any) -> RelationalNeighbors:
        """Label all nodes of a network.

        Parameters
        ----------
        X : Graph, or what `Manela.fit` takes
            The network.
        y : array or sparse matrix of 0 and 1, shape (n, number of labels), or array of labels, shape (n,)
            The known labels; a node without any has a row of zeros. In an array of one label for each node, labels may
            be of any type, −1, None or NaN means unknown, and `predict` returns one label for each node too.
        """
        graph = load_graph(X)
        given, self.classes_ = _read_labels(y)
        if given.ndim != 2 or len(given) != graph.number_of_nodes:
            raise ParameterError(
                f"y must have a row for each of {graph.number_of_nodes} nodes, got shape {given.shape}"
            )
        if not given.any():
            raise ParameterError("y must give a label to at least one node, got none")
        adjacency = graph.to_scipy()
        labels = given.astype(np.float64)
        chances = labels.copy()
        labelled: npt.NDArray[np.bool_] = np.asarray(given.any(axis=1))
        self.iterations_ = 0
        while not labelled.all():
            votes = adjacency[~labelled] @ labels
            reached = votes.any(axis=1)
            if not reached.any():
                break
            self.iterations_ += 1
            rows = np.flatnonzero(~labelled)[reached]
            chances[rows] = votes[reached] / votes[reached].sum(axis=1, keepdims=True)
            labels[rows, np.argmax(votes[reached], axis=1)] = 1.0
            labelled[rows] = True
        chances[~labelled] = given.sum(axis=0) / given.sum()
        self.chances_ = chances
        return self

    def predict(self, counts: npt.NDArray[np.integer] | None = None) -> npt.NDArray[Any]:
        """Return the labels of all nodes, shape (n, number of labels), or (n,) if one label for each node was given.

        Parameters
        ----------
        counts : array of int, shape (n,), optional
            How many labels each node has; one by default.
        """
        check_is_fitted(self)
        if self.classes_ is not None and counts is None:
            chosen: npt.NDArray[Any] = self.classes_[np.argmax(self.chances_, axis=1)]
            return chosen
        ranks = np.argsort(np.argsort(-self.chances_, axis=1, kind="stable"), axis=1, kind="stable")
        wanted = np.ones(len(ranks), dtype=np.int64) if counts is None else np.asarray(counts)
        return np.asarray(ranks < wanted[:, None])


def _read_labels(y: Any) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any] | None]:
    """Return which node has which label, (n, number of labels), and the labels if `y` has one for each node."""
    values: npt.NDArray[Any] = np.asarray(y.todense() if sp.issparse(y) else y)
    if values.ndim != 1:
        return values.astype(bool), None
    ids = values.tolist()
    is_given = np.array([_is_label(label) for label in ids], dtype=bool)
    distinct = dict.fromkeys(label for label, has in zip(ids, is_given, strict=True) if has)
    numbers = {label: number for number, label in enumerate(distinct)}
    given = np.zeros((len(ids), len(numbers)), dtype=bool)
    for row in np.flatnonzero(is_given).tolist():
        given[row, numbers[ids[row]]] = True
    classes = np.empty(len(numbers), dtype=values.dtype if values.dtype.kind in "iuUb" else object)
    classes[:] = list(numbers)
    return given, classes


def _is_label(label: Any) -> bool:
    """Return whether this is a label, not a placeholder for an unknown one: −1, None, NaN, or pandas' NA."""
    if label is None or type(label).__name__ == "NAType":
        return False
    return bool(label == label and label != -1)
