"""Ledger: a file of results, one JSON line each, from which an interrupted run continues."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from manela import __version__
from manela.errors import FormatError, OutputError


class Ledger:
    """Results by experiment and parameters.

    Each line holds `part`, `about` (all parameters and the seed), `result`, `seconds`, `version` and `machine`. A last
    line that was cut off by a crash is dropped. With `frozen` nothing is computed: a missing result raises LookupError.
    """

    def __init__(self, path: Path, frozen: bool = False) -> None:
        self.path, self.frozen = path, frozen
        self.records: list[dict[str, Any]] = []
        self._results: dict[str, Any] = {}
        if path.exists():
            self._load()

    def get(self, part: str, about: dict[str, Any], compute: Callable[[], Any]) -> Any:
        """Return the stored result, or call `compute` and store its result."""
        key = _key(part, about, __version__)
        if key not in self._results:
            if self.frozen:
                raise LookupError(key)
            started = time.perf_counter()
            result = json.loads(json.dumps(compute()))
            record = {
                "part": part,
                "about": about,
                "result": result,
                "seconds": round(time.perf_counter() - started, 3),
                "version": __version__,
                "machine": describe_machine(),
            }
            self._append(record)
            self._remember(record)
        return self._results[key]

    def _append(self, record: dict[str, Any]) -> None:
        """Append a record, and wait until it is on the disk."""
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        try:
            with self.path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error.strerror or error}") from error

    def _load(self) -> None:
        """Read all records; a last line that a crash has cut off is removed."""
        complete_bytes = 0
        content = self.path.read_bytes()
        for number, line in enumerate(content.splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                break
            try:
                record = json.loads(line)
                self._remember(record)
            except (ValueError, KeyError, TypeError) as error:
                raise FormatError(f"{self.path}:{number}: is damaged; remove the file to begin anew") from error
            complete_bytes += len(line)
        if complete_bytes < len(content) and not self.frozen:
            os.truncate(self.path, complete_bytes)

    def _remember(self, record: dict[str, Any]) -> None:
        """Keep a record, to be found by what it is about."""
        self._results[_key(record["part"], record["about"], record["version"])] = record["result"]
        self.records.append(record)


def _key(part: str, about: dict[str, Any], version: str) -> str:
    """Return what identifies a record, as text."""
    return json.dumps([part, about, version], sort_keys=True)


def describe_machine() -> str:
    """Return the system, processor and Python version in one line."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
