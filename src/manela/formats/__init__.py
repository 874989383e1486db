"""Files: networks, vectors and labels as they lie on a disk, and data sets by name.

`loading.load_graph` takes anything that names or holds a network. Input is hostile until checked, and bounded before
it is parsed; output appears whole or not at all. Places that are asked for their network, such as databases, are in
`sources`.
"""
