"""MastodonArchiveSource: reads whom a person follows, mentions and boosts from the archive that Mastodon exports."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from manela.errors import SourceError
from manela.sources.archive import Archive
from manela.sources.fediverse import account_of_url, as_account
from manela.sources.json_items import Readable, read_items
from manela.sources.source import Source
from manela.sources.state import ImportState
from manela.sources.ties import Ties, cut_into_batches

FOLLOWING, OUTBOX, ACTOR = "following_accounts.csv", "outbox.json", "actor.json"

_MOST_ACTOR_BYTES = 1 << 22
_LONGEST_LINE = 1 << 16
_MOST_ACCOUNTS = 5_000_000
"""Most accounts that one person can be tied to; if larger, a made-up archive could take more memory."""


class MastodonArchiveSource(Source):
    """A person's ties: 1 for an account that they follow, and 1 more for each mention and each boost.

    Edges lead from the person to the other accounts. Nothing is unpacked to disk, and files that would exhaust memory
    are refused.

    Parameters
    ----------
    path : Path
        A folder, .zip or .tar.gz with any of `following_accounts.csv`, `outbox.json` and `actor.json`; or one of the
        first two.
    owner : str, optional
        The person, as name@host; by default it is read from the archive.

    Examples
    --------
    >>> MastodonArchiveSource(Path("/home/ann/archive.zip")).key
    'mastodon-archive /home/ann/archive.zip'
    """

    def __init__(self, path: Path, owner: str | None = None) -> None:
        self.path, self.owner = path, owner
        self._counts = {"follows": 0, "mentions": 0, "boosts": 0}
        self._left_out = 0

    @property
    def key(self) -> str:
        """The key: the path, and the owner if given."""
        return f"mastodon-archive {self.path.absolute()}" + (f" {self.owner}" if self.owner else "")

    def describe(self) -> str:
        """Return how many follows, mentions and boosts there are, and how many were left out."""
        counts = ", ".join(f"{count:,} {name}" for name, count in self._counts.items())
        return f"{counts}; {self._left_out:,} of accounts whose name cannot be read were left out"

    def read(self, state: ImportState) -> Iterator[Ties]:  # noqa: ARG002
        """Yield all edges in batches."""
        self._counts, self._left_out = dict.fromkeys(self._counts, 0), 0
        if not self.path.exists():
            raise SourceError(f"{self.path}: there is no such file or folder")
        owner = self._find_owner()
        weights: dict[str, int] = {}
        has_files = False
        with self._open(FOLLOWING) as file:
            if file is not None:
                has_files = True
                self._count(weights, "follows", _read_follows(file, owner, str(self.path)))
        with self._open(OUTBOX) as file:
            if file is not None:
                has_files = True
                for activity in read_items(file, "orderedItems", f"{self.path}: {OUTBOX}"):
                    kind, others = _read_activity(activity, owner)
                    self._count(weights, kind, iter(others))
        if not has_files:
            raise SourceError(
                f"{self.path}: must hold {FOLLOWING} or {OUTBOX}, as Mastodon exports them, and has neither"
            )
        weights.pop(owner, None)  # replies to oneself are no ties
        yield from cut_into_batches((owner, other, float(weight)) for other, weight in weights.items())

    def _count(self, weights: dict[str, int], kind: str, others: Iterator[str | None]) -> None:
        """Count the accounts that the person has dealt with, by name."""
        for other in others:
            if other is None:
                self._left_out += 1
                continue
            self._counts[kind] += 1
            weights[other] = weights.get(other, 0) + 1
            if len(weights) > _MOST_ACCOUNTS:
                raise SourceError(
                    f"{self.path}: a person must be tied to at most {_MOST_ACCOUNTS:,} accounts, got more"
                )

    def _open(self, name: str) -> AbstractContextManager[Readable | None]:
        """Open a file of the archive; if the path is a single file, only that one can be opened."""
        if self.path.is_dir() or self.path.suffix not in (".csv", ".json"):
            return Archive(self.path).open_member(name)
        is_this_file = self.path.suffix == Path(name).suffix and name != ACTOR
        return Archive(self.path.parent).open_member(self.path.name) if is_this_file else nullcontext()

    def _find_owner(self) -> str:
        """Return the owner of the archive: as given, or from actor.json, or from the first activity."""
        if self.owner is not None:
            owner = as_account(self.owner, "")
            if owner is None:
                raise SourceError(f"an owner must be given as name@host, got {self.owner[:80]!r}")
            return owner
        with self._open(ACTOR) as file:
            owner = None if file is None else _read_actor(file, f"{self.path}: {ACTOR}")
        if owner is None:
            with self._open(OUTBOX) as file:
                items = iter(()) if file is None else read_items(file, "orderedItems", f"{self.path}: {OUTBOX}")
                first = next(items, None)
                owner = account_of_url(first.get("actor")) if isinstance(first, dict) else None
        if owner is None:
            raise SourceError(f"{self.path}: does not say whose it is: give owner='name@host'")
        return owner


def _read_actor(file: Readable, label: str) -> str | None:
    """Return the account that an actor.json describes."""
    data = file.read(_MOST_ACTOR_BYTES + 1)
    if len(data) > _MOST_ACTOR_BYTES:
        raise SourceError(f"{label}: must have at most {_MOST_ACTOR_BYTES:,} bytes, got more")
    try:
        actor = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{label}: is not JSON: {error}") from None
    if not isinstance(actor, dict):
        return None
    address = actor.get("id")
    try:
        host = urlsplit(address).netloc if isinstance(address, str) else ""
    except ValueError:
        host = ""
    name = actor.get("preferredUsername")
    return as_account(name, host) if isinstance(name, str) and "@" not in name else account_of_url(address)


def _read_follows(file: Readable, owner: str, label: str) -> Iterator[str | None]:
    """Yield the accounts of a following_accounts.csv, with or without a header."""
    host = owner.partition("@")[2]
    text = io.TextIOWrapper(io.BufferedReader(_Raw(file)), encoding="utf-8-sig", errors="replace", newline="")
    try:
        for number, row in enumerate(csv.reader(_bound_lines(text, label))):
            if row and not (number == 0 and row[0].strip().lower() == "account address"):
                yield as_account(row[0], host)
    except csv.Error as error:
        raise SourceError(f"{label}: is not a CSV as Mastodon exports it: {error}") from None
    finally:
        text.detach()


def _bound_lines(text: io.TextIOWrapper, label: str) -> Iterator[str]:
    """Yield lines, and refuse one that is too long."""
    while line := text.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise SourceError(
                f"{label}: a line of {FOLLOWING} must have fewer than {_LONGEST_LINE:,} characters, got more"
            )
        yield line


class _Raw(io.RawIOBase):
    """Adapts a Readable to io.RawIOBase, for a text reader."""

    def __init__(self, file: Readable) -> None:
        self._file = file

    def readable(self) -> bool:
        """Return that the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return how many bytes there were."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _read_activity(activity: Any, owner: str) -> tuple[str, list[str | None]]:
    """Return the kind of an activity, "mentions" or "boosts", and the accounts that it is about."""
    if not isinstance(activity, dict):
        return "mentions", []
    about = activity.get("object")
    if activity.get("type") == "Announce":
        address = about.get("id") if isinstance(about, dict) else about
        return "boosts", [account_of_url(address)]
    tags = about.get("tag") if isinstance(about, dict) and activity.get("type") == "Create" else None
    mentions = [tag for tag in tags if isinstance(tag, dict)] if isinstance(tags, list) else []
    return "mentions", [_read_mention(tag, owner) for tag in mentions if tag.get("type") == "Mention"]


def _read_mention(tag: dict[str, Any], owner: str) -> str | None:
    """Return the account of a mention; accounts of the same server have no host."""
    name = tag.get("name")
    if isinstance(name, str) and "@" not in name.removeprefix("@"):
        return account_of_url(tag.get("href")) or as_account(name, owner.partition("@")[2])
    return as_account(name, "")
