"""Greetings, introductions and what two hosts find that both of them have."""

from dataclasses import replace

import numpy as np
import pytest
from harness import make_terms

from manela.errors import ClaimError, MalformedError, SessionError, TermsError
from manela.hosts.state.messages import PROTOCOL, Acceptance
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.peers import Peers, Sessions
from manela.hosts.walks.host import make_host

EDGES = {
    "a": [("x", "p", "b"), ("x", "q", "b"), ("y", "p", "b"), ("y", "r", "c"), ("x", "y", "a")],
    "b": [("p", "x", "a"), ("p", "y", "a"), ("s", "x", "a")],
}


def near(host):
    return Neighbourhood.build(host, [Edge(own, (other, where)) for own, other, where in EDGES[host]])


def sessions_of(host, key=7):
    return Sessions(near(host), key, Peers())


def hello_of(host="b", **parameters):
    return make_host(make_terms(**parameters), near(host)).hello()


def meet(asker, answerer):
    """`asker` introduces its edges; returns the acceptance and what was refused."""
    introduction = asker.introduce(answerer.near.host)
    admitted, refusals = answerer.near.admit_edges(asker.near.host, introduction.askers, introduction.others)
    acceptance, refusals = answerer.open(asker.near.host, admitted, refusals)
    return acceptance, refusals


def test_a_greeting_on_our_terms_is_kept_and_a_later_one_takes_its_place():
    sessions = sessions_of("a")
    for program in ("1", "2"):
        hello = replace(hello_of(), program=program)
        sessions.greet("b", hello, hello_of("a"))
        assert sessions.peers.greetings == {"b": hello}


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"host": "c"}, ClaimError, "b greets as c"),
        ({"protocol": PROTOCOL + 1}, TermsError, f"protocol must be {PROTOCOL}, got {PROTOCOL + 1}"),
        ({"exchange": "walks"}, TermsError, "exchange must be messages as at a, got walks"),
        ({"dimensions": 9}, TermsError, "dimensions must be 8 as at a, got 9"),
        ({"hops": 3}, TermsError, "hops must be 2 as at a, got 3"),
        ({"context": True}, TermsError, "context must be False"),
        ({"lock_step": True}, TermsError, "lock-step must be False"),
        ({"run": "x"}, TermsError, "the parameters of a lock-step run must be"),
    ],
)
def test_a_greeting_on_other_terms_is_refused_and_the_one_before_stays(change, error, words):
    sessions, good = sessions_of("a"), hello_of()
    sessions.greet("b", good, hello_of("a"))
    with pytest.raises(error, match=words):
        sessions.greet("b", replace(good, **change), hello_of("a"))
    assert sessions.peers.greetings == {"b": good}


def test_hosts_need_not_agree_on_halves_or_on_how_many_nodes_they_have():
    sessions = sessions_of("a")
    sessions.greet("b", replace(hello_of(), half=False, nodes=10**6), hello_of("a"))
    assert sessions.peers.greetings["b"].nodes == 10**6


def test_only_edges_with_the_peer_are_introduced():
    introduction = sessions_of("a").introduce("b")
    assert list(zip(introduction.askers, introduction.others, strict=True)) == [
        ("x@a", "p"), ("x@a", "q"), ("y@a", "p")
    ]  # fmt: skip
    nobody = sessions_of("a").introduce("nobody")
    assert (nobody.askers, nobody.others) == ([], [])


def test_edges_that_both_have_are_agreed_on_and_others_counted():
    a, b = sessions_of("a"), sessions_of("b")
    acceptance, refusals = meet(a, b)
    assert acceptance.accepted.tolist() == [True, False, True]  # b has no q
    assert sum(refusal.times for refusal in refusals) == 1
    assert not a.knows("b")
    assert a.record_acceptance("b", acceptance) == 1
    assert a.knows("b")
    link = a.peers.links["b"]
    assert [a.near.name_arc(arc) for arc in link.arcs.tolist()] == [("x", ("p", "b")), ("y", ("p", "b"))]
    assert [a.near.remotes[row - 2] for row in link.neighbours.tolist()] == [("p", "b")]
    assert a.count_edges("b") == (2, 1)
    assert (b.count_neighbours("a"), b.count_neighbours("c")) == (1, 0)
    assert b.count_edges("a") == (0, 1)  # what it was told of, before it has introduced its own


def test_a_session_is_found_by_its_number_alone():
    a, b = sessions_of("a"), sessions_of("b")
    acceptance, _ = meet(a, b)
    assert b.find("a", acceptance.session).rows.tolist() == [0, 0]
    for peer, number in (("a", acceptance.session + 1), ("c", acceptance.session), ("a", 0)):
        with pytest.raises(SessionError, match=f"{peer} must introduce its edges first"):
            b.find(peer, number)


def test_a_second_introduction_has_another_number_and_ends_the_first():
    a, b = sessions_of("a"), sessions_of("b")
    first, second = meet(a, b)[0], meet(a, b)[0]
    assert first.session != second.session
    assert 0 <= second.session < 2**63
    b.find("a", second.session)
    with pytest.raises(SessionError):
        b.find("a", first.session)


def test_numbers_of_sessions_cannot_be_guessed_from_those_of_another_host():
    a = sessions_of("a")
    assert meet(a, sessions_of("b", key=1))[0].session != meet(a, sessions_of("b", key=2))[0].session


@pytest.mark.parametrize("count", [0, 2, 4])
def test_an_acceptance_of_another_number_of_edges_is_refused(count):
    a = sessions_of("a")
    with pytest.raises(MalformedError, match=f"3 edges were introduced, got {count}"):
        a.record_acceptance("b", Acceptance(1, np.ones(count, bool)))
    assert not a.knows("b")


def test_an_acceptance_of_nothing_is_a_link_without_arcs():
    a = sessions_of("a")
    assert a.record_acceptance("b", Acceptance(1, np.zeros(3, bool))) == 3
    assert len(a.peers.links["b"].arcs) == len(a.peers.links["b"].neighbours) == 0
    assert a.count_edges("b") == (0, 3)


def test_other_edges_keep_greetings_and_need_introductions_anew():
    a, b = sessions_of("a"), sessions_of("b")
    b.greet("a", hello_of("a"), hello_of("b"))
    acceptance, _ = meet(a, b)
    renewed = Sessions(near("b"), 7, b.peers.renew(), b.opened)
    assert list(renewed.peers.greetings) == ["a"]
    with pytest.raises(SessionError):
        renewed.find("a", acceptance.session)
    assert meet(a, renewed)[0].session != acceptance.session  # a number is not given twice
    b.find("a", acceptance.session)


def test_a_link_is_forgotten_alone():
    a, b = sessions_of("a"), sessions_of("b")
    a.greet("b", hello_of(), hello_of("a"))
    a.record_acceptance("b", meet(a, b)[0])
    answer, _ = meet(b, a)
    a.forget("b")
    a.forget("c")
    assert (a.knows("b"), list(a.peers.greetings)) == (False, ["b"])
    a.find("b", answer.session)
