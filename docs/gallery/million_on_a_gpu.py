# %% [markdown]
# # A million nodes on a GPU
#
# `engine="auto"`, the default, uses a GPU if there is one, the run fits into its memory, and processors would take more than about 20 seconds. This notebook
# asks for the GPU by name. It learns a network of a million nodes if there is a GPU, and one of 20,000 nodes on processors otherwise: these pages are built
# on a machine without one, and what a GPU printed is at the end.

# %%
import time

import numpy as np

from manela import Manela, planted_partition

try:
    import torch

    has_card = torch.cuda.is_available()
except ImportError:
    has_card = False
nodes = 1_000_000 if has_card else 20_000
graph, communities = planted_partition(nodes=nodes, communities=nodes // 100, inside=6, outside=2)
print(f"{'a card was found' if has_card else 'no card here'}: {graph.number_of_nodes:,} nodes")

# %% [markdown]
# `manela info GRAPH` says beforehand how much memory and time a run needs; see also [on a GPU](../gpu.md).

# %%
begun = time.perf_counter()
model = Manela(dimensions=64, engine="gpu" if has_card else "cpu", random_state=0).fit(graph)
seconds = time.perf_counter() - begun
print(f"engine: {model.provenance_['engine'].split(',')[0]}, {seconds:.0f} s")

# %% [markdown]
# The nearest nodes should be of the node's own community, which has a hundred nodes.

# %%
asked = np.random.default_rng(0).choice(nodes, 200, replace=False)
near = model.most_similar(asked.tolist(), k=10)
same = np.mean(
    [communities[other] == communities[node] for node, found in zip(asked, near, strict=True) for other, _ in found]
)
print(f"of the ten nearest, {same:.0%} are of the same community; chance alone would be {100 / nodes:.2%}")

# %% [markdown]
# How much faster a GPU is than processors, and than other libraries, is on the page of [benchmarks](../benchmarks.md#gpus-gpu).
#
# What this notebook printed on one NVIDIA H200:
#
# ```text
# a card was found: 1,000,000 nodes
# engine: gpu, 7 s
# of the ten nearest, 100% are of the same community; chance alone would be 0.01%
# ```
