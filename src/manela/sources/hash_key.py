"""The secret key with which people's names are hashed, in a file that only its owner can read."""

from __future__ import annotations

import secrets
from pathlib import Path

from manela.errors import FormatError
from manela.system.files import check_private, open_private

_BYTES = 32


def read_or_make_key(path: Path) -> bytes:
    """Return the key in a file of hexadecimal digits; create the file with a new key if it does not exist."""
    if not path.exists():
        with open_private(path, "w") as file:
            file.write(secrets.token_hex(_BYTES) + "\n")
    check_private(path)
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise FormatError(f"{path}: must hold a key in hexadecimal digits: {error}") from error
    if not 16 <= len(key) <= 64:
        raise FormatError(f"{path}: a key must have 16 to 64 bytes, got {len(key)}")
    return key
