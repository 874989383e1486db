"""What one peer may ask for in a second."""

import pytest

from manela.errors import TooOftenError
from manela.hosts.daemon.contacts import TokenBuckets
from manela.hosts.state.terms import RateLimits


def test_a_request_larger_than_what_can_be_saved_up_is_answered_all_the_same():
    limits = TokenBuckets(RateLimits(vectors=100.0, longest_wait=5.0))
    assert limits.take(0.0, 0, 5000) == 0.0  # fifty seconds' worth, by one that was quiet
    with pytest.raises(TooOftenError, match="try again in 40 s"):
        limits.take(0.0, 0, 10)
    assert limits.take(40.1, 0, 10) == 0.0


def test_such_a_request_waits_until_all_is_saved_up():
    limits = TokenBuckets(RateLimits(vectors=100.0, longest_wait=5.0))
    assert limits.take(0.0, 0, 1000) == 0.0
    with pytest.raises(TooOftenError, match="try again in 10 s"):
        limits.take(0.0, 0, 3000)
    assert limits.take(6.0, 0, 3000) == pytest.approx(4.0)


def test_bytes_that_went_are_waited_for_later():
    limits = TokenBuckets(RateLimits(megabytes=1.0, longest_wait=5.0))
    assert limits.take(0.0, 0, 0) == 0.0
    limits.charge(0.0, 12_000_000)
    assert limits.take(0.0, 0, 0) == pytest.approx(2.0)
    limits.charge(0.0, 20_000_000)
    with pytest.raises(TooOftenError):
        limits.take(0.0, 0, 0)
    assert limits.take(60.0, 0, 0) == 0.0
