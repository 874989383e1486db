"""What was published at each step, and what is shown to whoever asks for another."""

import numpy as np
import pytest

from manela.errors import TermsError
from manela.hosts.state.instructions import NotReadyError
from manela.hosts.state.messages import ROUND, SMOOTH, START, Step
from manela.hosts.state.publishing import Publications, Published


def at(phase, number, level=0):
    return Published(Step(phase, number, level), number, np.zeros(0))


def publish(publications, *published):
    for one in published:
        publications.publish(one, one.step.number if one.step.phase == ROUND else 0)


def test_what_was_published_last_at_a_step_is_shown():
    publications = Publications(lock_step=False)
    first, second = at(ROUND, 4), at(ROUND, 4)
    publish(publications, first, second)
    assert publications.find(Step(ROUND, 4), Step(ROUND, 4), True) is second


def test_a_dict_that_somebody_reads_is_not_changed():
    publications = Publications(lock_step=False)
    publish(publications, at(ROUND, 1))
    reading = publications.steps
    publish(publications, at(ROUND, 2))
    assert list(reading) == [Step(ROUND, 1)]
    assert list(publications.steps) == [Step(ROUND, 2)]


def test_in_lock_step_the_last_three_steps_are_shown():
    publications = Publications(lock_step=True)
    publish(publications, *(at(ROUND, number) for number in range(6)))
    assert list(publications.steps) == [Step(ROUND, 3), Step(ROUND, 4), Step(ROUND, 5)]
    now = Step(ROUND, 5)
    assert publications.find(Step(ROUND, 3), now, True).version == 3
    with pytest.raises(TermsError, match="round 2 is over, this host is at round 5"):
        publications.find(Step(ROUND, 2), now, True)


def test_in_lock_step_what_has_not_begun_must_be_asked_for_again():
    publications = Publications(lock_step=True)
    publish(publications, at(ROUND, 1))
    for step in (Step(ROUND, 1, 1), Step(ROUND, 2), Step(SMOOTH, 0)):
        with pytest.raises(NotReadyError):
            publications.find(step, Step(ROUND, 1, 1), True)


def test_at_its_own_pace_a_host_shows_its_last_round_in_place_of_others():
    publications = Publications(lock_step=False)
    publish(publications, at(ROUND, 8), at(ROUND, 9))
    now = Step(ROUND, 9)
    for step in (Step(ROUND, 3), Step(ROUND, 20), Step(START, 0)):
        assert publications.find(step, now, True).version == 9


def test_at_its_own_pace_sweeps_of_the_start_are_shown_to_slower_peers_for_three_rounds():
    publications = Publications(lock_step=False)
    start = [at(START, number) for number in range(2)]
    publish(publications, *start)
    assert publications.find(Step(START, 0), Step(START, 1), True) is start[0]
    for number in range(5):
        publish(publications, at(ROUND, number))
        shown = publications.find(Step(START, 0), Step(ROUND, number), True)
        assert (shown is start[0]) == (number < 3)


def test_a_sweep_that_has_not_begun_is_waited_for_and_one_that_was_left_out_is_not():
    publications = Publications(lock_step=False)
    publish(publications, at(START, 0))
    with pytest.raises(NotReadyError):
        publications.find(Step(START, 1), Step(START, 1), True)
    assert publications.find(Step(START, 1), Step(START, 2), True) is None


def test_before_the_first_round_there_is_nothing_to_show_of_a_round():
    assert Publications(lock_step=False).find(Step(ROUND, 0), Step(ROUND, 0), True) is None


def test_a_step_of_smoothing_is_waited_for_only_where_the_host_smooths():
    publications = Publications(lock_step=False)
    publish(publications, at(ROUND, 9))
    with pytest.raises(NotReadyError):
        publications.find(Step(SMOOTH, 0), Step(ROUND, 9), True)
    assert publications.find(Step(SMOOTH, 0), Step(ROUND, 9), False).version == 9


def test_steps_of_smoothing_stay_beside_each_other_and_the_last_round():
    publications = Publications(lock_step=False)
    publish(publications, at(ROUND, 9), at(SMOOTH, 0), at(SMOOTH, 1))
    now = Step(SMOOTH, 1)
    assert publications.find(Step(SMOOTH, 0), now, True).step == Step(SMOOTH, 0)
    assert publications.find(Step(ROUND, 3), now, True).step == Step(ROUND, 9)
