"""Sources of networks: each module reads edges from one kind of place."""
