"""What a `with` statement closes."""

import os
import threading

import numpy as np
import pytest

from manela.system.threads import Closable, Threads, allow_cores, count_cores, count_jobs


def test_negative_jobs_count_from_all_cores():
    assert count_jobs(3) == 3
    assert count_jobs(-1) == count_jobs(None) == count_cores() >= 1
    assert count_jobs(-10_000) == 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_cores_are_those_that_the_process_may_run_on():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert count_cores() == count_jobs(-1) == 1
    finally:
        os.sched_setaffinity(0, before)


def test_fewer_cores_are_allowed_for_a_while():
    with allow_cores(5):
        assert count_cores() == 5
        with allow_cores(1):
            assert count_cores() == count_jobs(-1) == 1
        assert count_cores() == 5


@pytest.mark.parametrize("jobs", [1, 2, 3, 16])
def test_pieces_cover_all_work_once_and_the_last_are_short(jobs):
    work = np.random.default_rng(0).integers(1, 50, size=5000)
    with Threads(jobs) as threads:
        borders = threads.cut(work)
        assert threads.cut(work[:0]).tolist() == [0]
        assert threads.cut(np.array([10**13] * 3))[-1] == 3
    assert borders[0] == 0
    assert borders[-1] == 5000
    assert np.all(np.diff(borders) > 0)
    sums = np.add.reduceat(work, borders[:-1])
    if jobs > 1:
        assert len(sums) > 2 * jobs
        assert sums[-1] <= work.sum() / (16 * jobs)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_piece_is_done_once_and_no_thread_outlives_the_threads(count):
    before = threading.active_count()
    done = np.zeros(100, dtype=np.int64)

    def work(first, last):
        done[first:last] += 1

    with Threads(count) as threads:
        threads.share(work, np.array([0, 3, 50, 51, 100]))
        threads.share(work, np.array([0]))
    assert (done == 1).all()
    assert threading.active_count() == before


def test_an_error_in_a_piece_is_raised_whichever_thread_took_it():
    def fail(first, _):
        raise ZeroDivisionError(first)

    for count in (1, 3):
        with Threads(count) as threads, pytest.raises(ZeroDivisionError):
            threads.share(fail, np.arange(4))


def test_several_threads_work_at_the_same_time():
    both = threading.Barrier(2)
    with Threads(2) as threads:
        threads.share(lambda *_: both.wait(60), np.arange(3))


class Recorder(Closable):
    def __init__(self):
        self.closed = 0

    def close(self):
        self.closed += 1


def test_it_is_closed_once_at_the_end_and_not_before():
    with Recorder() as recorder:
        assert recorder.closed == 0
    assert recorder.closed == 1


def test_an_error_closes_it_and_goes_on():
    recorder = Recorder()
    with pytest.raises(ValueError, match="broken"), recorder:
        raise ValueError("broken")
    assert recorder.closed == 1
