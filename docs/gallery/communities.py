# %% [markdown]
# # Communities
#
# Who belongs together? We make a network with three communities, learn vectors from its edges alone, find the groups again, and draw them.

# %%
from sklearn.metrics import adjusted_mutual_info_score

from manela import Manela, stochastic_block_model
from manela.analysis import find_groups

graph, communities = stochastic_block_model()
print(f"{graph.number_of_nodes:,} nodes, {graph.number_of_edges:,} edges, {communities.max() + 1} communities")

# %% [markdown]
# The defaults are made for networks like this one. `random_state` fixes every random choice, so that you get the same vectors on any number of threads.

# %%
model = Manela(random_state=0).fit(graph)
model.embedding_.shape

# %% [markdown]
# `find_groups` chooses the number of groups by itself. It hides a fifth of the nodes and says how well they fit: a silhouette near 0 means that there are no
# groups to find, and a stability near 1 that two halves of the nodes lead to the same ones.

# %%
groups = find_groups(model.embedding_)
print(f"{groups.count} groups of {', '.join(map(str, groups.sizes))} nodes")
print(f"silhouette {groups.silhouette:.2f}, stability {groups.stability:.2f}")
print(f"agreement with the communities: {adjusted_mutual_info_score(communities, groups.labels):.3f} of 1")

# %% [markdown]
# Colours are the groups that were found; no community was given.

# %%
axes = model.plot(groups.labels)

# %% [markdown]
# `manela groups vectors.npz` does the same in a shell, and `manela map vectors.npz -o map.html` writes a page to look around in. See [groups](../groups.md) and
# [a map](../map.md).
