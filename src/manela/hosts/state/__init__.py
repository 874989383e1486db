"""A host as pure state: events in, instructions out, so any failure replays as a list of events.

Peers, edges, rounds, trust and what is published are here. There is no socket, clock, thread, path or database here:
time arrives as an event, and a driver follows the instructions.
"""
