"""A short form of `python -m benchmarks soak`: daemons that are killed, lied to and renewed learn all the same."""

from benchmarks.soak import soak


def test_a_crowd_learns_whatever_happens_to_some_of_it(tmp_path):
    found = soak(hosts=6, nodes=600, seconds=4.0, folder=tmp_path, disturbed=True)
    assert found.kills >= 5
    assert found.damaged == []
    assert found.score > 0.85
    assert max(late - early for early, late in found.files) <= 4
    assert max(late / early for early, late in found.memory) < 1.25
    assert max(late - early for early, late in found.sockets) <= 2 * 6
