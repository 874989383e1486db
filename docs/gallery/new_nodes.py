# %% [markdown]
# # New nodes
#
# A network grows every day. A node that is added after fitting gets its vector from its edges, at once, while all other vectors stay the same, to the
# bit: what you have built on them stays valid.

# %%
import time

import numpy as np
from sklearn.linear_model import LogisticRegression

from manela import Graph, Manela, stochastic_block_model

graph, communities = stochastic_block_model()
rng = np.random.default_rng(0)
late = np.sort(rng.choice(graph.number_of_nodes, 100, replace=False))
early = np.setdiff1d(np.arange(graph.number_of_nodes), late)
sources, targets = graph.to_scipy().nonzero()
known = np.isin(sources, early) & np.isin(targets, early) & (sources < targets)
print(f"{len(early)} nodes are there from the beginning, {len(late)} come later")

# %%
model = Manela(random_state=0).fit(Graph.from_edges(sources[known], targets[known]))
classifier = LogisticRegression(max_iter=1000).fit(model[early], communities[early])

# %% [markdown]
# The hundred newcomers bring their edges to nodes that are known. `transform` gives vectors of all nodes that it is asked about; `partial_fit(…, freeze=True)`
# would keep them in the model.

# %%
new = np.isin(sources, late) & np.isin(targets, early)
arrivals = Graph.from_edges(sources[new], targets[new])
begun = time.perf_counter()
vectors = model.transform(arrivals)
seconds = time.perf_counter() - begun
rows = np.flatnonzero(np.isin(arrivals.nodes, late))
right = classifier.predict(vectors[rows]) == communities[arrivals.nodes[rows].astype(int)]
print(
    f"community of a newcomer guessed right: {right.mean():.0%}; chance alone: {np.bincount(communities).max() / len(communities):.0%}"
)
print("took less than a second:", seconds < 1)

# %% [markdown]
# How much worse this is than learning everything again is [measured](../benchmarks.md#nodes-that-come-later-newcomers). A model that was saved as `.npz` places new nodes too,
# without its network.
