"""Tombstones: keyed hashes of nodes that were erased, by which their names are recognised when they come again."""

from __future__ import annotations

import hmac
from collections.abc import Collection

_LENGTH = 32
"""Hexadecimal digits of a hash; with fewer, two names could have the same one."""
_MOST_REMEMBERED = 1 << 16
"""Names whose hashes are kept in memory; with more, an import takes more memory, and with fewer it computes again."""
MARK = "#"
"""What a hash begins with where it stands for a name."""


class Hasher:
    """Computes the keyed hashes of the names of nodes.

    Examples
    --------
    >>> hasher = Hasher(b"key", "alpha")
    >>> hasher.hash("ann", "alpha") == hasher.hash("ann", "beta")
    False
    >>> hasher.show("ann@alpha")
    '#9cd5b7f51c789c80'
    """

    def __init__(self, key: bytes, host: str) -> None:
        self._key, self.host = key, host

    def hash(self, name: str, host: str) -> str:
        """Return the hash of a node."""
        return self.hash_text(f"{name}@{host}")

    def hash_text(self, node: str) -> str:
        """Return the hash of a node that is written `name@host`."""
        return hmac.digest(self._key, node.encode(errors="surrogatepass"), "sha256").hex()[:_LENGTH]

    def show(self, node: str) -> str:
        """Return what stands for a node, written `name@host`, in logs."""
        return show_hash(self.hash_text(node))


def show_hash(value: str) -> str:
    """Return a hash as people see it: half of it is enough to find a name."""
    return f"{MARK}{value[: _LENGTH // 2]}"


class Tombstones:
    """The nodes that were erased from a host; they are not taken again."""

    def __init__(self, hasher: Hasher, hashes: Collection[str]) -> None:
        self._hasher, self._hashes = hasher, frozenset(hashes)
        self._known: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def cover(self, name: str, host: str) -> bool:
        """Return whether a node was erased."""
        return bool(self._hashes) and self._look_up(f"{name}@{host}")

    def cover_text(self, text: str) -> bool:
        """Return whether a name was erased that may be one of an own node or written `name@host`."""
        text = text.strip()
        return bool(self._hashes) and (self._look_up(f"{text}@{self._hasher.host}") or self._look_up(text))

    def _look_up(self, node: str) -> bool:
        is_known = self._known.get(node)
        if is_known is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            is_known = self._known[node] = self._hasher.hash_text(node) in self._hashes
        return is_known
