"""manela similar: the nodes nearest to a node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def similar(
    embedding: Annotated[Path, typer.Argument(metavar="OUT", help="What `manela embed` wrote.")],
    node: Annotated[str, typer.Argument(metavar="NODE", help="The id of a node.")],
    count: Annotated[int, typer.Option("--count", "-k", help="Number of nodes.")] = 10,
) -> None:
    """List the nodes nearest to NODE.

    Each line has an id and the cosine of its vector with that of NODE.
    """
    from manela.errors import UnknownNodeError
    from manela.formats.embeddings import read_embedding

    vectors = read_embedding(embedding)
    ids_by_text = {str(node_id): node_id for node_id in vectors.nodes.tolist()}
    if node not in ids_by_text:
        raise UnknownNodeError(
            f"{embedding}: no node has the id {node!r}; the first of {len(vectors):,} nodes is {vectors.nodes[0]}"
        )
    for neighbour, cosine in vectors.most_similar(ids_by_text[node], count):
        print(f"{neighbour}\t{cosine:.4f}")
