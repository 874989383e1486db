"""Names of hosts and nodes, and the rules for them."""

from __future__ import annotations

import hashlib
import re

from manela.errors import AgentError, MalformedError

LONGEST_NAME = 256
"""Most bytes of a node's name; longer names are refused."""
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")

Node = tuple[str, str]
"""A node's name and its host."""


def parse_node(text: str) -> Node:
    """Parse `name@host`, and refuse anything else."""
    name, _, host = text.rpartition("@")
    if not is_name(name) or not HOST_NAME.fullmatch(host):
        raise MalformedError("a node must be written name@host")
    return name, host


def is_name(name: str) -> bool:
    """Return whether this can be a node's name: 1 to 256 bytes of UTF-8, all printable."""
    try:
        return 0 < len(name.encode()) <= LONGEST_NAME and name.isprintable()
    except UnicodeEncodeError:
        return False


RESERVED = ("unknown",)
"""Names that hosts must not have: refusals of unknown callers are counted under them."""


def check_host_name(name: str) -> str:
    """Return the name, or raise if it cannot be a host's name."""
    if name in RESERVED:
        raise AgentError(f"a host's name must not be {name!r}, which stands for unknown callers")
    if not HOST_NAME.fullmatch(name):
        raise AgentError(f"a host's name must be 1 to 63 of a-z, 0-9, dot and hyphen, got {name!r}")
    return name


def number_of(name: str) -> int:
    """Return a number that depends only on a node's name, for the draws of a host outside lock-step."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1
