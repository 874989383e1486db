"""A network from whatever the user names: an object, a file, or a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manela.datasets.catalogue import DATASETS, fetch
from manela.formats.graphs import read_graph
from manela.graph import Graph


def load_graph(
    source: Any, *, directed: bool = False, unweighted: bool = False, matfile_variable: str = "network"
) -> Graph:
    """The network of a Graph or another library's object, of a file, or of a data set's name.

    A file of that name comes before a data set.
    """
    if not isinstance(source, str | Path):
        graph = Graph.of(source, directed=directed)
    elif str(source) in DATASETS and not Path(source).exists():
        dataset = DATASETS[str(source)]
        graph = dataset.generate() if dataset.generate else read_graph(fetch(dataset), directed=directed)
    else:
        graph = read_graph(Path(source), directed=directed, unweighted=unweighted, matfile_variable=matfile_variable)
    return graph.without_weights() if unweighted else graph
