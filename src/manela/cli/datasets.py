"""manela datasets: the catalogue of data sets."""

from __future__ import annotations

from typing import Annotated

import typer

from manela.cli.panels import Commands

datasets = Commands("List, download and locate data sets.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set's name.")]


@datasets.command("list")
def list_all() -> None:
    """List the data sets, and which of them are here."""
    from manela.formats.datasets import DATASETS, locate

    for dataset in DATASETS.values():
        state = "generated" if dataset.generate else "here" if locate(dataset) else f"{dataset.size / 1e6:.1f} MB"
        print(f"{dataset.name:<13}{dataset.nodes:>7,} nodes  {state:<10} {dataset.title}; {dataset.licence}")


@datasets.command()
def fetch(name: Name) -> None:
    """Download a data set and print the path of its file."""
    from manela.formats import datasets as catalogue
    from manela.system.progress import report_download

    dataset = catalogue.find(name)
    print(catalogue.fetch(dataset, report_download(name)))


@datasets.command()
def path(name: Name) -> None:
    """Print the path of a downloaded data set."""
    from manela.errors import DatasetError
    from manela.formats import datasets as catalogue

    dataset = catalogue.find(name)
    if dataset.generate:
        raise DatasetError(f"{name} is generated and has no file; name it as GRAPH to use it")
    file = catalogue.locate(dataset)
    if file is None:
        raise DatasetError(f"{name} is not on this machine; fetch it with `manela datasets fetch {name}`")
    print(file)
