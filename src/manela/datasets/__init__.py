"""Data sets: the networks of the paper, and generated ones."""
