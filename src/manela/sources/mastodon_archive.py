"""MastodonArchiveSource: reads whom a person follows, mentions and boosts from the archive that Mastodon exports.

Archive opens the files of a folder, a .zip or a .tar.gz by name, without unpacking them to disk.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from manela.errors import Option, SourceError, import_extra
from manela.sources.edges import Edges, cut_into_batches
from manela.sources.fediverse import account_of_url, as_account
from manela.sources.source import Source
from manela.sources.state import ImportState

FOLLOWING, OUTBOX, ACTOR = "following_accounts.csv", "outbox.json", "actor.json"

_MOST_ACTOR_BYTES = 1 << 22
_LONGEST_LINE = 1 << 16
_MOST_ACCOUNTS = 5_000_000
"""Most accounts that one person can be tied to; if larger, a made-up archive could take more memory."""
_BLOCK = 1 << 16
_MOST_ITEM_BYTES = 1 << 22
"""Most bytes of an item of a list, and of what is before the list; more take more memory."""
_DEEPEST = 100
"""Most levels of an item; more take more memory for the same bytes."""


class MastodonArchiveSource(Source):
    """A person's edges: 1 for an account that they follow, and 1 more for each mention and each boost.

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

    directed = True

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

    def read(self, state: ImportState) -> Iterator[Edges]:  # noqa: ARG002
        """Yield all edges in batches."""
        self._counts, self._left_out = dict.fromkeys(self._counts, 0), 0
        if not self.path.exists():
            raise SourceError(f"{self.path}: no such file or folder")
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
                f"{self.path}: must hold {FOLLOWING} or {OUTBOX}, as Mastodon exports them, but has neither"
            )
        weights.pop(owner, None)  # replies to oneself are not edges
        yield from cut_into_batches((owner, other, float(weight)) for other, weight in weights.items())

    def _count(self, weights: dict[str, int], kind: str, others: Iterator[str | None]) -> None:
        for other in others:
            if other is None:
                self._left_out += 1
                continue
            self._counts[kind] += 1
            weights[other] = weights.get(other, 0) + 1
            if len(weights) > _MOST_ACCOUNTS:
                raise SourceError(
                    f"{self.path}: a person must have edges to at most {_MOST_ACCOUNTS:,} accounts, got more"
                )

    def _open(self, name: str) -> AbstractContextManager[IO[bytes] | None]:
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
            raise SourceError(f"{self.path}: does not say whose it is; pass ", Option("owner", "name@host"))
        return owner


def read_items(file: IO[bytes], name: str, label: str, block: int = _BLOCK) -> Iterator[Any]:
    """Yield the items of the list under the key `name` of a JSON object, one at a time; `label` is for errors.

    Examples
    --------
    >>> list(read_items(io.BytesIO(b'{"total": 2, "items": [1, {"a": 2}]}'), "items", "a file"))
    [1, {'a': 2}]
    """
    ijson = import_extra("ijson", "sources", "reading an outbox.json")
    reader = _ItemReader(file, label)
    depth, key, builder, is_inside = 0, "", None, False
    try:
        for event, value in ijson.basic_parse(reader, buf_size=block):
            depth += event.startswith("start_") - event.startswith("end_")
            if depth > _DEEPEST:
                raise SourceError(f"{label}: an item must have at most {_DEEPEST} levels, got more")
            if not is_inside:
                key = value if event == "map_key" and depth == 1 else key
                is_inside = event == "start_array" and depth == 2 and key == name
                continue
            if depth == 1:  # the end of the list
                return
            builder = builder or ijson.ObjectBuilder()
            builder.event(event, value)
            if depth == 2:
                yield builder.value
                builder, reader.size = None, 0
    except (ijson.JSONError, ValueError) as error:
        raise SourceError(f"{label}: is not JSON, or ends too early: {' '.join(str(error).split())[:200]}") from None
    raise SourceError(f"{label}: must be JSON with a list {name!r}, but has none")


class _ItemReader:
    """Reads a file, and refuses it if an item is too long; `size` counts the bytes since the last item."""

    def __init__(self, file: IO[bytes], label: str) -> None:
        self.size = 0
        self._file, self._label = file, label

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes."""
        if self.size > _MOST_ITEM_BYTES:
            raise SourceError(f"{self._label}: an item must have at most {_MOST_ITEM_BYTES:,} bytes, got more")
        data = self._file.read(size)
        self.size += len(data)
        return data


def _read_actor(file: IO[bytes], label: str) -> str | None:
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


def _read_follows(file: IO[bytes], owner: str, label: str) -> Iterator[str | None]:
    """Yield the accounts of a following_accounts.csv, with or without a header."""
    host = owner.partition("@")[2]
    try:
        with io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="") as text:
            for number, row in enumerate(csv.reader(_bound_lines(text, label))):
                if row and not (number == 0 and row[0].strip().lower() == "account address"):
                    yield as_account(row[0], host)
    except csv.Error as error:
        raise SourceError(f"{label}: is not a CSV as Mastodon exports it: {error}") from None


def _bound_lines(text: io.TextIOWrapper, label: str) -> Iterator[str]:
    while line := text.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise SourceError(
                f"{label}: a line of {FOLLOWING} must have fewer than {_LONGEST_LINE:,} characters, got more"
            )
        yield line


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
    name = tag.get("name")
    if isinstance(name, str) and "@" not in name.removeprefix("@"):
        return account_of_url(tag.get("href")) or as_account(name, owner.partition("@")[2])
    return as_account(name, "")


_MOST_RATIO = 200
"""Largest ratio of unpacked to packed size; texts have 10, bombs 1000. If larger, bombs are refused later."""
_FREE_BYTES = 1 << 24
"""Unpacked bytes that are allowed at any ratio; if larger, bombs are refused later."""
_MOST_MEMBERS = 5_000_000
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError,
            lzma.LZMAError)  # fmt: skip


class Archive:
    """A folder, a .zip, a .tar or a .tar.gz.

    Parameters
    ----------
    path : Path
        The path of the folder or archive.
    free_bytes : int
        Unpacked bytes that are allowed at any ratio of unpacked to packed size.
    most_members : int
        Most files that an archive may hold.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(Path(folder) / "export.zip", "w") as packed:
    ...         packed.writestr("outbox.json", "[]")
    ...     with Archive(Path(folder) / "export.zip").open_member("outbox.json") as file:
    ...         print(file.read(100))
    b'[]'
    """

    def __init__(self, path: Path, free_bytes: int = _FREE_BYTES, most_members: int = _MOST_MEMBERS) -> None:
        self.path, self._free_bytes, self._most_members = path, free_bytes, most_members

    @contextmanager
    def open_member(self, name: str) -> Iterator[IO[bytes] | None]:
        """Open the file of this name in the archive's top folder or one folder below; None if there is none."""
        try:
            if self.path.is_dir():
                opened = self._open_in_folder(name)
            elif zipfile.is_zipfile(self.path):
                opened = self._open_in_zip(name)
            else:
                opened = self._open_in_tar(name)
            with opened as file:
                yield file
        except SourceError:
            raise
        except _DAMAGED as error:
            reason = getattr(error, "strerror", None) or error
            raise SourceError(f"{self.path}: cannot be read: {reason}") from error

    @contextmanager
    def _open_in_folder(self, name: str) -> Iterator[IO[bytes] | None]:
        path = self.path / name
        if not path.is_file():
            yield None
            return
        with path.open("rb") as file:
            yield file

    @contextmanager
    def _open_in_zip(self, name: str) -> Iterator[IO[bytes] | None]:
        """Open a file of a zip archive, the one in the fewest folders, or yield None."""
        with zipfile.ZipFile(self.path) as packed:
            members = packed.infolist()
            self._check_members(len(members))
            matches = [member for member in members if _has_name(member.filename, name)]
            if not matches:
                yield None
                return
            member = min(matches, key=lambda match: match.filename.count("/"))
            with packed.open(member) as file:
                yield io.BufferedReader(self._bound(file, member.compress_size, f"{self.path}: {name}"))

    @contextmanager
    def _open_in_tar(self, name: str) -> Iterator[IO[bytes] | None]:
        with self.path.open("rb") as raw:
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file: IO[bytes] = gzip.GzipFile(fileobj=raw) if is_packed else raw  # type: ignore[assignment]
            size = self.path.stat().st_size
            bounded = self._bound(file, size, str(self.path))
            with tarfile.open(fileobj=bounded, mode="r|", errorlevel=2) as packed:
                for count, member in enumerate(packed, 1):
                    self._check_members(count)
                    # otherwise tarfile keeps all members in memory
                    packed.members.clear()  # type: ignore[attr-defined]
                    if member.isreg() and _has_name(member.name, name) and (extracted := packed.extractfile(member)):
                        # a member of a stream does not say whether it can be sought, which a text reader asks
                        yield io.BufferedReader(self._bound(extracted, size, str(self.path)))
                        return
            yield None

    def _bound(self, file: Any, packed: int, label: str) -> Bounded:
        """Return a reader that refuses a bomb."""
        return Bounded(file, packed, label, self._free_bytes)

    def _check_members(self, count: int) -> None:
        if count > self._most_members:
            raise SourceError(f"{self.path}: an archive must hold at most {self._most_members:,} files, got more")


class Bounded(io.RawIOBase):
    """Reads a file that is unpacked on the fly, and refuses it once it is far longer than it was packed."""

    def __init__(self, file: IO[bytes], packed: int, label: str, free_bytes: int = _FREE_BYTES) -> None:
        self._file, self._label = file, label
        self._left = free_bytes + _MOST_RATIO * packed

    def readable(self) -> bool:
        """Return that the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return how many bytes there were."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._left -= len(data)
        if self._left < 0:
            raise SourceError(
                f"{self._label}: unpacks to more than {_MOST_RATIO} times its size, as only an archive bomb does"
            )
        return len(data)


def _has_name(path: str, name: str) -> bool:
    parts = path.removeprefix("./").split("/")
    return parts[-1] == name and len(parts) <= 2
