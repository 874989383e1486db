"""A real daemon that learns by walks, and peers that mean harm: everything is refused, counted, written down."""

import numpy as np
import pytest
from hostile_peers import EMPTY, attack_with, pull, request, run_world

from manela.errors import BadVectorError, MalformedError, NotAdjacentError, TooFarError
from manela.hosts.state.messages import Introduction, WalkReply
from manela.hosts.wire import codec
from manela.hosts.wire.calls import INTRODUCE, SHOW, WALK


@pytest.fixture(scope="module")
def walking(tmp_path_factory):
    yield from run_world(tmp_path_factory.mktemp("walking"), "walks")


def answer_with(vectors, index=None):
    """An answer by walks."""

    def answer(asked):
        places = np.zeros(asked.size, np.int64) if index is None else index(asked)
        return codec.encode(WalkReply(1, EMPTY, np.zeros((0, 1, 8), np.float32), places, vectors))

    return answer


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (answer_with(np.full((1, 1, 8), np.nan, np.float32)), BadVectorError),
        (answer_with(np.zeros((1, 1, 9), np.float32)), MalformedError),
        (answer_with(np.zeros((1, 1, 8), np.float32), lambda asked: np.full(asked.size, 7)), MalformedError),
        (lambda asked: b"\xff\xff", MalformedError),
    ],
    ids=["nan", "wrong length", "wrong index", "no message"],
)
def test_a_bad_answer_by_walks_is_refused_and_learning_goes_on(walking, answer, kind):
    attack_with(walking, answer, None, kind.reason)


def test_an_honest_peer_is_answered_by_walks(walking):
    session = walking.introduce()
    content = request(session, edges=[0, 1], steps=[1, 1], random=3)
    asked = codec.decode_walk_request(content, False)
    reply = codec.decode_walk_reply(walking.ask("b", WALK, content), asked, 1, 8)
    assert len(reply.index) == 5


def test_the_call_of_the_other_exchange_is_refused(walking):
    assert walking.ask("b", SHOW, pull(walking.introduce())) == MalformedError.reason


def test_a_walk_through_a_node_that_is_not_adjacent_goes_nowhere(walking):
    world = walking
    before = world.count("b", NotAdjacentError.reason)
    answer = world.ask("b", INTRODUCE, codec.encode(Introduction(["p1@b", "p1@b"], ["n2", "n29"])))
    acceptance = codec.decode_acceptance(answer)
    assert not acceptance.accepted.any()
    # nor does a walk by an edge that was not accepted
    assert world.ask("b", WALK, request(acceptance.session, edges=[0], steps=[1])) == NotAdjacentError.reason
    world.check_refused("b", NotAdjacentError.reason, before + 2)


@pytest.mark.parametrize("steps", [0, 2, 255])
def test_more_hops_than_agreed_are_refused(walking, steps):
    world = walking
    session = world.introduce()
    before = world.count("b", TooFarError.reason)
    assert world.ask("b", WALK, request(session, edges=[0], steps=[steps])) == TooFarError.reason
    world.check_refused("b", TooFarError.reason, before)
