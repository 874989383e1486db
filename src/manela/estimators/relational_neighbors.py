"""RelationalNeighbors: the labels of a node are those that its neighbours have most often."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from manela.datasets.loading import load_graph
from manela.errors import ParameterError


class RelationalNeighbors(BaseEstimator):  # type: ignore[misc]
    """Label nodes by their neighbours (Macskassy and Provost, 2003), over and over until all have labels.

    In each iteration every node that has no label yet, but a neighbour with one, gets the label that is most frequent
    among its neighbours, counted with edge weights on a weighted network. Iterations read the labels as they stood
    before, so the order of nodes does not matter. A node that no label can reach gets the most frequent one of all.

    Attributes
    ----------
    chances_ : array, shape (n, number of labels)
        Of each label, its share of the neighbours' when the node was labelled; 1 or 0 where labels were given.
    classes_ : array, or None
        The labels, where one for each node was given.
    iterations_ : int
        How many it took.

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
            The labels that are given; a row of zeros where none is. One label for each node may be of any kind; where
            none is given it is −1, None or NaN, and `predict` returns one label for each node too.
        """
        graph = load_graph(X)
        given, self.classes_ = _read_labels(y)
        if given.ndim != 2 or len(given) != graph.number_of_nodes:
            raise ParameterError(
                f"y must have a row for each of {graph.number_of_nodes} nodes, got shape {given.shape}."
            )
        if not given.any():
            raise ParameterError("y must give a label to at least one node, got none.")
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
            places = np.flatnonzero(~labelled)[reached]
            chances[places] = votes[reached] / votes[reached].sum(axis=1, keepdims=True)
            labels[places, np.argmax(votes[reached], axis=1)] = 1.0
            labelled[places] = True
        chances[~labelled] = given.sum(axis=0) / given.sum()
        self.chances_ = chances
        return self

    def predict(self, counts: npt.NDArray[np.integer] | None = None) -> npt.NDArray[Any]:
        """The labels of all nodes, shape (n, number of labels); or (n,), where one label for each node was given.

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
    """Which node has which label, (n, number of labels), and what the labels are where each node has one."""
    values: npt.NDArray[Any] = np.asarray(y.todense() if sp.issparse(y) else y)
    if values.ndim != 1:
        return values.astype(bool), None
    ids = values.tolist()
    is_given = np.array([_is_label(label) for label in ids], dtype=bool)
    found = dict.fromkeys(label for label, has in zip(ids, is_given, strict=True) if has)
    numbers = {label: place for place, label in enumerate(found)}
    given = np.zeros((len(ids), len(numbers)), dtype=bool)
    for row in np.flatnonzero(is_given).tolist():
        given[row, numbers[ids[row]]] = True
    classes = np.empty(len(numbers), dtype=values.dtype if values.dtype.kind in "iuUb" else object)
    classes[:] = list(numbers)
    return given, classes


def _is_label(label: Any) -> bool:
    """Whether this is a label rather than a sign that there is none: −1, None, NaN, or NA of pandas."""
    if label is None or type(label).__name__ == "NAType":
        return False
    return bool(label == label and label != -1)
