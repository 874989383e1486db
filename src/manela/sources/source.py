"""Source: the base class of all sources, which yield edges in batches; and what writes these edges to a CSV file."""

from __future__ import annotations

import csv
import io
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from manela.data.csr import LEAST_WEIGHT
from manela.errors import ManelaWarning
from manela.sources.edges import Edges
from manela.sources.state import ImportState
from manela.system.files import replace_file


class Source(ABC):
    """Something that edges can be read from."""

    adds = False  # whether `read` yields only edges that are new since the last reading, to be added to earlier ones
    own_hosts: frozenset[str] = frozenset()  # the hosts after the @ in names of own nodes; empty if they are not known
    # whether each edge leads from the user who wrote or followed, so that people elsewhere can add edges to own users
    directed = False

    @property
    @abstractmethod
    def key(self) -> str:
        """What is read and how; a state can be used only with the key it was made for."""

    @abstractmethod
    def read(self, state: ImportState) -> Iterator[Edges]:
        """Yield edges in batches; a source that can resume keeps its position in `state`."""

    def keep_directions(self) -> None:  # noqa: B027
        """Have edges lead from the user who wrote or followed, if the source has such and adds both ways up."""

    @abstractmethod
    def describe(self) -> str:
        """Return one line about what the last reading found and left out."""


STDOUT = Path("-")


def import_to_file(source: Source, output: Path, state_file: Path | None = None) -> int:
    """Read a source, write its edges as CSV, and return their number.

    With a state file, reading continues where the last import ended, and the output has all edges, old and new. If an
    import is interrupted, the next one continues where the last complete import ended.
    """
    with ImportState(state_file, source.key) as state:
        if not state.keeps:
            return write_edges(source.read(state), output)
        for batch in source.read(state):
            state.add(batch, source.adds)
        state.remove_old(source.adds, LEAST_WEIGHT)
        written = write_edges(state.read_edges(), output)
        state.commit()
        return written


def write_edges(batches: Iterable[Edges], output: Path) -> int:
    """Write edges as CSV with a header to stdout or to a file, which is replaced as a whole; return their number."""
    if output == STDOUT:
        return _write_lines(batches, sys.stdout)
    with replace_file(output, private=True) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
        written = _write_lines(batches, text)
        text.detach()
    return written


def _write_lines(batches: Iterable[Edges], file: io.TextIOBase | io.TextIOWrapper | object) -> int:
    written, left_out, writer = 0, 0, csv.writer(file, lineterminator="\n")  # type: ignore[arg-type]
    writer.writerow(("source", "target", "weight"))
    for batch in batches:
        rows = list(_write_rows(batch))
        writer.writerows(rows)
        written += len(rows)
        left_out += len(batch.own) - len(rows)
    if left_out:
        warnings.warn(
            f"{left_out:,} edges were left out: a name begins with # or %, which start comments, or contains a line "
            "end, or the weight is too small",
            ManelaWarning,
            stacklevel=4,
        )
    return written


def _write_rows(batch: Edges) -> Iterator[tuple[str, str, str]]:
    weights = np.ones(len(batch.own)) if batch.weights is None else batch.weights
    for own, other, weight in zip(map(str, batch.own), map(str, batch.other), weights.tolist(), strict=True):
        is_plain = own[:1] not in ("#", "%") and len((own + other).splitlines()) <= 1
        if is_plain and weight >= LEAST_WEIGHT:
            yield own, other, f"{weight:.6g}"
