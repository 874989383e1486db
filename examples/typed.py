"""A program with types, which `mypy --strict` checks against manela as it is installed."""

import numpy as np
import numpy.typing as npt

from manela import Embedding, Graph, Manela, ManelaError, ProNE, read_graph


def learn(edges: list[tuple[str, str]]) -> Embedding:
    """Vectors for the nodes of some edges."""
    graph: Graph = Graph.of(edges)
    model: Manela = Manela(dimensions=16, random_state=1).fit(graph, progress=False)
    vectors: npt.NDArray[np.float32] = model.embedding_
    return Embedding(model.nodes_, vectors)


def main() -> None:
    """Learn, look, and say what is wrong."""
    embedding = learn([("ann", "bob"), ("bob", "cem"), ("cem", "ann"), ("cem", "dan")])
    near: list[tuple[str, float]] = embedding.most_similar("ann", k=2)
    for name, cosine in near:
        print(f"{name} {cosine:.2f}")
    pairs: npt.NDArray[np.float32] = embedding.edge_vectors([("ann", "dan")], "l2")
    print(pairs.shape, ProNE(dimensions=2).fit(Graph.of([("a", "b"), ("b", "c")])).embedding_.shape)
    try:
        read_graph("none.csv")
    except ManelaError as error:
        print(error)


if __name__ == "__main__":
    main()
