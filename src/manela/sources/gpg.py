"""GnupgSource: reads who certified whose key from a GnuPG key ring."""

from __future__ import annotations

import codecs
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Literal, NamedTuple
from urllib.parse import unquote

from manela.errors import Option, ParameterError, SourceError
from manela.sources.edges import Edges, cut_into_batches
from manela.sources.source import Source
from manela.sources.state import ImportState

LEVELS = {"10": 1.0, "11": 0.5, "12": 2.0, "13": 3.0}
"""Weights of certifications by their class: generic, persona (not checked), casual, positive (checked with care)."""

_MOST_DEPTH = 3
"""A trust signature adds its depth to the weight, at most this; if larger, deep trust weighs more."""
_LONGEST_LINE = 1 << 16
"""Most bytes of a line of gpg's output; longer lines are skipped."""
_MOST_KEYS = 10_000_000
_RINGS = ("pubring.kbx", "pubring.gpg", "public-keys.d")
"""Files or folders that can hold a key ring."""
_LEFT_OUT = frozenset("reid")
"""Validities of keys and user ids that do not count: revoked, expired, invalid, disabled."""
_ADDRESS = re.compile(r"(?:^|<)([^\s<>@\"(),:;\\]{1,64}@[^\s<>@\"(),:;\\]{1,255})>?$")
_ESCAPE = re.compile(r"\\x[0-9a-fA-F]{2}")


class GnupgSource(Source):
    """The certifications between the keys of a ring: an edge leads from the key that signed to the one it signed.

    The weight is 1 for a generic certification (0x10), 0.5 for one without a check (0x11), 2 for a casual check (0x12)
    and 3 for a careful one (0x13); a trust signature adds its depth, up to 3. If several user ids are certified, the
    largest weight counts. Self-signatures are left out, as are certifications that were revoked or have expired,
    those of revoked user ids, and keys that are revoked, expired, disabled or not in the ring.

    Parameters
    ----------
    homedir : Path, optional
        GnuPG's folder; by default the one that gpg uses.
    verify : bool
        Whether to verify each certification (`gpg --check-sigs`), which takes longer.
    names : {"email", "key"}
        Whether a node is named by the address of the key's primary user id, in lower case, or by the key's fingerprint.
        A key without an address is always named by its fingerprint.
    deadline : float
        Seconds after which gpg is killed.
    clock : callable
        Returns the seconds since 1970, to tell which certifications have expired.

    Examples
    --------
    >>> GnupgSource(names="key").key
    'gpg default key listed'
    """

    def __init__(
        self,
        homedir: Path | None = None,
        verify: bool = False,
        names: Literal["email", "key"] = "email",
        deadline: float = 3600.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.homedir, self.verify, self.names = homedir, verify, names
        self.deadline, self.clock = deadline, clock
        self._counts = _Counts()

    @property
    def key(self) -> str:
        """The key: the folder, how nodes are named, and whether certifications are verified."""
        folder = "default" if self.homedir is None else str(self.homedir.absolute())
        return f"gpg {folder} {self.names} {'verified' if self.verify else 'listed'}"

    def describe(self) -> str:
        """Return how many keys and edges there are, and how many certifications were left out."""
        counts = self._counts
        return (
            f"{counts.keys:,} keys that can be used, {counts.edges:,} edges; {counts.unknown:,} certifications by keys "
            f"that are not in the ring or cannot be used, and {counts.invalid:,} that are revoked, expired or wrong, "
            "were left out"
        )

    def read(self, state: ImportState) -> Iterator[Edges]:  # noqa: ARG002
        """Yield all edges in batches."""
        if self.names not in ("email", "key"):
            raise ParameterError.of("names", "must be email or key", self.names)
        self._counts = _Counts()
        names = self._read_names()
        self._counts.keys = len(set(names.values()))
        yield from cut_into_batches(self._read_edges(names))

    def _read_names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for key in _cut_keys(self._run("--list-keys")):
            if not key.is_usable:
                continue
            name = key.fingerprint
            if self.names == "email":
                name = next(filter(None, map(_find_address, key.user_ids[:1])), name)
            names[key.fingerprint] = names[key.key_id] = name
            if len(names) > 2 * _MOST_KEYS:
                raise SourceError(f"a ring must have at most {_MOST_KEYS:,} keys, got more")
        return names

    def _read_edges(self, names: dict[str, str]) -> Iterator[tuple[str, str, float]]:
        """Yield who has signed whose key, once for each pair, with the largest weight."""
        now = self.clock()
        for key in _cut_keys(self._run("--check-sigs" if self.verify else "--list-sigs"), names, self._counts, now):
            if key.fingerprint not in names:
                continue
            weights: dict[str, float] = {}
            for (_, issuer), (_, weight) in key.certifications.items():
                if weight > 0:
                    weights[issuer] = max(weight, weights.get(issuer, 0.0))
                else:
                    self._counts.invalid += 1
            for issuer, weight in weights.items():
                if names[issuer] != names[key.fingerprint]:
                    self._counts.edges += 1
                    yield names[issuer], names[key.fingerprint], weight

    def _run(self, command: str) -> Iterator[list[str]]:
        options = ["--batch", "--no-tty", "--with-colons", "--fixed-list-mode", "--with-fingerprint"]
        # reading must not write to the folder, and must not start daemons
        options += ["--lock-never", "--no-auto-check-trustdb", "--trust-model=always", "--no-autostart"]
        folder = self.homedir or _find_homedir()
        if not any((folder / ring).exists() for ring in _RINGS):  # gpg would create an empty ring
            raise SourceError(
                f"{folder}: does not hold a key ring; pass GnuPG's folder, such as ~/.gnupg, as ", Option("homedir")
            )
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    ["gpg", "--homedir", str(folder), *options, command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                )
            except OSError as error:
                raise _explain_missing(error) from error
            expired = threading.Event()

            def stop() -> None:
                expired.set()
                process.kill()

            timer = threading.Timer(self.deadline, stop)
            timer.daemon = True
            timer.start()
            try:
                if process.stdout is not None:
                    yield from read_lines(process.stdout)
                status = process.wait()
            finally:
                timer.cancel()
                process.kill()
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()
            if expired.is_set():
                raise SourceError(
                    f"gpg did not finish within {self.deadline:g} s; pass ", Option("deadline"), " to give it more time"
                )
            if status:
                errors.seek(0)
                messages = errors.read(4096).decode(errors="replace").strip().splitlines()
                reason = "".join(c if c.isprintable() else "?" for c in (messages or ["no reason"])[-1][:200])
                raise SourceError(f"gpg {command} ended with status {status}: {reason}")


def _find_homedir() -> Path:
    try:
        result = subprocess.run(
            ["gpgconf", "--list-dirs", "homedir"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60.0,
            check=True,
        )
    except OSError as error:
        raise _explain_missing(error) from error
    except subprocess.SubprocessError as error:
        raise SourceError(
            f"gpgconf does not say where GnuPG's folder is ({error}); pass it as ", Option("homedir")
        ) from error
    return Path(unquote(result.stdout.decode(errors="surrogateescape").strip()))


def _explain_missing(error: OSError) -> SourceError:
    return SourceError(f"gpg cannot be started ({error.strerror}): install GnuPG, for example by `apt install gnupg`")


class _Counts:
    def __init__(self) -> None:
        self.keys = self.edges = self.unknown = self.invalid = 0


class _Key(NamedTuple):
    """A key of the ring.

    `certifications` holds, by user id and issuer, the time and weight of the last certification; the weight is 0 if it
    was revoked or has expired.
    """

    key_id: str
    fingerprint: str
    is_usable: bool
    user_ids: list[str]
    certifications: dict[tuple[int, str], tuple[int, float]]


def _cut_keys(
    lines: Iterator[list[str]], names: dict[str, str] | None = None, counts: _Counts | None = None, now: float = 0.0
) -> Iterator[_Key]:
    """Yield the keys that the lines describe; with certifications only if `names` and `counts` are given."""
    key: _Key | None = None
    in_subkey = user_id_counts = False
    user_id = 0
    for fields in lines:
        kind = fields[0]
        if kind == "pub":
            if key is not None and key.fingerprint:
                yield key
            is_usable = fields[1][:1] not in _LEFT_OUT and "D" not in fields[11]
            key = _Key(fields[4].upper(), "", is_usable, [], {})
            in_subkey = user_id_counts = False
        elif key is None:
            continue
        elif kind == "fpr" and not key.fingerprint:
            key = key._replace(fingerprint=fields[9].upper())
        elif kind == "sub":
            in_subkey = True
        elif kind in ("uid", "uat"):
            user_id += 1
            in_subkey = False
            user_id_counts = fields[1][:1] not in _LEFT_OUT
            if user_id_counts and kind == "uid" and not key.user_ids:
                key.user_ids.append(_unescape(fields[9]))
        elif kind in ("sig", "rev") and names is not None and counts is not None and not in_subkey and user_id_counts:
            _record_certification(key, user_id, fields, names, counts, now)
    if key is not None and key.fingerprint:
        yield key


def _record_certification(
    key: _Key, user_id: int, fields: list[str], names: dict[str, str], counts: _Counts, now: float
) -> None:
    """Record a certification or a revocation, unless a later one of the same issuer is recorded."""
    issuer = fields[12].upper() or fields[4].upper()
    if issuer in (key.fingerprint, key.key_id):
        return
    level = fields[10][:2]
    if fields[0] == "sig" and level not in LEVELS:
        return
    if issuer not in names:
        counts.unknown += 1
        return
    issued, expires = _as_time(fields[5]), _as_time(fields[6])
    is_good = fields[0] == "sig" and (expires == 0 or expires > now)
    if fields[1][:1] in ("-", "%", "?") and fields[1]:
        counts.invalid += 1  # a forged signature must not replace an earlier one
        return
    known = key.certifications.get((user_id, issuer))
    if known is None or issued > known[0] or (issued == known[0] and fields[0] == "rev"):
        weight = LEVELS[level] + _read_depth(fields[7]) if is_good else 0.0
        key.certifications[user_id, issuer] = issued, weight


def read_lines(file: IO[bytes]) -> Iterator[list[str]]:
    """Yield the fields of each line, padded to at least 13; overlong lines are skipped."""
    while line := file.readline(_LONGEST_LINE):
        if not line.endswith(b"\n") and len(line) == _LONGEST_LINE:
            while line and not line.endswith(b"\n"):
                line = file.readline(_LONGEST_LINE)
            continue
        fields = line.decode(errors="replace").rstrip("\r\n").split(":")
        yield fields + [""] * (13 - len(fields))


def _unescape(text: str) -> str:
    """Return a user id without gpg's escapes, such as \\x3a for a colon."""
    return _ESCAPE.sub(lambda match: codecs.decode(match[0][2:], "hex").decode("latin-1"), text)


def _find_address(user_id: str) -> str | None:
    match = _ADDRESS.search(user_id.strip())
    return match[1].lower() if match and match[1].isprintable() else None


def _as_time(field: str) -> int:
    return int(field) if field.isdecimal() and len(field) < 16 else 0


def _read_depth(field: str) -> float:
    depth = field.split(" ")[0]
    return float(min(int(depth), _MOST_DEPTH)) if depth.isdecimal() and len(depth) < 4 else 0.0
