"""Other methods for node embeddings, to compare with: DeepWalk, node2vec, NetMF, ProNE.

They are estimators as `Manela` is, and share nothing with its engines.
"""
