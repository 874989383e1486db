"""Round requests: the rounds that an operator asks a daemon for, kept in its store until they are carried out."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from manela.agents.store import Store

_REQUESTED, _DONE = "learn", "learned"
"""Keys in the store: the last request, and the id of the last one that was carried out."""


class RoundRequest(NamedTuple):
    """A request that was not carried out yet."""

    id: str
    rounds: int


def find_request(store: Store) -> RoundRequest | None:
    """Return the open request, or None if there is none."""
    number, _, rounds = (store.get(_REQUESTED) or "").partition(" ")
    return RoundRequest(number, int(rounds)) if rounds.isdecimal() and number != store.get(_DONE) else None


def request_rounds(store: Store, rounds: int) -> int:
    """Ask for more rounds, in addition to those of an open request; return how many are requested in all."""
    waiting = find_request(store)
    if waiting is not None:
        rounds += waiting.rounds
    store.put(_REQUESTED, f"{secrets.token_hex(8)} {rounds}")
    return rounds


def close_request(store: Store, request: RoundRequest) -> None:
    """Record that a request is carried out, so that no later start does it again."""
    store.put(_DONE, request.id)
