"""Messages of the library in the words of the command: `directed=True` is `--directed` here."""

from __future__ import annotations

import re

_NAMES = "columns|directed|duplicates|matfile_variable|resume|size_limit|unweighted"
_PARAMETER = re.compile(rf"\b({_NAMES})=(?:'([^']*)'|True\b|(?=[\s,;:)]|$))")


def as_flags(message: str) -> str:
    """A message that names parameters of Python, with the flags in their place.

    Examples
    --------
    >>> as_flags("a column is left out (columns= chooses); duplicates='first' counts each once")
    'a column is left out (--columns chooses); --duplicates first counts each once'
    """
    return _PARAMETER.sub(_as_flag, message)


def _as_flag(found: re.Match[str]) -> str:
    flag = "--" + found[1].replace("_", "-")
    return f"{flag} {found[2]}" if found[2] else flag
