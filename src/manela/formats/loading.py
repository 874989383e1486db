"""Loads a network or labels from an object, a file, a URL or the name of a data set."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

from manela.data.graph import Graph
from manela.errors import DatasetError, Option, ParameterError
from manela.formats.datasets import DATASETS, fetch
from manela.formats.graphs import read_graph
from manela.formats.labels import Labels, read_labels
from manela.system.progress import DownloadReporter


def load_graph(source: Any, *, progress: DownloadReporter | None = None, **reading: Any) -> Graph:
    """Return the network of a Graph or another library's object, of a file, an address or a data set's name.

    A file of that name comes before a data set, which is downloaded if need be. `reading` is as for `read_graph`; what
    cannot apply must have its default: an object of another library has no file, and a generated data set is as it is.
    """
    if not isinstance(source, str | Path):
        _refuse(reading, {"directed", "unweighted", "duplicates"}, "which is not read from a file")
        options = {name: reading[name] for name in ("directed", "duplicates") if name in reading}
        graph = Graph.of(source, **options)
        return graph.without_weights() if reading.get("unweighted") else graph
    if str(source) in DATASETS and not Path(source).exists():
        dataset = DATASETS[str(source)]
        if dataset.generate is not None:
            _refuse(reading, {"unweighted", "size_limit"}, "which is generated, undirected and without weights")
            return dataset.generate()
        source = fetch(dataset, progress)
    return read_graph(source, progress=progress, **reading)


def _refuse(reading: dict[str, Any], allowed: set[str], reason: str) -> None:
    """Raise ParameterError if an option of `read_graph` that is not allowed differs from its default."""
    defaults = {name: argument.default for name, argument in signature(read_graph).parameters.items()}
    refused = [name for name in sorted(set(reading) - allowed) if reading[name] != defaults[name]]
    if refused:
        names = [part for name in refused for part in (", ", Option(name))][1:]
        raise ParameterError(*names, f" cannot apply to this network, {reason}")


def load_labels(source: str | Path, progress: DownloadReporter | None = None) -> Labels:
    """Load labels from a file or by the name of a data set; a file takes precedence."""
    path = Path(source)
    if str(source) in DATASETS and not path.exists():
        dataset = DATASETS[str(source)]
        if dataset.generate is not None:
            raise DatasetError(f"{source} has no labels; pass a file of labels")
        path = fetch(dataset, progress)
    return read_labels(path)
