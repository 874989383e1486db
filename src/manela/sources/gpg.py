"""GnupgSource: who certified whose key, in a GnuPG key ring."""

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

from manela.errors import SourceError
from manela.sources.state import ImportState
from manela.sources.ties import Ties, cut_into_batches

LEVELS = {"10": 1.0, "11": 0.5, "12": 2.0, "13": 3.0}
"""Weights of certifications by their class: generic, persona (not checked), casual, positive (checked with care)."""

_MOST_DEPTH = 3
"""What a trust signature adds to the weight is its depth, up to this."""
_LONGEST_LINE = 1 << 16
"""Bytes of a line of gpg's output; longer ones are left out."""
_MOST_KEYS = 10_000_000
_RINGS = ("pubring.kbx", "pubring.gpg", "public-keys.d")
"""What a ring can be in."""
_LEFT_OUT = frozenset("reid")
"""Validities of keys and user ids that do not count: revoked, expired, invalid, disabled."""
_ADDRESS = re.compile(r"(?:^|<)([^\s<>@\"(),:;\\]{1,64}@[^\s<>@\"(),:;\\]{1,255})>?$")
_ESCAPE = re.compile(r"\\x[0-9a-fA-F]{2}")


class GnupgSource:
    """The certifications between the keys of a ring: an edge leads from the key that signed to the one it signed.

    An edge weighs 1 for a generic certification (0x10), 0.5 for one that says nothing was checked (0x11), 2 for a
    casual check (0x12) and 3 for a careful one (0x13); a trust signature adds its depth, up to 3. Of several user ids
    the certification that weighs most counts. Left out are a key's own signatures, certifications that were revoked
    or have expired, those of user ids that were revoked, and keys that are revoked, expired, disabled or not in the
    ring.

    Parameters
    ----------
    homedir : Path, optional
        GnuPG's folder; by default the one that gpg finds.
    verify : bool
        Whether each certification is checked (`gpg --check-sigs`), which takes longer.
    names : {"email", "key"}
        Whether a node is the address of the key's primary user id, in lower case, or the key's fingerprint. A key
        without an address is its fingerprint in any case.
    deadline : float
        Seconds after which gpg is stopped.
    clock : callable
        Seconds since 1970, by which certifications expire.

    Examples
    --------
    >>> GnupgSource(names="key").key
    'gpg default key listed'
    """

    adds = False
    own_hosts: frozenset[str] = frozenset()

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
        """The folder, and how nodes are named."""
        where = "default" if self.homedir is None else str(self.homedir.absolute())
        return f"gpg {where} {self.names} {'verified' if self.verify else 'listed'}"

    def describe(self) -> str:
        """How many keys and certifications there are, and how many certifications were left out."""
        counts = self._counts
        return (
            f"{counts.keys:,} keys that can be used, {counts.edges:,} edges; {counts.unknown:,} certifications by keys "
            f"that are not in the ring or cannot be used, and {counts.invalid:,} that are revoked, expired or wrong, "
            "were left out"
        )

    def read(self, state: ImportState) -> Iterator[Ties]:  # noqa: ARG002
        """The edges, in batches; each reading yields all of them."""
        if self.names not in ("email", "key"):
            raise SourceError(f"names must be email or key, got {self.names!r}")
        self._counts = _Counts()
        names = self._read_names()
        self._counts.keys = len(set(names.values()))
        yield from cut_into_batches(self._read_edges(names))

    def _read_names(self) -> dict[str, str]:
        """The name of each key that can be used, by its fingerprint and by its key id."""
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
        """The fields of the lines that gpg prints."""
        options = ["--batch", "--no-tty", "--with-colons", "--fixed-list-mode", "--with-fingerprint"]
        # what is only looked at must not be written to, and must not start daemons
        options += ["--lock-never", "--no-auto-check-trustdb", "--trust-model=always", "--no-autostart"]
        folder = self.homedir or _find_homedir()
        if not any((folder / ring).exists() for ring in _RINGS):  # gpg would make an empty one
            raise SourceError(f"{folder}: holds no key ring; give GnuPG's folder, such as ~/.gnupg, by --homedir")
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
                    yield from _read_lines(process.stdout)
                status = process.wait()
            finally:
                timer.cancel()
                process.kill()
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()
            if expired.is_set():
                raise SourceError(f"gpg must end within {self.deadline:g} s, and did not; give it more by --deadline")
            if status:
                errors.seek(0)
                said = errors.read(4096).decode(errors="replace").strip().splitlines()
                reason = "".join(c if c.isprintable() else "?" for c in (said or ["no reason"])[-1][:200])
                raise SourceError(f"gpg {command} ended with status {status}: {reason}")


def _find_homedir() -> Path:
    """The folder that gpg uses where none is given."""
    try:
        done = subprocess.run(
            ["gpgconf", "--list-dirs", "homedir"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60.0,
            check=True,
        )
    except OSError as error:
        raise _explain_missing(error) from error
    except subprocess.SubprocessError as error:
        raise SourceError(f"gpgconf does not say where GnuPG's folder is: give it by --homedir ({error})") from error
    return Path(unquote(done.stdout.decode(errors="surrogateescape").strip()))


def _explain_missing(error: OSError) -> SourceError:
    return SourceError(f"gpg cannot be started ({error.strerror}): install GnuPG, for example by `apt install gnupg`")


class _Counts:
    """What a reading found and left out."""

    def __init__(self) -> None:
        self.keys = self.edges = self.unknown = self.invalid = 0


class _Key(NamedTuple):
    """A key of the ring; `certifications` has the time and weight of the last by user id and issuer, 0 if revoked."""

    key_id: str
    fingerprint: str
    is_usable: bool
    user_ids: list[str]
    certifications: dict[tuple[int, str], tuple[int, float]]


def _cut_keys(
    lines: Iterator[list[str]], names: dict[str, str] | None = None, counts: _Counts | None = None, now: float = 0.0
) -> Iterator[_Key]:
    """The keys that lines describe, one at a time; certifications only where there are names of keys."""
    key: _Key | None = None
    in_subkey = counts_here = False
    number = 0  # of the user id
    for fields in lines:
        kind = fields[0]
        if kind == "pub":
            if key is not None and key.fingerprint:
                yield key
            is_usable = fields[1][:1] not in _LEFT_OUT and "D" not in fields[11]
            key = _Key(fields[4].upper(), "", is_usable, [], {})
            in_subkey = counts_here = False
        elif key is None:
            continue
        elif kind == "fpr" and not key.fingerprint:
            key = key._replace(fingerprint=fields[9].upper())
        elif kind == "sub":
            in_subkey = True
        elif kind in ("uid", "uat"):
            number += 1
            in_subkey = False
            counts_here = fields[1][:1] not in _LEFT_OUT
            if counts_here and kind == "uid" and not key.user_ids:
                key.user_ids.append(_unescape(fields[9]))
        elif kind in ("sig", "rev") and names is not None and counts is not None and not in_subkey and counts_here:
            _note_certification(key, number, fields, names, counts, now)
    if key is not None and key.fingerprint:
        yield key


def _note_certification(
    key: _Key, user_id: int, fields: list[str], names: dict[str, str], counts: _Counts, now: float
) -> None:
    """Keep a certification or its revocation, if it is later than what there is of the same issuer."""
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
        counts.invalid += 1  # a forged one cancels nothing
        return
    known = key.certifications.get((user_id, issuer))
    if known is None or issued > known[0] or (issued == known[0] and fields[0] == "rev"):
        weight = LEVELS[level] + _read_depth(fields[7]) if is_good else 0.0
        key.certifications[user_id, issuer] = issued, weight


def _read_lines(file: IO[bytes]) -> Iterator[list[str]]:
    """The fields of each line, as many as are needed; overlong lines are left out."""
    while line := file.readline(_LONGEST_LINE):
        if not line.endswith(b"\n") and len(line) == _LONGEST_LINE:
            while line and not line.endswith(b"\n"):
                line = file.readline(_LONGEST_LINE)
            continue
        fields = line.decode(errors="replace").rstrip("\r\n").split(":")
        yield fields + [""] * (13 - len(fields))


def _unescape(text: str) -> str:
    """A user id as it is, of how gpg writes it: \\x3a is a colon."""
    return _ESCAPE.sub(lambda found: codecs.decode(found[0][2:], "hex").decode("latin-1"), text)


def _find_address(user_id: str) -> str | None:
    """The address in a user id, in lower case."""
    found = _ADDRESS.search(user_id.strip())
    return found[1].lower() if found and found[1].isprintable() else None


def _as_time(field: str) -> int:
    return int(field) if field.isdecimal() and len(field) < 16 else 0


def _read_depth(field: str) -> float:
    """The depth of a trust signature, `depth value`."""
    depth = field.split(" ")[0]
    return float(min(int(depth), _MOST_DEPTH)) if depth.isdecimal() and len(depth) < 4 else 0.0
