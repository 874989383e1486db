"""Transports: carry bytes between hosts."""
