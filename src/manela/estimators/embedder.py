"""Embedder: the base class of all estimators that learn vectors."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from manela import __version__
from manela.data.embedding import Embedding, Index, is_list_of_ids
from manela.data.graph import Graph
from manela.errors import FormatError, import_extra
from manela.formats.embeddings import read_embedding, write_embedding
from manela.formats.loading import load_graph
from manela.kernels.layout import Vectors
from manela.settings.parameters import drop_former


class Embedder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that learns a vector for each node; subclasses implement `fit`.

    Attributes
    ----------
    embedding_ : array of float32, shape (n, m)
        Row i is the vector of nodes_[i].
    context_ : array of float32, shape (n, m), or None
        The second vectors, if the method has them.
    nodes_ : array, shape (n,)
        Node ids.
    updates_ : array of int, shape (n,), or None
        How often each vector was updated; None if that is not counted, and after `load`, as files do not store it.
    provenance_ : dict
        Method, parameters, seed, network and version.
    """

    method: str
    """The name of the method in provenance."""

    def transform(self, X: Any) -> Any:
        """Return the vectors of the nodes of X, all of which must have been in the fitted network.

        Parameters
        ----------
        X : as for `fit`, or a list or one-dimensional array of ids

        Returns
        -------
        array of float32, shape (nodes of X, m)
        """
        check_is_fitted(self)
        nodes = X if is_list_of_ids(X) and not is_list_of_edges(X, self._kept) else load_graph(X).nodes
        return self._with_ids(self._kept[nodes], nodes)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:  # noqa: ARG002
        """Return the column names of `transform`, which scikit-learn uses for `set_output`.

        Examples
        --------
        >>> from manela import Manela
        >>> Manela(dimensions=2).fit([("ann", "bob")]).get_feature_names_out().tolist()
        ['manela0', 'manela1']
        """
        check_is_fitted(self)
        name = type(self).__name__.lower()
        return np.array([f"{name}{column}" for column in range(self.embedding_.shape[1])], dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that X is a network, not a table of samples and features, and has no negative weights."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Learn the vectors of a network and return them, shape (n, m)."""
        self.fit(X, y, **fit_params)
        return self._with_ids(self.embedding_, self.nodes_)

    def _with_ids(self, vectors: Vectors, nodes: Any) -> Any:
        """Return the vectors, as a frame indexed by id if pandas output is set; scikit-learn does not know the ids."""
        config = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        if config != "pandas":
            return vectors
        pandas = import_extra("pandas", "io", "set_output")
        index = pandas.Index(list(nodes), name="node", tupleize_cols=False)
        return pandas.DataFrame(vectors, index=index, columns=self.get_feature_names_out())

    def __getitem__(self, node: Any) -> Vectors:
        """Return the vector of the node with this id, or one row for each id of a list or array."""
        check_is_fitted(self)
        return self._kept[node]

    def __contains__(self, node: Hashable) -> bool:
        """Return whether a node with this id has a vector."""
        check_is_fitted(self)
        return node in self._kept

    def most_similar(self, node: Any = None, k: int = 10, **options: Any) -> Any:
        """Return the k nodes with the largest cosine similarity, like `Embedding.most_similar`."""
        check_is_fitted(self)
        return self._kept.most_similar(node, k, **options)

    def to_embedding(self) -> Embedding:
        """Return ids, vectors and provenance as one object, which a notebook shows with a picture."""
        check_is_fitted(self)
        return self._kept

    def plot(self, labels: Any = None, *, method: str = "tsne", axes: Any = None) -> Any:
        """Draw the vectors in two dimensions, like `Embedding.plot`."""
        check_is_fitted(self)
        return self._kept.plot(labels, method=method, axes=axes)

    def index(self, path: str | Path | None = None) -> Index:
        """Return an approximate nearest-neighbour index of the vectors, like `Embedding.index`."""
        check_is_fitted(self)
        return self._kept.index(path)

    def edge_vectors(self, edges: Any, operator: str = "hadamard") -> Vectors:
        """Return a vector for each pair of nodes, like `Embedding.edge_vectors`."""
        check_is_fitted(self)
        return self._kept.edge_vectors(edges, operator)

    def save(self, path: str | Path) -> None:
        """Write ids, vectors and provenance in the format that the suffix of path names."""
        check_is_fitted(self)
        write_embedding(self._kept, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the fitted estimator saved at path, a .npz file; other formats do not store all of it."""
        embedding = read_embedding(Path(path))
        parameters = embedding.provenance.get("parameters")
        is_same_method = embedding.provenance.get("method") == cls.method
        if not is_same_method or not isinstance(parameters, dict):
            raise FormatError(f"{path}: does not say the parameters of a {cls.__name__}; read it as a manela.Embedding")
        parameters = drop_former(parameters)
        unknown = [f"{name}={parameters[name]!r}" for name in sorted(set(parameters) - set(cls._get_param_names()))]
        if unknown:
            raise FormatError(
                f"{path}: has parameters that {cls.__name__} does not know ({', '.join(unknown)}), as "
                f"manela {embedding.provenance.get('version')} wrote it; read it as a manela.Embedding"
            )
        model = cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()})
        return model._set_fitted(embedding, None)

    def _set_fitted(self, embedding: Embedding, updates: npt.NDArray[np.int64] | None) -> Self:
        """Set the fitted attributes; `updates` is how often each vector was updated, None if unknown."""
        self.nodes_ = embedding.nodes
        self.embedding_ = embedding.vectors
        self.context_ = embedding.context
        self.provenance_ = dict(embedding.provenance)
        self.updates_ = updates
        self._kept = embedding
        return self


def describe_run(method: str, graph: Graph, parameters: Mapping[str, Any], **entries: Any) -> dict[str, Any]:
    """Return the provenance of vectors that a method learned from a network, with further `entries` at the end."""
    return {
        "method": method,
        "version": __version__,
        "parameters": dict(parameters),
        "graph": {
            "nodes": graph.number_of_nodes,
            "edges": graph.number_of_edges,
            "weighted": graph.is_weighted,
            "directed": graph.directed,
            "sha256": graph.digest,
            **({} if graph.rows is None else {"rows": graph.rows}),
        },
        **entries,
    }


def is_list_of_edges(data: Any, known: Embedding) -> bool:
    """Return whether a list holds edges rather than ids; its first item is an id if it is `known`, even as a tuple."""
    first = data[0] if isinstance(data, list) and data else None
    return isinstance(first, list | tuple) and len(first) in (2, 3) and first not in known
