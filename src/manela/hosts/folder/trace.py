"""Trace: a file of what was disclosed to a host, one JSON object a line, with vectors as float16 in base64."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from manela.errors import FormatError

Disclosure = dict[str, Any]


def write_disclosure(disclosure: Disclosure) -> str:
    """Return a disclosure as a line of JSON."""
    return json.dumps(
        {name: _pack(value) if isinstance(value, np.ndarray) else value for name, value in disclosure.items()}
    )


def read_disclosures(path: Path) -> Iterator[Disclosure]:
    """Yield the disclosures of a file; skip a last line that a crash has cut off."""
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if not line.endswith("\n"):
                    return
                disclosure = json.loads(line)
                if not isinstance(disclosure, dict):
                    raise ValueError("a line is not an object")
                yield {name: _unpack(value) if isinstance(value, dict) else value for name, value in disclosure.items()}
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path}: is not a trace of a host: {error}") from error


def _pack(array: np.ndarray) -> dict[str, Any]:
    with np.errstate(over="ignore"):
        halves = array.astype("<f2")
    return {"shape": list(array.shape), "float16": base64.b64encode(halves.tobytes()).decode()}


def _unpack(packed: dict[str, Any]) -> np.ndarray:
    numbers = np.frombuffer(base64.b64decode(packed["float16"]), "<f2")
    return numbers.reshape(packed["shape"]).astype(np.float32)
