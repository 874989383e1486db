"""What a run tells while it runs."""

import dataclasses

import pytest

from manela.system.progress import Progress


def progress(pairs=0, seconds=0.0):
    return Progress(1, 10, pairs, seconds, 9.0, 0.025, -1.0)


@pytest.mark.parametrize(("pairs", "seconds", "speed"), [(100, 4.0, 25.0), (0, 4.0, 0.0), (100, 0.0, 0.0), (0, 0, 0)])
def test_the_speed_is_pairs_over_seconds_and_nothing_before_time_has_passed(pairs, seconds, speed):
    assert progress(pairs, seconds).pairs_per_second == speed


def test_whoever_is_told_cannot_change_it():
    with pytest.raises(dataclasses.FrozenInstanceError):
        progress().round = 2
