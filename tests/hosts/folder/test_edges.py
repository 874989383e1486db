"""Files of edges as operators write them."""

import io

import numpy as np
import pytest

from manela.errors import AgentError, FormatError
from manela.hosts.folder.config import Config
from manela.hosts.folder.edges import (
    FEWEST_NEW,
    FOLDER,
    import_to_host,
    parse_edge,
    read_edges,
    read_numbers,
    write_edges,
)
from manela.hosts.folder.home import init
from manela.hosts.folder.identity import make_identity, read_certificate
from manela.hosts.folder.store import Store
from manela.hosts.state.neighbourhood import Edge
from manela.sources import source as writing
from manela.sources.edges import Edges
from manela.sources.source import Source


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


class Place(Source):
    """A source of which a test says what it holds; if it is `directed`, each edge leads from the user who acted."""

    key = "place"

    def __init__(self, edges, adds=False, own_hosts=frozenset(), directed=False):
        self.edges, self.adds, self.own_hosts, self.directed = edges, adds, own_hosts, directed

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


class Acts(Place):
    """A source in which users write or follow, of a kind that adds what is new."""

    def __init__(self, *acts):
        super().__init__([(*act, 1.0) for act in acts], adds=True, directed=True)


def test_who_only_hears_from_a_peers_user_is_not_its_neighbour_unless_one_way_says_so(home):
    spy, others = "spy@beta.example", [f"user{number}" for number in range(60)]
    letters = [(spy, other) for other in others]
    done = import_to_host(home, Acts(*letters, ("user7", spy)))
    assert (done.edges, done.one_sided) == (1, 59)
    assert str(done) == (
        "1 edges imported, 59 left out, as only the user elsewhere wrote or followed (--one-way takes them)"
    )
    assert edges_in(home) == {("user7", ("spy", "beta.example"), 2.0)}  # both ways count, once the own user wrote
    assert import_to_host(home, Acts(), one_way=True).edges == 60
    assert import_to_host(home, Acts()).removed == 59


def test_a_tie_comes_when_the_own_user_answers_in_a_later_import(home):
    import_to_host(home, Acts(("bob@beta.example", "anna")))
    assert edges_in(home) == set()
    import_to_host(home, Acts(("anna", "bob@beta.example")))
    assert edges_in(home) == {("anna", ("bob", "beta.example"), 2.0)}


def test_ties_between_own_users_count_whoever_acted(home):
    assert import_to_host(home, Acts(("b", "a"), ("c", "d"))).one_sided == 0
    assert edges_in(home) == {("a", ("b", "alpha.example"), 1.0), ("c", ("d", "alpha.example"), 1.0)}


def test_a_source_in_which_nobody_acts_is_taken_whole(home):
    assert import_to_host(home, Place([("bob@beta.example", "anna", 1.0)])).edges == 1


def test_an_edge_of_an_operator_stays_where_only_the_other_side_acted(home):
    with Store(home) as store:
        store.add_edges([Edge("anna", ("bob", "beta.example"), 5.0)])
    for _ in range(2):
        assert import_to_host(home, Acts(("bob@beta.example", "anna"))).removed == 0
    assert edges_in(home) == {("anna", ("bob", "beta.example"), 5.0)}


def test_one_sided_ties_of_a_source_do_not_add_to_those_of_another(home):
    import_to_host(home, Acts(("bob@beta.example", "anna")))
    other = Place([("anna", "bob@beta.example", 4.0)])
    other.key = "elsewhere"
    import_to_host(home, other)
    assert edges_in(home) == {("anna", ("bob", "beta.example"), 4.0)}


def test_new_neighbours_of_a_peer_come_at_a_bounded_rate_and_the_rest_on_later_days(home):
    letters = [(f"user{number}", f"friend{number % 7}@beta.example") for number in range(2 * FEWEST_NEW + 30)]
    done = import_to_host(home, Acts(*letters), today=20_000)
    assert (done.edges, done.waiting) == (FEWEST_NEW, FEWEST_NEW + 30)
    assert "130 left for later imports, as at most 100 nodes become neighbours of one peer in a day" in str(done)
    first = edges_in(home)
    for day in (20_000, 19_990):  # the same day once more, and a clock that went back
        assert import_to_host(home, Acts(), today=day).waiting == FEWEST_NEW + 30
    assert edges_in(home) == first
    assert import_to_host(home, Acts(), today=20_001).waiting == 30
    assert first < edges_in(home)
    assert import_to_host(home, Acts(), today=20_002).waiting == 0
    assert len(edges_in(home)) == len(letters)


def test_a_node_that_is_a_neighbour_of_the_peer_already_gets_more_edges_at_once(home):
    letters = [(f"user{number}", "friend@beta.example") for number in range(FEWEST_NEW)]
    import_to_host(home, Acts(*letters), today=20_000)
    done = import_to_host(home, Acts(("user3", "other@beta.example"), ("late", "friend@beta.example")), today=20_000)
    assert (len(edges_in(home)), done.waiting) == (FEWEST_NEW + 1, 1)


def test_a_large_host_lets_a_share_of_its_nodes_become_neighbours_in_a_day(home):
    with Store(home) as store:
        store.add_edges([Edge(f"user{number}", None) for number in range(3000)])
    letters = [(f"user{number}", "friend@beta.example") for number in range(1000)]
    assert import_to_host(home, Acts(*letters), today=20_000).edges == 300


def test_edges_that_an_operator_reads_from_a_source_do_not_wait(home):
    edges = [(f"user{number}", "friend@beta.example", 1.0) for number in range(2 * FEWEST_NEW)]
    assert import_to_host(home, Place(edges), today=20_000).edges == 2 * FEWEST_NEW


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


def test_the_command_leaves_out_who_only_wrote_to_own_users_until_one_way_takes_them(home, tmp_path, manela_here):
    recipients = ", ".join(f"user{number}@alpha.example" for number in range(40))
    (tmp_path / "box").write_text(
        f"From x Mon Nov 16 10:00:00 2026\nMessage-ID: <1@x>\nFrom: spy@beta.example\nTo: {recipients}\n\nhello\n"
    )
    words = ["agent", "edges", "import", "mail", tmp_path / "box", "--domain", "alpha.example", "--home", home]
    done = manela_here(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "0 edges imported, 40 left out, as only the user elsewhere wrote or followed (--one-way takes them); "
        "1 messages in 1 mailbox\n"
    )
    assert manela_here(*words, "--one-way").stdout.startswith("40 edges imported; ")
