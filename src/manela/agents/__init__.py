"""Hosts that each hold a part of a network, and learn its vectors together."""
