# %% [markdown]
# # A million nodes on a GPU
#
# `engine="auto"`, the default, takes a GPU where there is one, the run fits into its memory, and processors would take more than about 20 seconds. This notebook
# asks for the card by name: it learns a network of a million nodes if it finds one, and one of 20,000 on processors otherwise.

# %%
import time

import numpy as np

from manela import Manela
from manela.datasets.generators import planted_partition

try:
    import torch

    has_card = torch.cuda.is_available()
except ImportError:
    has_card = False
nodes = 1_000_000 if has_card else 20_000
graph, communities = planted_partition(nodes=nodes, communities=nodes // 100, inside=6, outside=2)
print(f"{'a card was found' if has_card else 'no card here'}: {graph.number_of_nodes:,} nodes")

# %% [markdown]
# `manela info GRAPH` says beforehand how much memory and time a run needs. On a card, rows can be kept in half the memory with `snapshot="bfloat16"`; see
# [on a GPU](../gpu.md).

# %%
begun = time.perf_counter()
model = Manela(dimensions=64, engine="gpu" if has_card else "cpu", random_state=0).fit(graph)
seconds = time.perf_counter() - begun
print("engine:", model.provenance_["engine"].split(",")[0])

# %% [markdown]
# A node's nearest should be of its own community, of which there are a hundred nodes among all of them.

# %%
asked = np.random.default_rng(0).choice(nodes, 200, replace=False)
near = model.most_similar(asked.tolist(), k=10)
same = np.mean(
    [communities[other] == communities[node] for node, found in zip(asked, near, strict=True) for other, _ in found]
)
print(f"of the ten nearest, {same:.0%} are of the same community; chance alone would be {100 / nodes:.2%}")

# %% [markdown]
# What a card is worth, beside processors and beside other libraries, is on the page of [benchmarks](../benchmarks.md#gpus-gpu).
