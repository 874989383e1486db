"""What a `with` statement closes."""

import pytest

from manela.system.threads import Closable


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
