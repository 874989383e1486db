"""Audit: what operators and peers did to a host, recorded beside what was refused, and both in one list."""

from __future__ import annotations

import datetime
import json
import os
import pwd
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from manela.errors import ParameterError
from manela.hosts.folder.store import Store

_MOST_ACTIONS, _MOST_OF_PEER = 100_000, 5_000
"""Actions kept of one user, and of one peer; more take disk space."""
_PEER = "peer "
"""What the user of an action begins with that a peer asked for."""
_SETTINGS, _LOGGED = "settings", "logged"
"""Keys in the store: the settings at the last start, and the last action that was logged."""
_LONGEST = 500
"""Letters kept of an action's detail; more take disk space."""


class Action(NamedTuple):
    """Something that an operator did, or that a peer asked for; `id` grows from one to the next."""

    id: int
    time: str
    user: str
    action: str
    detail: str


def record(store: Store, action: str, detail: str = "", user: str | None = None, most: int | None = None) -> None:
    """Record an action; by default it is that of the user whose process this is."""
    with store.write() as database:
        record_within(database, action, detail, user, most)


def record_within(
    database: sqlite3.Connection, action: str, detail: str = "", user: str | None = None, most: int | None = None
) -> None:
    """Record an action within a transaction that also carries it out, and delete the oldest beyond the limits.

    Each user and each peer has a separate limit, `most`, so that none can push out the actions of others.
    """
    shown = "".join(letter if letter.isprintable() else "?" for letter in detail[:_LONGEST])
    user = user or _find_user()
    database.execute(
        "INSERT INTO actions (time, user, action, detail) VALUES (?, ?, ?, ?)", (tell_time(), user, action, shown)
    )
    database.execute(
        "DELETE FROM actions WHERE user = ?1 AND id <= coalesce((SELECT id FROM actions WHERE user = ?1 "
        "ORDER BY id DESC LIMIT 1 OFFSET ?2), -1)",
        (user, most or (_MOST_OF_PEER if user.startswith(_PEER) else _MOST_ACTIONS)),
    )


def tell_time() -> str:
    """Return the time as the audit writes it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


def _find_user() -> str:
    """Return the name of the user whose process this is; the environment could claim another one."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def read_actions(store: Store, after: int) -> list[Action]:
    """Return the actions that were recorded after the one with this id, the oldest first."""
    rows = store.read("SELECT id, time, user, action, detail FROM actions WHERE id > ? ORDER BY id", after)
    return [Action(*row) for row in rows]


def read_audit(store: Store, most: int, since: str = "") -> Iterator[dict[str, Any]]:
    """Yield the latest refusals and actions since a time, the latest first."""
    rows = store.read(
        "SELECT time, 'refusal', peer, reason, detail, id FROM audit WHERE time >= ?1 UNION ALL "
        "SELECT time, 'action', user, action, detail, id FROM actions WHERE time >= ?1 "
        "ORDER BY 1 DESC, 2, 6 DESC LIMIT ?2",
        since, most,
    )  # fmt: skip
    for time, kind, who, what, detail, _ in rows:
        names = ("peer", "reason") if kind == "refusal" else ("user", "action")
        yield {"time": time, "kind": kind, names[0]: who, names[1]: what, "detail": detail}


def record_settings(store: Store, settings: Mapping[str, Any]) -> None:
    """Record which settings have changed since the last start, if there was one."""
    now = {name: repr(value) for name, value in settings.items()}
    before = json.loads(store.get(_SETTINGS) or "{}")
    if now == before:
        return
    store.put(_SETTINGS, json.dumps(now))
    if before:
        names = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
        changes = (f"{name} was {before.get(name, 'not set')}, is {now.get(name, 'not set')}" for name in names)
        record(store, "settings changed", "; ".join(changes))


def take_new_actions(store: Store) -> list[Action]:
    """Return the actions that no daemon has logged yet, and mark them as logged."""
    logged = store.get(_LOGGED) or "0"
    actions = read_actions(store, int(logged) if logged.isdecimal() else 0)
    if actions:
        store.put(_LOGGED, str(actions[-1].id))
    return actions


def check_since(text: str) -> str:
    """Return a date or time as the audit writes it; without a time zone it is UTC."""
    if not text:
        return ""
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ParameterError.of("since", "must be a date or a time, for example 2026-05-31T12:00", text) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    try:
        return time.astimezone(datetime.UTC).isoformat(timespec="microseconds")
    except OverflowError:
        raise ParameterError.of("since", "must be a date or a time, for example 2026-05-31T12:00", text) from None
