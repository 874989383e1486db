"""What a host keeps on disk: configuration, keys, the store of edges and peers, vectors, backups.

A kill at any moment leaves these files whole. Nothing here learns or talks to peers, except to fetch a certificate.
"""
