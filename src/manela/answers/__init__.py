"""Answers from vectors: similar nodes, groups, odd edges and missing edges."""
