"""manela similar: the nodes nearest to a node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def similar(
    embedding: Annotated[Path, typer.Argument(metavar="OUT", help="What `manela embed` wrote.")],
    node: Annotated[str, typer.Argument(metavar="NODE", help="The id of a node.")],
    count: Annotated[int, typer.Option("--count", "-k", help="How many.")] = 10,
) -> None:
    """List the nodes whose vectors have the largest cosine with that of NODE, an id and a cosine a line."""
    from manela.errors import UnknownNodeError
    from manela.formats.embeddings import read_embedding

    read = read_embedding(embedding)
    written = {str(known): known for known in read.nodes.tolist()}
    if node not in written:
        raise UnknownNodeError(
            f"{embedding}: no node has the id {node!r}; there are {len(read):,}, the first is {read.nodes[0]}"
        )
    for other, cosine in read.most_similar(written[node], count):
        print(f"{other}\t{cosine:.4f}")
