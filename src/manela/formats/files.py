"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from manela.errors import OutputError


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of path when the block ends well, and vanishes when it does not."""
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".manela.", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
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


def check_writable(path: Path) -> None:
    """Raise OutputError now if path could not be written later."""
    try:
        if path.is_dir():
            raise OutputError(f"{path}: cannot be written: it is a folder")
        if not path.parent.is_dir():
            raise OutputError(f"{path}: cannot be written: there is no folder {path.parent}")
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".manela.", suffix=".part")
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error
    os.close(handle)
    Path(name).unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make the new name last; not every system can open a folder."""
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
