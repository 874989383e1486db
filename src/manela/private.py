"""Files that only their owner may read or write: keys, edges, vectors."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

from manela.errors import AgentError, OutputError


def make_private_folder(folder: Path) -> None:
    """Create a folder if it does not exist, and restrict it to its owner."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror or error}") from error


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
        raise AgentError(f"{path}: is a symbolic link, which is not followed; put the file itself there")
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
        raise AgentError(f"{path}: is a symbolic link, which is not followed; put the file itself there")
    if status.st_mode & 0o077:
        raise AgentError(
            f"{path}: others can read it (mode {status.st_mode & 0o777:04o}); keep them out with `chmod 600 {path}`"
        )
