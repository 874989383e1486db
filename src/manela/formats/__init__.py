"""File formats: readers of networks, readers and writers of embeddings."""
