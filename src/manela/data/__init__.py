"""The two nouns of the library: `Graph`, a network as arrays, and `Embedding`, vectors with their ids.

They come from and go to what is in memory: edges, matrices, tables and graphs of other libraries, and notebooks.
Files are in `formats`, places where networks live in `sources`, learning in `engines`.
"""
