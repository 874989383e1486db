"""The flags of the sources that are no mail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manela.sources.source import Source

BUILDERS: dict[str, Callable[..., Source]] = {}
