"""RdfSource: reads edges from the triples of RDF files."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from manela.errors import SourceError, import_extra
from manela.sources.edges import Edges, cut_into_batches
from manela.sources.source import Source
from manela.sources.state import ImportState

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

_LINES, _TURTLE = (".nt", ".nq"), (".ttl",)
_LONGEST_LINE = 1 << 20
"""Lines of N-Triples must have fewer bytes; if larger, a file could take more memory."""
_IRI = r"<([^\x00-\x20<>\"{}|^`]*)>"
_BLANK = r"(_:[^\s<>\"]*[^\s<>\".])"
_TRIPLE = re.compile(
    rf"\s*(?:{_IRI}|{_BLANK})\s*{_IRI}\s*(?:(?:{_IRI}|{_BLANK})(?=\s*(?:<[^<>]*>|_:\S*?)?\s*\.)|(\"))", re.ASCII
)
_BASE = "http://relative.invalid/"
"""The base of relative IRIs; the path of a local file would disclose something about this machine."""
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


class RdfSource(Source):
    """The triples of N-Triples, N-Quads and Turtle files as edges from subject to object.

    Triples whose object is a literal and those with the predicate `rdf:type` are left out. Names are full IRIs. A blank
    node is named `_:` and its label; from the second file on the file's number precedes the label, as labels are valid
    only within their file. N-Triples and N-Quads are read line by line; Turtle is read into memory first.

    Parameters
    ----------
    paths : sequence of Path
        Files that end in .nt, .nq or .ttl.
    predicates : sequence of str
        The predicates to read, as full IRIs; by default all but `rdf:type`.

    Examples
    --------
    >>> RdfSource([Path("/data/people.nt")], ["http://xmlns.com/foaf/0.1/knows"]).key
    'rdf /data/people.nt http://xmlns.com/foaf/0.1/knows'
    """

    def __init__(self, paths: Sequence[Path], predicates: Sequence[str] = ()) -> None:
        self.paths, self.predicates = tuple(paths), frozenset(predicates)
        self._edges = self._left_out = 0

    @property
    def key(self) -> str:
        """The key: the files and the predicates."""
        return " ".join(["rdf", *(str(path.absolute()) for path in self.paths), *sorted(self.predicates)])

    def describe(self) -> str:
        """Return how many triples are edges, and how many were left out."""
        return f"{self._edges:,} edges, and {self._left_out:,} triples of literals, types or other predicates left out"

    def read(self, state: ImportState) -> Iterator[Edges]:  # noqa: ARG002
        """Yield all edges in batches."""
        self._edges = self._left_out = 0
        if not self.paths:
            raise SourceError("at least one file must be given, got none")
        yield from cut_into_batches(self._read_edges())

    def _read_edges(self) -> Iterator[tuple[str, str, float]]:
        for number, path in enumerate(self.paths, 1):
            prefix = "_:" if number == 1 else f"_:{number}."
            for own, predicate, other in self._read_file(path):
                if other is None or not self._counts(predicate):
                    self._left_out += 1
                    continue
                self._edges += 1
                yield _name(own, prefix), _name(other, prefix), 1.0

    def _counts(self, predicate: str) -> bool:
        return predicate in self.predicates if self.predicates else predicate != TYPE

    def _read_file(self, path: Path) -> Iterator[tuple[str, str, str | None]]:
        """Yield subject, predicate and object of each triple; the object is None if it is a literal."""
        if path.suffix not in _LINES + _TURTLE:
            raise SourceError(f"{path}: an RDF file must end in {', '.join(_LINES + _TURTLE)}, got {path.suffix!r}")
        try:
            yield from _read_lines(path) if path.suffix in _LINES else _read_turtle(path)
        except OSError as error:
            raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error


def _read_lines(path: Path) -> Iterator[tuple[str, str, str | None]]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE:
                raise SourceError(f"{path}:{number}: a line must have fewer than {_LONGEST_LINE:,} bytes, got more")
            text = line.decode(errors="replace")
            if not text.strip() or text.lstrip().startswith("#"):
                continue
            match = _TRIPLE.match(text)
            if match is None:
                raise SourceError(f"{path}:{number}: a line must be `subject predicate object .`, got {text[:80]!r}")
            own, own_blank, predicate, other, other_blank, literal = match.groups()
            target = None if literal else other_blank if other is None else _unescape(other)
            yield own_blank if own is None else _unescape(own), _unescape(predicate), target


def _read_turtle(path: Path) -> Iterator[tuple[str, str, str | None]]:
    """Yield the triples of a Turtle file, as `_read_lines` does."""
    rdflib: Any = import_extra("rdflib", "sources", "reading Turtle")
    # it warns of malformed literals, which are left out anyway
    logging.getLogger("rdflib.term").setLevel(logging.CRITICAL)
    graph = rdflib.Graph(store="SimpleMemory")  # this store keeps the order of triples
    try:
        with path.open("rb") as file:
            graph.parse(file=file, format="turtle", publicID=_BASE)
    except OSError:
        raise
    except Exception as error:  # on damaged files the parser raises errors of many types
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise SourceError(f"{path}: is not Turtle: {reason[:200]}") from None
    blanks: dict[Any, str] = {}  # rdflib labels blank nodes differently each time, so number them

    def name(term: Any) -> str:
        return blanks.setdefault(term, f"_:b{len(blanks)}") if isinstance(term, rdflib.BNode) else str(term)

    for own, predicate, other in graph:
        yield name(own), str(predicate), None if isinstance(other, rdflib.Literal) else name(other)


def _name(term: str, prefix: str) -> str:
    text = prefix + term[2:] if term.startswith("_:") else term
    return text.encode(errors="replace").decode()  # replaces lone surrogates, which cannot be written


def _unescape(iri: str) -> str:
    if "\\" not in iri:
        return iri
    return _ESCAPE.sub(lambda match: _decode(int(match[1] or match[2], 16)), iri)


def _decode(code: int) -> str:
    return chr(code) if code < 0xD800 or 0xE000 <= code <= 0x10FFFF else "\ufffd"
