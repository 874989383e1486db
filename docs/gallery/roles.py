# %% [markdown]
# # Roles, with context vectors
#
# Two nodes can be alike without being near: two shops that never meet, but have the same customers. With `context=True` each node gets a second vector, and
# nodes become alike by having *alike neighbours* rather than by being joined.
#
# Our network has ten towns. In each there are shops, customers and suppliers; a customer is joined with shops of the town, a shop with suppliers of the
# town, and nobody with anybody of the same kind.

# %%
import numpy as np

from manela import Manela

rng = np.random.default_rng(0)
edges, kinds, towns = [], {}, {}
for town in range(10):
    people = {
        kind: [f"{kind} {town}-{k}" for k in range(size)]
        for kind, size in (("customer", 40), ("shop", 12), ("supplier", 6))
    }
    kinds |= {name: kind for kind, names in people.items() for name in names}
    towns |= {name: town for names in people.values() for name in names}
    for customer in people["customer"]:
        edges += [(customer, shop) for shop in rng.choice(people["shop"], 4, replace=False)]
    for shop in people["shop"]:
        edges += [(shop, supplier) for supplier in rng.choice(people["supplier"], 3, replace=False)]
print(f"{len(kinds)} nodes, {len(edges):,} edges")

# %% [markdown]
# We ask for the ten nearest nodes of each shop, by plain vectors and by context vectors, and count how many are shops too.


# %%
def count_alike(model):
    shops = [name for name, kind in kinds.items() if kind == "shop"]
    near = {shop: [other for other, _ in model.most_similar(shop, k=10)] for shop in shops}
    same_kind = np.mean([kinds[other] == "shop" for others in near.values() for other in others])
    same_town = np.mean([towns[other] == towns[shop] for shop, others in near.items() for other in others])
    return f"{same_kind:.0%} are shops, {same_town:.0%} are of the same town"


one_hop = Manela(ratios=(1.0,), smooth=False, random_state=0).fit(edges)
two_hops = Manela(smooth=False, random_state=0).fit(edges)
context = Manela(context=True, smooth=False, random_state=0).fit(edges)
print("one hop: ", count_alike(one_hop))
print("two hops:", count_alike(two_hops))
print("context: ", count_alike(context))

# %% [markdown]
# On a plane, the shops of each town form a small cluster. The customers and suppliers of a town share another one: both have its shops for neighbours.

# %%
_ = context.plot(labels=kinds)

# %% [markdown]
# Plain vectors that learn from one hop (`ratios=(1.0,)`) put a shop mostly next to its own customers and suppliers. Those that learn from two hops, as by default,
# find more shops. With context vectors a shop lies next to the other shops of its town, although it has no edge with them. We switched smoothing off here, since it
# pulls joined nodes together. For directed networks, such as citations, context vectors are always learned: see
# [Python](../python.md#directed-networks).
