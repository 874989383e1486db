"""Loads a network or labels from an object, a file, a URL or the name of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manela.data.graph import Graph
from manela.errors import DatasetError
from manela.formats.datasets import DATASETS, fetch
from manela.formats.graphs import read_graph
from manela.formats.labels import Labels, read_labels
from manela.system.progress import DownloadReporter


def load_graph(source: Any, *, progress: DownloadReporter | None = None, **reading: Any) -> Graph:
    """Return the network of a Graph or another library's object, of a file, an address or a data set's name.

    A file of that name comes before a data set, which is downloaded if need be. `reading` is as for `read_graph`; of
    another library's object `directed`, `unweighted` and `duplicates` count.
    """
    if not isinstance(source, str | Path):
        options = {name: reading[name] for name in ("directed", "duplicates") if name in reading}
        graph = Graph.of(source, **options)
        return graph.without_weights() if reading.get("unweighted") else graph
    if str(source) in DATASETS and not Path(source).exists():
        dataset = DATASETS[str(source)]
        if dataset.generate is not None:
            return dataset.generate()
        source = fetch(dataset, progress)
    return read_graph(source, progress=progress, **reading)


def load_labels(source: str | Path, progress: DownloadReporter | None = None) -> Labels:
    """Load labels from a file or by the name of a data set; a file takes precedence."""
    path = Path(source)
    if str(source) in DATASETS and not path.exists():
        dataset = DATASETS[str(source)]
        if dataset.generate is not None:
            raise DatasetError(f"{source} has communities and no labels; give a file of labels")
        path = fetch(dataset, progress)
    return read_labels(path)
