"""Engines, which run the rounds: on processors, on a GPU, or on a Ray cluster."""
