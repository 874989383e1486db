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
    """

    def fit(self, X: Any, y: Any) -> RelationalNeighbors:
        """Label all nodes of a network.

        Parameters
        ----------
        X : Graph, or what `Manela.fit` takes
            The network.
        y : array or sparse matrix of 0 and 1, shape (n, number of labels)
            The labels that are given; a row of zeros where none is.
        """
        graph = load_graph(X)
        given: npt.NDArray[np.bool_] = np.asarray(y.todense() if sp.issparse(y) else y).astype(bool)
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

    def predict(self, counts: npt.NDArray[np.integer] | None = None) -> npt.NDArray[np.bool_]:
        """The labels of all nodes, shape (n, number of labels).

        Parameters
        ----------
        counts : array of int, shape (n,), optional
            How many labels each node has; one by default.
        """
        check_is_fitted(self)
        ranks = np.argsort(np.argsort(-self.chances_, axis=1, kind="stable"), axis=1, kind="stable")
        wanted = np.ones(len(ranks), dtype=np.int64) if counts is None else np.asarray(counts)
        return np.asarray(ranks < wanted[:, None])
