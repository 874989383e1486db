"""Moves bytes between hosts: gRPC with mutual TLS.

Only this room knows gRPC. What the bytes mean is the business of `wire`; who may ask what, that of `state`.
"""
