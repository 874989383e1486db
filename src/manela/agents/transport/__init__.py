"""How bytes get from host to host."""
