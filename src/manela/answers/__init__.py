"""Answers from vectors: who is near, groups, odd edges, missing edges."""
