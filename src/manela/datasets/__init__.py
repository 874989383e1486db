"""Networks by name: the paper's, and generated ones."""
