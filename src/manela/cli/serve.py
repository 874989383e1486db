"""manela serve: answers questions from a file of vectors, on this machine only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from manela.data.embedding import Embedding


def serve(
    embedding: Annotated[Path, typer.Argument(metavar="OUT", help="What `manela embed` wrote.")],
    edges: Annotated[
        str,
        typer.Option(metavar="GRAPH", help="The network, so that neighbours are not recommended and edges are scored."),
    ] = "",
    address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address of this machine to listen on.")
    ] = "127.0.0.1:7448",
) -> None:
    """Answer questions about vectors over HTTP.

    Which nodes are nearest, whom to recommend, which edges are odd, groups; until Ctrl-C. A page to ask on is at
    /answers, and /openapi.json describes the rest.
    """
    from http import HTTPStatus
    from threading import Event

    from manela.analysis.answers import PAGE, AnswerBook, Questions
    from manela.errors import ParameterError
    from manela.formats.embeddings import read_embedding
    from manela.system.local_server import LocalServer, Query, Reply, is_local

    host, colon, port = address.rpartition(":")
    if not (colon and port.isdecimal() and len(port) <= 5 and is_local(host.strip("[]"))):
        raise ParameterError.of("address", "must be one of this machine, for example 127.0.0.1:7448", address)
    loaded = read_embedding(embedding)
    arrays = _read_neighbours(edges, loaded) if edges else (None, None)
    names = list(map(str, loaded.nodes.tolist()))
    if len(set(names)) < len(names):
        raise ParameterError(f"{embedding}: the texts of node ids must be unique, but two are the same")
    book = AnswerBook(names, loaded.vectors, len(names), *arrays)
    questions = Questions(embedding.name, lambda: book)

    def find(path: str, query: Query) -> Reply:
        reply = questions.find(PAGE if path == "/" else path, query)
        return reply or Reply("text/plain", f"there are {PAGE} and /openapi.json\n", HTTPStatus.NOT_FOUND)

    server = LocalServer(address, find)
    print(f"{server.url}{PAGE[1:]}: {len(names):,} nodes; press Ctrl-C to stop", flush=True)
    try:
        Event().wait()
    finally:
        server.close()


def _read_neighbours(source: str, embedding: Embedding) -> tuple[Any, Any]:
    """Return the neighbours of each node of an embedding as CSR arrays, without nodes that have no vector."""
    import numpy as np

    from manela.errors import ParameterError
    from manela.formats.loading import load_graph
    from manela.system.progress import report_download

    graph = load_graph(source, progress=report_download(source))
    rows = np.array([embedding.row(node) if node in embedding else -1 for node in graph.nodes.tolist()])
    if (rows < 0).all():
        raise ParameterError(f"{source}: none of its nodes has a vector; pass the network that was embedded")
    sources = np.repeat(rows, graph.degrees)
    targets = rows[graph.indices]
    have_vectors = (sources >= 0) & (targets >= 0)
    order = np.lexsort((targets[have_vectors], sources[have_vectors]))
    counts = np.bincount(sources[have_vectors], minlength=len(embedding))
    return np.concatenate(([0], np.cumsum(counts))), targets[have_vectors][order]
