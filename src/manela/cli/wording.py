"""Translates messages of the library to the command line: `directed=True` becomes `--directed`."""

from __future__ import annotations

import re

_NAMES = "columns|deadline|directed|duplicates|homedir|matfile_variable|owner|resume|secret_file|size_limit|unweighted"
_PARAMETER = re.compile(rf"\b({_NAMES})=(?:'([^']*)'|True\b|(?=[\s,;:)]|$))(?: of read_graph(?: and Graph\.of)?)?")


def as_flags(message: str) -> str:
    """Replace parameter names in a message with flags.

    Examples
    --------
    >>> as_flags("a column is left out (columns= chooses); duplicates='first' of read_graph counts each once")
    'a column is left out (--columns chooses); --duplicates first counts each once'
    """
    return _PARAMETER.sub(_as_flag, message)


def _as_flag(match: re.Match[str]) -> str:
    """Return a parameter's name, and its value if there is one, as a flag."""
    flag = "--" + match[1].replace("_", "-")
    return f"{flag} {match[2]}" if match[2] else flag
