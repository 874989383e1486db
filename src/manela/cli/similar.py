"""manela similar: the nodes nearest to a node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from manela.data.embedding import Embedding


def similar(
    embedding: Annotated[Path, typer.Argument(metavar="OUT", help="What `manela embed` wrote.")],
    node: Annotated[str, typer.Argument(metavar="NODE", help="The id of a node.")],
    count: Annotated[int, typer.Option("--count", "-k", help="Number of nodes.")] = 10,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            "--with", metavar="FILE", help="Look in this file, too, as the export of another host; repeatable."
        ),
    ] = None,
) -> None:
    """List the nodes nearest to NODE.

    Each line has an id and the cosine of its vector with that of NODE.
    """
    from manela.errors import UnknownNodeError
    from manela.formats.embeddings import read_embedding

    vectors = read_embedding(embedding)
    for path in beside or ():
        vectors = _join(vectors, embedding, read_embedding(path), path)
    ids_by_text = {str(node_id): node_id for node_id in vectors.nodes.tolist()}
    if node not in ids_by_text:
        raise UnknownNodeError(
            f"{embedding}: no node has the id {node!r}; the first of {len(vectors):,} nodes is {vectors.nodes[0]}"
        )
    for neighbour, cosine in vectors.most_similar(ids_by_text[node], count):
        print(f"{neighbour}\t{cosine:.4f}")


def _join(one: Embedding, path: Path, other: Embedding, other_path: Path) -> Embedding:
    """Return the vectors of both files, or raise if they cannot be compared."""
    import numpy as np

    from manela.errors import FormatError

    frames = [vectors.provenance.get("frame") for vectors in (one, other)]
    if frames[0] != frames[1] or None in frames:
        shown = [frame or "none" for frame in frames]
        raise FormatError(
            f"{path} and {other_path}: vectors of one frame can be compared, got {shown[0]} and {shown[1]}"
        )
    nodes = np.concatenate((one.nodes, other.nodes))
    if len(set(nodes.tolist())) < len(nodes):
        raise FormatError(f"{path} and {other_path}: must not have the same nodes")
    return type(one)(nodes, np.concatenate((one.vectors, other.vectors)), None, one.provenance)
