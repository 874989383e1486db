"""Evaluation of vectors."""
