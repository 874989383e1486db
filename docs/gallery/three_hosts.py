# %% [markdown]
# # Three hosts
#
# Three organisations have one part of a network each, and none may give its part away. `manela federate` tries this on one machine: it splits a network,
# starts a real daemon for each part, with keys and mutual TLS between them, waits until they are done, and gathers the vectors. Daemons tell each other only what
# neighbours may know.

# %%
import subprocess
import tempfile
from pathlib import Path

from manela import Manela, read_embedding, stochastic_block_model
from manela.analysis import measure_separation

graph, communities = stochastic_block_model(nodes=300)
folder = Path(tempfile.mkdtemp())
sources, targets = graph.to_scipy().nonzero()
_ = (folder / "network.csv").write_text("".join(f"{a},{b}\n" for a, b in zip(sources, targets, strict=True) if a < b))

# %% [markdown]
# `--by random` is the hardest case: most neighbours of a node live on another host.

# %%
done = subprocess.run(
    ["manela", "federate", "network.csv", "--hosts", "3", "--by", "random", "--dimensions", "32", "-o", "together.npz"],
    cwd=folder,
    capture_output=True,
    text=True,
    check=True,
)
together = read_embedding(folder / "together.npz")
print(f"{len(together):,} vectors from three daemons")

# %% [markdown]
# Compared with one process that has the whole network in one place:

# %%
alone = Manela(dimensions=32, random_state=0).fit(graph)
rows = together.rows([type(together.nodes[0])(node) for node in graph.nodes.tolist()])
for name, vectors in (("three hosts", together.vectors[rows]), ("one process", alone.embedding_)):
    print(
        f"{name}: {measure_separation(vectors, communities).accuracy:.0%} of the nodes lie nearest to the centre of their community"
    )

# %%
names = [f"community {number + 1}" for number in communities]
_ = together.plot(labels=dict(zip(together.nodes[rows].tolist(), names, strict=True)))

# %% [markdown]
# For hosts on machines of their own, with invitations, backups and a status page, go on with [the tutorial](../hosts.md).
