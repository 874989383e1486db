"""Public names of a package, imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def export(
    package: str, homes: Mapping[str, str], *others: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package, given the module of each public name, and `others` that it has.

    Examples
    --------
    >>> find, names = export("numbers", {"gcd": "math"})
    >>> find("gcd")(6, 4), names()
    (2, ['gcd'])
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return find, lambda: sorted((*homes, *others))
