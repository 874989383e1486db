"""A network, and its labels, from whatever the user names: an object, a file, or a data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manela.datasets.catalogue import DATASETS, fetch
from manela.errors import DatasetError
from manela.formats.graphs import read_graph
from manela.formats.labels import Labels, read_labels
from manela.formats.sources import SIZE_LIMIT
from manela.graph import Graph
from manela.progress import DownloadReporter


def load_graph(
    source: Any,
    *,
    directed: bool = False,
    unweighted: bool = False,
    matfile_variable: str = "network",
    duplicates: str = "sum",
    columns: Sequence[str] | None = None,
    size_limit: float = SIZE_LIMIT,
    progress: DownloadReporter | None = None,
) -> Graph:
    """The network of a Graph or another library's object, of a file, an address or a data set's name.

    A file of that name comes before a data set, which is downloaded if need be.
    """
    if not isinstance(source, str | Path):
        graph = Graph.of(source, directed=directed, duplicates=duplicates)
        return graph.without_weights() if unweighted else graph
    if str(source) in DATASETS and not Path(source).exists():
        dataset = DATASETS[str(source)]
        if dataset.generate is not None:
            return dataset.generate()
        source = fetch(dataset, progress)
    return read_graph(
        source, directed=directed, unweighted=unweighted, matfile_variable=matfile_variable, duplicates=duplicates,
        columns=columns, size_limit=size_limit, progress=progress,
    )  # fmt: skip


def load_labels(source: str | Path, progress: DownloadReporter | None = None) -> Labels:
    """The labels in a file, or those of a data set's name; a file of that name comes before a data set."""
    path = Path(source)
    if str(source) in DATASETS and not path.exists():
        dataset = DATASETS[str(source)]
        if dataset.generate is not None:
            raise DatasetError(f"{source} has communities and no labels; give a file of labels")
        path = fetch(dataset, progress)
    return read_labels(path)
