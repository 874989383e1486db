"""A host as pure state: events in, instructions out, so any failure replays as a list of events.

Peers, edges, rounds, trust and what is published are here. There is no socket, clock, thread, path or database here:
how long to wait for whom is the business of the driver that follows the instructions.
"""
