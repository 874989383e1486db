"""What every source must do, whatever it reads."""

import hashlib
import inspect

import numpy as np
import pytest
from source_cases import SOURCES

from manela.errors import SourceError
from manela.sources.gathering import gather_graph
from manela.sources.source import import_to_file
from manela.sources.state import ImportState

pytestmark = pytest.mark.filterwarnings("ignore:.*waiting")


@pytest.fixture(params=SOURCES, scope="module")
def case(request, tmp_path_factory):
    with SOURCES[request.param](tmp_path_factory.mktemp("place")) as ready:
        yield ready


def read_batches(source, path=None):
    with ImportState(path, source.key) as state:
        return list(source.read(state))


def as_edges(batches):
    edges = []
    for ties in batches:
        weights = [1.0] * len(ties.own) if ties.weights is None else ties.weights.tolist()
        edges += zip(ties.own, ties.other, weights, strict=True)
    return edges


def test_it_finds_the_edges_that_are_there_and_no_others(case):
    assert set(as_edges(read_batches(case.source))) == case.edges


def test_its_batches_have_columns_of_one_length_with_weights_that_count(case):
    for ties in read_batches(case.source):
        assert len(ties.own) == len(ties.other) > 0
        if ties.weights is not None:
            assert ties.weights.dtype == np.float64
            assert len(ties.weights) == len(ties.own)
            assert np.all(np.isfinite(ties.weights) & (ties.weights > 0))
        assert all(isinstance(end, str | int) and end != "" for end in (*ties.own, *ties.other))


def test_it_yields_the_same_edges_when_it_is_read_again(case):
    assert sorted(map(repr, as_edges(read_batches(case.source)))) == sorted(
        map(repr, as_edges(read_batches(case.source)))
    )


def test_a_state_of_another_source_is_refused(case, tmp_path):
    with ImportState(tmp_path / "state", "another source") as state:
        state.commit()
    with pytest.raises(SourceError, match="another import") as caught:
        read_batches(case.source, tmp_path / "state")
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*edges were left out")  # of names with line ends
def test_it_is_imported_with_a_state_as_without(case, tmp_path):
    plain, kept = tmp_path / "plain.csv", tmp_path / "kept.csv"
    import_to_file(case.source, plain)
    for _ in range(2):
        import_to_file(case.source, kept, tmp_path / "state")
    assert sorted(plain.read_bytes().splitlines()) == sorted(kept.read_bytes().splitlines())


def test_it_becomes_a_network(case):
    graph = gather_graph(case.source, directed=True)
    ends = {end for own, other, _ in case.edges for end in (own, other)}
    assert {str(node) for node in graph.nodes.tolist()} == {str(end) for end in ends}


def test_it_says_in_a_line_what_it_found(case):
    read_batches(case.source)
    said = case.source.describe()
    assert said
    assert said.isprintable()


def test_its_key_is_a_line_without_a_secret(case):
    assert case.source.key.isprintable()
    secret = getattr(case.source, "secret", None)
    assert secret is None or secret not in case.source.key
    assert case.source.key != case.missing.key


def test_its_class_is_documented(case):
    kind = type(case.source)
    documented = inspect.getdoc(kind) or ""
    assert "Parameters" in documented
    assert "Examples" in documented
    for name in ("key", "read", "describe"):
        assert inspect.getdoc(getattr(kind, name))
    assert isinstance(case.source.adds, bool)
    assert isinstance(case.source.own_hosts, frozenset)


def test_nothing_is_written_but_the_state(case, tmp_path):
    def look():
        return {
            path: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).digest())
            for folder in (case.folder, tmp_path)
            for path in folder.rglob("*")
            if path.is_file() and not path.name.startswith("state")
        }

    before = look()
    read_batches(case.source, tmp_path / "state")
    assert look() == before


def test_a_place_that_is_not_there_is_told_in_a_line(case):
    with pytest.raises(SourceError) as caught:
        read_batches(case.missing)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600
