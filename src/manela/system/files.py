"""Files that appear whole or not at all, and files that only their owner may read or write."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from manela.errors import AgentError, OutputError

_PREFIX, _SUFFIX = ".manela.", ".part"
_YOUNG = 60.0
"""Seconds for which an unfinished file is not removed, as its writer may not have locked it yet."""


@contextmanager
def replace_file(path: Path, private: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block succeeds, and is removed when it fails.

    A symbolic link at `path` is replaced, not followed. A `private` file can be read by its owner only.
    """
    temporary: str | None = None
    _check_kind(path)
    try:
        remove_unfinished(path.parent)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_PREFIX, suffix=_SUFFIX)
        with os.fdopen(handle, "wb") as file:
            with contextlib.suppress(OSError):  # not every file system has locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not private:
                Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(path)
            temporary = None
        _sync_folder(path.parent)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove the temporary files of killed processes from a folder: those that nobody has locked."""
    for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime < _YOUNG:
                continue
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
            finally:
                os.close(handle)


def check_writable(path: Path) -> None:
    """Raise OutputError now if `path` could not be written later."""
    try:
        if path.is_dir():
            raise OutputError(f"{path}: cannot be written: it is a folder")
        _check_kind(path)
        if not path.parent.is_dir():
            raise OutputError(f"{path}: cannot be written: no such folder: {path.parent}")
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_PREFIX, suffix=_SUFFIX)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error
    os.close(handle)
    Path(name).unlink()


def _check_kind(path: Path) -> None:
    """Refuse a device, a pipe or a socket, which a file would replace."""
    if path.exists() and not path.is_symlink() and not path.is_file():
        raise OutputError(f"{path}: cannot be written: it is not a regular file")


def _umask() -> int:
    """Return the permissions that new files do not get; there is no way to only read them."""
    mask = os.umask(0o077)  # for a moment, files of other threads are private rather than open to all
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Flush the new name to disk, on systems that can open a folder."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        return
    finally:
        os.close(handle)


def make_private_folder(folder: Path) -> None:
    """Create a folder if it does not exist, and restrict it to its owner."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be created: {error.strerror or error}") from error


def open_private(path: Path, mode: str) -> IO[str]:
    """Open a text file for writing or appending, restricted to its owner; a symbolic link is not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (os.O_APPEND if mode == "a" else os.O_TRUNC)
    try:
        handle = os.open(path, flags, 0o600)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error
    return os.fdopen(handle, mode, encoding="utf-8")


def create_private(path: Path) -> None:
    """Create an empty file restricted to its owner, if there is none; a symbolic link is refused.

    An existing file is not opened: closing it would drop the locks that SQLite holds on it in this process.
    """
    if path.is_symlink():
        raise AgentError(f"{path}: must not be a symbolic link; put the file itself there")
    if path.exists():
        return
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


def check_private(path: Path) -> None:
    """Refuse a file that others can read or write."""
    try:
        status = path.lstat()
    except OSError as error:
        raise AgentError(f"{path}: cannot be read: {error.strerror or error}") from error
    if stat.S_ISLNK(status.st_mode):
        raise AgentError(f"{path}: must not be a symbolic link; put the file itself there")
    if status.st_mode & 0o077:
        raise AgentError(f"{path}: others can read it (mode {status.st_mode & 0o777:04o}); run `chmod 600 {path}`")
