"""Passwords and tokens: reads them, and keeps them out of URLs and error messages.

It also reads and makes the key with which names are hashed.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from manela.errors import AgentError, FormatError, Option, SourceError
from manela.system.files import check_private, open_private

SECRET_VARIABLE = "MANELA_SECRET"
"""The environment variable that the command line reads."""

_MOST_BYTES = 1 << 16
"""Most bytes of a file with a secret; a larger file is probably the wrong one."""
_PASSWORD_NAMES = {"password", "passwd", "pwd", "sslpassword", "token", "access_token"}


def read_secret(path: Path | None, value: str | None) -> str | None:
    """Return the first line of a file of mode 0600, or without a file the given value, from the environment.

    Examples
    --------
    >>> read_secret(None, "xyzzy")
    'xyzzy'
    """
    if path is None:
        return value or None
    try:
        check_private(path)
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        lines = data.decode().splitlines()
    except AgentError as error:
        raise SourceError(str(error)) from error
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise SourceError(f"{path}: a secret must be text in UTF-8 on the first line of its file") from None
    if len(data) > _MOST_BYTES or not lines or not lines[0].strip():
        contents = f"more than {_MOST_BYTES:,} bytes" if len(data) > _MOST_BYTES else "an empty line"
        raise SourceError(f"{path}: must hold a secret on its first line, got {contents}")
    return lines[0].strip()


def refuse_password(url: str) -> None:
    """Raise SourceError if a URL holds a password, which other users could see in the list of processes.

    Examples
    --------
    >>> refuse_password("postgresql://reader@db.example.org/social")
    """
    try:
        parts = urlsplit(url)
        has_password = parts.password is not None
        names = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    except ValueError as error:
        raise SourceError(f"a URL must be like driver://user@host/database: {error}") from None
    if has_password or names & _PASSWORD_NAMES:
        raise SourceError(
            "a URL must not contain a password, which others could see in the list of processes; put it into the "
            f"environment variable {SECRET_VARIABLE}, or into a file of mode 0600 and pass the file as ",
            Option("secret_file"),
        )


def hide_secret(text: str, secret: str | None) -> str:
    """Return the first line of a foreign text without the secret, made printable and cut to 300 characters."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    if secret:
        line = line.replace(secret, "…")
    return "".join(character if character.isprintable() else "?" for character in line.strip()[:300])


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
