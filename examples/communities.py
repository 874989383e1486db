"""Four hosts learn SYN-SBM together, each knowing a quarter of it; one process learns the whole; both are scored."""

import subprocess
import sys
import time
from pathlib import Path

from manela import Manela, read_embedding, stochastic_block_model
from manela.analysis import measure_separation
from manela.maps import write_map

FOLDER = Path("demo")


def main() -> None:
    """Federate, learn alone, score, draw."""
    graph, communities = stochastic_block_model()
    FOLDER.mkdir(exist_ok=True)
    print(f"SYN-SBM: {graph.number_of_nodes:,} nodes, {graph.number_of_edges:,} edges, 3 communities", flush=True)

    print("four daemons, each with a quarter of the nodes, over mutual TLS:", flush=True)
    output = FOLDER / "sbm-federated.npz"
    command = [sys.executable, "-m", "manela", "federate", "sbm", "--hosts", "4", "-o", str(output)]
    begun = time.perf_counter()
    subprocess.run(command, check=True)
    together, seconds = read_embedding(output), time.perf_counter() - begun
    print(f"    {_say(measure_separation(together.vectors, communities))}, {seconds:.1f} s with starting the daemons")

    print("one process with the whole network:", flush=True)
    begun = time.perf_counter()
    alone = Manela(ratios=(0.5, 0.5), random_state=0).fit(graph)
    seconds = time.perf_counter() - begun
    print(f"    {_say(measure_separation(alone.embedding_, communities))}, {seconds:.1f} s")
    alone.save(FOLDER / "sbm.npz")

    picture = FOLDER / "sbm.png"
    axes = together.plot([f"community {community + 1}" for community in communities])
    axes.set_title("SYN-SBM, learned by four hosts")
    axes.figure.savefig(picture, dpi=160, bbox_inches="tight")
    page = FOLDER / "map.html"
    write_map(together, page, [f"community {community}" for community in communities], graph, title="SYN-SBM")
    print(f"wrote {output}, {FOLDER / 'sbm.npz'}, {picture} and {page}, which opens in a browser")


def _say(separation: object) -> str:
    silhouette, accuracy = separation.silhouette, separation.accuracy  # type: ignore[attr-defined]
    return f"silhouette {silhouette:.3f}, nearest centre is the node's own: {accuracy:.1%}"


if __name__ == "__main__":
    main()
