"""Other methods for node embeddings, to compare with: DeepWalk, node2vec, NetMF, ProNE.

They are estimators as `Manela` is, with their own loops; of the engines they use only the arcs of a network.
"""
