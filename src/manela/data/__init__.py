"""The two nouns of the library: `Graph`, a network as arrays, and `Embedding`, vectors with their ids.

They come from and go to what is in memory: edges, matrices, tables, graphs of other libraries, and notebooks. Only an
index of vectors is saved from here: files are in `formats`, other origins of networks in `sources`, learning in
`engines`.
"""
