"""Backups: writes and restores a file with everything that a host needs to run elsewhere."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import sqlite3
import tarfile
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from manela.errors import AgentError, OutputError
from manela.hosts.folder.config import FILE, read_config
from manela.hosts.folder.edges import FOLDER
from manela.hosts.folder.erasure import carry_tombstones
from manela.hosts.folder.home import is_running, only_one
from manela.hosts.folder.identity import CERTIFICATE, KEY, check_key, read_certificate
from manela.hosts.folder.store import BACKUP, Store
from manela.hosts.folder.store import NAME as STORE
from manela.hosts.folder.vectors import NAME as VECTORS
from manela.hosts.folder.vectors import VectorsFile
from manela.sources.state import ImportState
from manela.system.files import create_private, make_private_folder, replace_file

_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 1 << 20
_NEEDED = (FILE, KEY, CERTIFICATE, STORE)
_OTHERS = (VECTORS, "numbers.csv", f"next-{KEY}", f"next-{CERTIFICATE}", f"old-{CERTIFICATE}")
_IMPORT = re.compile(rf"{FOLDER}/[a-z0-9][a-z0-9.-]{{0,100}}\.db")
"""Names of the states of imports in a backup; a looser pattern would let a backup write elsewhere."""
_MOST_IMPORTS = 1_000
"""States of imports in a backup; more take disk space."""
_WORK = (".backup.", ".restore.")
"""Prefixes of the temporary folders in which backups are made and unpacked."""
_OLD = 600.0
"""Age in seconds after which such a folder is deleted as a leftover; if smaller, a slow backup may lose its folder."""
_VERSION = 1
_PIECE = 1 << 20


def write_backup(home: Path, path: Path, vectors: bool = True) -> None:
    """Write a backup of a host, whose daemon may be running; only the owner can read it, as it holds the key."""
    read_config(home / FILE)
    with tempfile.TemporaryDirectory(dir=home, prefix=_WORK[0]) as temporary, Store(home) as store:
        store.check()
        copy = Path(temporary) / STORE
        store.copy_to(copy)
        files = {name: home / name for name in (*_NEEDED, *_OTHERS) if (home / name).exists()}
        files[STORE] = copy
        stamps = _stamp_imports(home)
        make_private_folder(Path(temporary) / FOLDER)
        for state in stamps:
            _copy_database(home / state, Path(temporary) / state)
            files[state] = Path(temporary) / state
        if not vectors:
            files.pop(VECTORS, None)
        name = read_config(home / FILE).name
        digests: dict[str, str] = {}
        with replace_file(path, private=True) as file, tarfile.open(fileobj=file, mode="w") as archive:
            for file_name, source in files.items():
                # if the file is replaced meanwhile, this handle still reads the whole old one
                with _open(source) as content:
                    size = content.seek(0, io.SEEK_END)
                    content.seek(0)
                    digests[file_name] = hashlib.file_digest(content, "sha256").hexdigest()
                    content.seek(0)
                    entry = tarfile.TarInfo(file_name)
                    entry.size, entry.mode, entry.mtime = size, 0o600, int(time.time())
                    archive.addfile(entry, content)
            manifest = {
                "manela": _VERSION, "host": name, "time": time.time(), "files": digests,
                "store": _read_digest(copy), "imports": stamps
            }  # fmt: skip
            encoded = json.dumps(manifest).encode()
            entry = tarfile.TarInfo(_MANIFEST)
            entry.size, entry.mode = len(encoded), 0o600
            archive.addfile(entry, io.BytesIO(encoded))


def _read_digest(copy: Path) -> str:
    """Return the digest in a copy of a store; that of the store itself may be newer than the copy."""
    with closing(sqlite3.connect(copy)) as database:
        return str(database.execute("SELECT value FROM meta WHERE name = 'digest'").fetchone()[0])


def _stamp_imports(home: Path) -> dict[str, list[int]]:
    """Return the states of imports with the size of each and when it was changed last."""
    names = [f"{FOLDER}/{path.name}" for path in sorted((home / FOLDER).glob("*.db"))]
    if len(names) > _MOST_IMPORTS:
        raise AgentError(f"{home / FOLDER}: must have at most {_MOST_IMPORTS:,} states of imports, got {len(names):,}")
    stats = {name: (home / name).stat() for name in names if _IMPORT.fullmatch(name)}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()}


def _copy_database(source: Path, path: Path) -> None:
    """Copy what is committed in a database, also while an import writes to it."""
    create_private(path)
    try:
        with closing(sqlite3.connect(source, timeout=10.0)) as database, closing(sqlite3.connect(path)) as copy:
            database.backup(copy)
    except sqlite3.Error as error:
        raise AgentError(f"{source}: cannot be read: {error}") from error


def _open(source: Path) -> io.BufferedReader:
    try:
        return source.open("rb")
    except OSError as error:
        raise AgentError(f"{source}: cannot be read: {error.strerror or error}") from error


def keep_backup(home: Path, digest: str) -> None:
    """Write the automatic backup of a host, unless there is one of the same store content and the same other files."""
    path = home / BACKUP
    with suppress(AgentError, OSError):
        if path.exists() and _is_current(_read_manifest(path), home, digest):
            return
    # in the middle of a renewal the two do not match, and a backup of them could not be restored
    check_key(home / KEY, read_certificate(home / CERTIFICATE))
    write_backup(home, path, vectors=False)


def _is_current(manifest: dict[str, Any], home: Path, digest: str) -> bool:
    """Return whether a backup has this store content, and the configuration, keys and certificates of the home."""
    names = [name for name in (*_NEEDED, *_OTHERS) if name not in (STORE, VECTORS) and (home / name).exists()]
    digests = {name: hashlib.sha256((home / name).read_bytes()).hexdigest() for name in names}
    kept = {name: kept_digest for name, kept_digest in manifest["files"].items() if name != STORE}
    stamps = manifest.get("imports", {})
    kept = {name: kept_digest for name, kept_digest in kept.items() if name not in stamps}
    return bool(manifest["store"] == digest and kept == digests and stamps == _stamp_imports(home))


def remove_leftovers(home: Path) -> None:
    """Delete the temporary folders of backups and restores that were killed."""
    for prefix in _WORK:
        for leftover in home.glob(f"{prefix}*"):
            with suppress(OSError):
                if time.time() - leftover.lstat().st_mtime > _OLD:
                    shutil.rmtree(leftover)


def restore_backup(path: Path, home: Path) -> list[str]:
    """Restore a host's files after checking all of them; return their names.

    The files that were there before are moved to a home beside them.
    """
    if is_running(home):
        raise AgentError(f"{home}: a daemon is running there; stop it first")
    manifest = _read_manifest(path)
    if (home / FILE).exists() and (present := _name_of(home)) not in ("", manifest["host"]):
        raise AgentError(
            f"{home}: holds the host {present!r}, and {path} is a backup of {manifest['host']!r}; choose another home"
        )
    make_private_folder(home)
    with only_one(home), tempfile.TemporaryDirectory(dir=home, prefix=_WORK[1]) as name:
        temporary = Path(name)
        _unpack(path, manifest["files"], temporary)
        for needed in _NEEDED:
            if not (temporary / needed).exists():
                raise AgentError(f"{path}: is not a complete backup: {needed} is missing")
        read_config(temporary / FILE)
        check_key(temporary / KEY, read_certificate(temporary / CERTIFICATE))
        with Store(temporary) as store:
            store.check()
        VectorsFile(temporary).load()
        states = [file for file in manifest["files"] if _IMPORT.fullmatch(file)]
        for state in states:
            ImportState(temporary / state, None).close()  # which raises if it is not one
        carry_tombstones(home, temporary)
        before = home / time.strftime("before-restore-%Y%m%d-%H%M%S", time.gmtime())
        try:
            make_private_folder(before)
            for old in (*_NEEDED, *_OTHERS, f"{STORE}-wal", f"{STORE}-shm"):
                if (home / old).exists() and (old != VECTORS or VECTORS in manifest["files"]):
                    (home / old).replace(before / old)
            if "imports" in manifest and (home / FOLDER).exists():
                (home / FOLDER).replace(before / FOLDER)
            if states:
                make_private_folder(home / FOLDER)
            # the configuration comes last: its presence means that the home is complete
            for restored in sorted(manifest["files"], key=lambda file_name: file_name == FILE):
                if (temporary / restored).exists():  # of erased nodes alone there are no vectors left
                    (temporary / restored).replace(home / restored)
        except OSError as error:
            raise OutputError(f"{home}: cannot be written: {error.strerror or error}") from error
    return list(manifest["files"])


def _name_of(home: Path) -> str:
    try:
        return read_config(home / FILE).name
    except AgentError:
        return ""


def _read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a backup, after checking that it is one of this version."""
    try:
        with tarfile.open(path, "r:") as archive:
            entry = archive.getmember(_MANIFEST)
            content = archive.extractfile(entry) if entry.isreg() and entry.size <= _LARGEST_MANIFEST else None
            manifest: dict[str, Any] = json.loads(content.read()) if content is not None else {}
        files, _ = manifest["files"], manifest["host"]
        known = {*_NEEDED, *_OTHERS}
        other = set(files) - known if isinstance(files, dict) else {""}
        is_known = len(other) <= _MOST_IMPORTS and all(_IMPORT.fullmatch(name) for name in other)
        if manifest["manela"] != _VERSION or not is_known or not isinstance(manifest.get("imports", {}), dict):
            raise AgentError(f"{path}: was written by another version of manela; update manela")
        return manifest
    except (OSError, tarfile.TarError, ValueError, KeyError, TypeError, EOFError) as error:
        raise AgentError(f"{path}: is not a backup written by `manela agent backup`: {error}") from error


def _unpack(path: Path, digests: dict[str, str], home: Path) -> None:
    """Extract the files listed in a backup's manifest to a home, and check the digest of each."""
    try:
        with tarfile.open(path, "r:") as archive:
            make_private_folder(home / FOLDER)
            for name, digest in digests.items():
                entry = archive.getmember(name)
                content = archive.extractfile(entry) if entry.isreg() else None
                if content is None:
                    raise AgentError(f"{path}: its entry {name} is not a file")
                sha = hashlib.sha256()
                with replace_file(home / name, private=True) as file:
                    while piece := content.read(_PIECE):
                        sha.update(piece)
                        file.write(piece)
                if sha.hexdigest() != digest:
                    raise AgentError(f"{path}: is damaged: its entry {name} does not match its digest")
    except (OSError, tarfile.TarError, KeyError, EOFError) as error:
        if isinstance(error, OutputError):
            raise
        raise AgentError(f"{path}: is damaged: {error}") from error
