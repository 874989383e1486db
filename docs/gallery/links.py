# %% [markdown]
# # Links
#
# Which edges are missing? We hide a tenth of the edges of a network, learn from the rest, and see whether the nodes that are recommended are those that
# were hidden.

# %%
import numpy as np

from manela import Manela, planted_partition
from manela.analysis import hide_edges, rank_links, recommend, sample_nodes, score_vectors

graph, communities = planted_partition(nodes=2000, communities=100, inside=7, outside=2)
hidden = hide_edges(graph, share=0.1, random_state=0)
print(f"{graph.number_of_edges:,} edges, of which {hidden.hidden.nnz // 2:,} are hidden")

# %%
model = Manela(random_state=0).fit(hidden.graph)
scorer = score_vectors(model.embedding_)

# %% [markdown]
# For each node, all others that it is not joined with are ranked by the product of the vectors. *Average precision* is 1 where the hidden neighbours come
# first, and *AUC* is the chance that a hidden edge scores higher than a pair that is none.

# %%
scores = rank_links(scorer, hidden, sample_nodes(hidden, 500, random_state=0), random_state=0)
print(f"mean average precision {scores.mean_average_precision:.3f}, AUC {scores.auc:.3f}")

# %% [markdown]
# Recommendations for one node, with its hidden neighbours marked. Those that are not marked may still be good guesses: nodes of the same community that happen
# to have no edge.

# %%
node = int(np.argmax(hidden.hidden.sum(axis=1)))
[(rows, values)] = recommend(hidden.graph, scorer, np.array([node]), count=6)
wanted = set(hidden.hidden[[node]].nonzero()[1].tolist())
for row, value in zip(rows.tolist(), values, strict=True):
    print(f"node {hidden.graph.nodes[row]:>4}  {value:.3f}  {'hidden edge' if row in wanted else ''}")

# %% [markdown]
# `manela recommend` does this for your own network, and `manela evaluate links` measures several methods side by side. See
# [link prediction](../link-prediction.md).
