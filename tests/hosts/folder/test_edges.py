"""Files of edges as operators write them."""

import io

import numpy as np
import pytest

from manela.errors import AgentError, FormatError
from manela.hosts.folder.config import Config
from manela.hosts.folder.edges import FOLDER, import_to_host, parse_edge, read_edges, read_numbers, write_edges
from manela.hosts.folder.home import init
from manela.hosts.folder.identity import make_identity, read_certificate
from manela.hosts.folder.store import Store
from manela.hosts.state.neighbourhood import Edge
from manela.sources import source as writing
from manela.sources.edges import Edges


def test_edges_are_read_from_a_file(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text(
        '# comment\nann,bob\nann, cem@beta , 2.5\n\n"o, brien",dora@example@beta\nalone\n', encoding="utf-8"
    )
    assert read_edges(file, "alpha") == [
        Edge("ann", ("bob", "alpha")), Edge("ann", ("cem", "beta"), 2.5),
        Edge("o, brien", ("dora@example", "beta")), Edge("alone", None),
    ]  # fmt: skip


@pytest.mark.parametrize("header", ["source,target,weight", "Source, Target", "own,other,weight", "own,other"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_header_and_a_byte_order_mark_are_no_edge(tmp_path, header, mark):
    file = tmp_path / "edges.csv"
    file.write_text(f"{mark}{header}\nann,bob,2\nsource,target\n", encoding="utf-8")
    assert read_edges(file, "alpha") == [Edge("ann", ("bob", "alpha"), 2.0), Edge("source", ("target", "alpha"))]


def test_what_a_source_writes_to_a_file_is_read(tmp_path):
    writing.write_edges([Edges(["ann"], ["bob@beta"])], tmp_path / "edges.csv")
    assert read_edges(tmp_path / "edges.csv", "alpha", ["beta"]) == [Edge("ann", ("bob", "beta"))]


def test_another_header_is_refused_with_the_one_that_is_known(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("payer,payee,euros\nann,bob,2\n", encoding="utf-8")
    with pytest.raises(
        FormatError, match=r"line 1: .*got 'euros'; a header must be `source,target,weight`, or left out"
    ):
        read_edges(file, "alpha")


def test_an_edge_that_looks_like_a_header_is_written_so_that_it_is_read(tmp_path):
    edges, text = [Edge("source", ("target", "alpha"))], io.StringIO()
    write_edges(edges, "alpha", text)
    (tmp_path / "edges.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
    assert read_edges(tmp_path / "edges.csv", "alpha") == edges


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ann@beta,bob", "the first node must be one of this host, but 'ann@beta' is a node of beta; swap the two"),
        ("ann@alpha,bob@beta", "own nodes are written without their host: expected 'ann', got 'ann@alpha'"),
    ],
)
def test_swapped_columns_are_refused(tmp_path, line, words):
    (tmp_path / "edges.csv").write_text(f"bob,ann@beta\n{line}\n", encoding="utf-8")
    with pytest.raises(FormatError, match=f"line 2: {words}"):
        read_edges(tmp_path / "edges.csv", "alpha", ["beta"])


def test_own_nodes_may_have_other_addresses_as_names(tmp_path):
    (tmp_path / "edges.csv").write_text("ann@example.org,bob@beta\n@beta,bob\n", encoding="utf-8")
    assert [edge.own for edge in read_edges(tmp_path / "edges.csv", "alpha", ["beta"])] == ["ann@example.org", "@beta"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([], "got 0 fields"),
        (["a", "b", "1", "2"], "got 4 fields"),
        (["", "b"], "a name must be"),
        (["a\x07", "b"], "a name must be"),
        (["x" * 300, "b"], "a name must be"),
        (["a", "b", "heavy"], "a weight must be a number"),
        (["a", "b", "0"], "a weight must be finite and above 0"),
        (["a", "b", "nan"], "a weight must be finite and above 0"),
    ],
)
def test_wrong_edges_are_refused(fields, words):
    with pytest.raises(FormatError, match=words):
        parse_edge(fields, "alpha", "line 1")
    with pytest.raises(AgentError, match="a host's name"):
        parse_edge(["a", "b@Not A Host"], "alpha", "line 1")


def test_numbers_of_a_lock_step_run(tmp_path):
    file = tmp_path / "numbers.csv"
    file.write_text("x@alpha,0\nb,c@beta,7\n", encoding="utf-8")
    assert read_numbers(file) == {("x", "alpha"): 0, ("b,c", "beta"): 7}
    file.write_text("x@alpha\n", encoding="utf-8")
    with pytest.raises(AgentError, match="name@host,number"):
        read_numbers(file)


def test_edges_are_written_as_they_are_read(tmp_path):
    edges = [
        Edge("x", ("y", "beta"), 2.5), Edge("x", ("z", "alpha")), Edge("alone", None), Edge("a,b", ("c@d", "alpha")),
        Edge('say "x"', ("c@d", "beta"), 1e-3),
    ]  # fmt: skip
    text = io.StringIO()
    assert write_edges(edges, "alpha", text) == 5
    (tmp_path / "edges.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
    assert read_edges(tmp_path / "edges.csv", "alpha") == edges


class Place:
    """A source of which a test says what it holds."""

    key, own_hosts = "place", frozenset()

    def __init__(self, edges, adds=False, own_hosts=frozenset()):
        self.edges, self.adds, self.own_hosts = edges, adds, own_hosts

    def read(self, state):
        own, other, weights = zip(*self.edges, strict=True) if self.edges else ((), (), ())
        yield Edges(own, other, np.array(weights, dtype=np.float64))

    def describe(self):
        return f"{len(self.edges)} edges"


@pytest.fixture
def home(tmp_path):
    init(tmp_path / "alpha", Config("alpha.example", "127.0.0.1:7446", {}))
    make_identity("beta.example", tmp_path / "key", tmp_path / "certificate")
    with Store(tmp_path / "alpha") as store:
        store.add_peer("beta.example", "127.0.0.1:1", read_certificate(tmp_path / "certificate"))
    return tmp_path / "alpha"


def edges_in(home):
    with Store(home) as store:
        return {(edge.own, edge.other, edge.weight) for edge in store.edges() if edge.other is not None}


def test_edges_with_own_nodes_and_those_of_peers_are_taken(home):
    done = import_to_host(home, Place([
        ("anna@alpha.example", "bob@beta.example", 2.0),
        ("anna@alpha.example", "carl@alpha.example", 1.0),
        ("anna", "dora", 1.0),
        ("anna@alpha.example", "x@nobody.example", 1.0),
        ("anna@alpha.example", "y@Not A Host", 1.0),
        ("\x07", "dora", 1.0),
        ("p@beta.example", "q@beta.example", 1.0),
    ]))  # fmt: skip
    assert edges_in(home) == {
        ("anna", ("bob", "beta.example"), 2.0),
        ("anna", ("carl", "alpha.example"), 1.0),
        ("anna", ("dora", "alpha.example"), 1.0),
    }
    assert (done.edges, done.removed, done.with_unknown_hosts, done.odd) == (3, 0, 1, 3)
    assert str(done) == ("3 edges imported, 1 ignored, to hosts that are not peers, 3 ignored, with invalid node names")


def test_an_edge_that_the_source_lost_is_removed_and_others_stay(home):
    with Store(home) as store:
        store.add_edges([Edge("by", ("hand", "alpha.example"))])
    import_to_host(home, Place([("a", "b", 1.0), ("a", "c", 1.0)]))
    done = import_to_host(home, Place([("a", "b", 3.0)]))
    assert done.removed == 1
    assert edges_in(home) == {("a", ("b", "alpha.example"), 3.0), ("by", ("hand", "alpha.example"), 1.0)}


def test_an_edge_that_is_there_both_ways_is_one_until_both_are_gone(home):
    both = [("a@alpha.example", "b@beta.example", 1.0), ("b@beta.example", "a@alpha.example", 2.0), ("d", "c", 1.0),
            ("c", "d", 1.0)]  # fmt: skip
    import_to_host(home, Place(both))
    assert edges_in(home) == {("a", ("b", "beta.example"), 3.0), ("c", ("d", "alpha.example"), 2.0)}
    assert import_to_host(home, Place(both[1:3])).removed == 0
    assert edges_in(home) == {("a", ("b", "beta.example"), 2.0), ("c", ("d", "alpha.example"), 1.0)}
    assert import_to_host(home, Place([])).removed == 2
    assert edges_in(home) == set()


def test_what_an_operator_wrote_down_stays_as_it_is(home):
    with Store(home) as store:
        store.add_edges([Edge("a", ("b", "alpha.example"), 7.0)])
    for edges in ([("a", "b", 1.0)], [("a", "b", 2.0)], [("a", "c", 1.0)], []):
        import_to_host(home, Place(edges))
        assert ("a", ("b", "alpha.example"), 7.0) in edges_in(home)


def test_an_edge_of_two_sources_has_both_weights_and_stays_while_one_has_it(home):
    class Other(Place):
        key = "another place"

    import_to_host(home, Place([("a", "b", 1.0)]))
    import_to_host(home, Other([("b", "a", 2.0), ("c", "d", 1.0)]))
    assert ("a", ("b", "alpha.example"), 3.0) in edges_in(home)
    assert import_to_host(home, Place([])).removed == 0
    assert edges_in(home) == {("a", ("b", "alpha.example"), 2.0), ("c", ("d", "alpha.example"), 1.0)}
    assert import_to_host(home, Other([("c", "d", 1.0)])).removed == 1
    assert edges_in(home) == {("c", ("d", "alpha.example"), 1.0)}


def test_sources_whose_keys_differ_in_a_sign_are_two(home):
    for sign in "<>":
        place = Place([("a", sign, 1.0)])
        place.key = f"SELECT … WHERE w {sign} 5"
        import_to_host(home, place)
    assert len(edges_in(home)) == 2


def test_what_adds_is_added_to_what_was_there_before(home):
    for _ in range(2):
        import_to_host(home, Place([("a", "b", 1.5)], adds=True))
    assert edges_in(home) == {("a", ("b", "alpha.example"), 3.0)}


def test_edges_with_a_host_are_taken_once_it_is_a_peer(home, tmp_path):
    import_to_host(home, Place([("a", "b@gamma.example", 1.0)], adds=True))
    assert edges_in(home) == set()
    make_identity("gamma.example", tmp_path / "key2", tmp_path / "certificate2")
    with Store(home) as store:
        store.add_peer("gamma.example", "127.0.0.1:2", read_certificate(tmp_path / "certificate2"))
    import_to_host(home, Place([], adds=True))
    assert edges_in(home) == {("a", ("b", "gamma.example"), 1.0)}


def test_several_own_domains_are_kept_apart(home):
    own = frozenset({"alpha.example", "other.example"})
    import_to_host(home, Place([("a@alpha.example", "a@other.example", 1.0)], own_hosts=own))
    assert edges_in(home) == {("a", ("a@other.example", "alpha.example"), 1.0)}


def test_a_host_of_another_name_is_refused(home):
    with pytest.raises(AgentError, match="this host is named alpha.example"):
        import_to_host(home, Place([("a@x.example", "b@x.example", 1.0)], own_hosts=frozenset({"x.example"})))
    assert edges_in(home) == set()


def test_what_is_kept_is_the_owners_alone(home):
    import_to_host(home, Place([("a", "b", 1.0)]))
    assert (home / FOLDER).stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (home / FOLDER).iterdir()} == {0o600}


def test_the_command_reads_mail_into_a_host(home, tmp_path, manela_here):
    (tmp_path / "box").write_text(
        "From x Mon Nov 16 10:00:00 2026\nMessage-ID: <1@x>\nFrom: anna@alpha.example\nTo: bob@beta.example\n\nhello\n"
    )
    done = manela_here(
        "agent",
        "edges",
        "import",
        "mail",
        tmp_path / "box",
        "--domain",
        "alpha.example",
        "--half-life",
        0,
        "--home",
        home,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 edges imported; 1 messages in 1 mailbox\n"
    assert edges_in(home) == {("anna", ("bob", "beta.example"), 1.0)}
    (tmp_path / "edges.csv").write_text("c,d\n")
    for words in (("file",), ()):
        done = manela_here("agent", "edges", "import", *words, "--home", home, tmp_path / "edges.csv")
        assert done.returncode == 0, done.stderr
    assert ("c", ("d", "alpha.example"), 1.0) in edges_in(home)
