import asyncio
from types import SimpleNamespace

import pytest

from manela.errors import OutputError
from manela.hosts.daemon import reopening
from manela.hosts.daemon.reopening import Reopening, find_request, request_rounds
from manela.hosts.folder.store import Store


class Finished:
    """A host that is done, with nothing new; `reopened` has what it was asked for."""

    def __init__(self, **facts):
        self.done, self.has_new_edges, self.should_go_on, self.reopened = True, False, False, []
        vars(self).update(facts)

    def reopen(self, rounds=None):
        self.reopened.append(rounds)
        self.done = False


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path, create="alpha") as store:
        yield store


def reopen(decision, host):
    return asyncio.run(decision.reopen(host))


def test_without_a_reason_a_host_stays_done(store):
    decision, host = Reopening(store, store), Finished()
    assert not decision.has_reason(host)
    assert not reopen(decision, host)
    assert host.reopened == []


def test_requested_rounds_are_done_once(store):
    decision, host = Reopening(store, store), Finished()
    request_rounds(store, 5)
    assert decision.has_reason(host)
    assert reopen(decision, host)
    assert host.reopened == [5]
    assert not decision.has_reason(host)


def test_a_request_that_cannot_be_recorded_as_done_is_not_begun(store):
    def fail(*_):
        raise OutputError("disk full")

    decision, host = Reopening(store, SimpleNamespace(put=fail)), Finished()
    request_rounds(store, 5)
    assert not reopen(decision, host)
    assert host.reopened == []
    assert find_request(store).rounds == 5


def test_other_edges_reopen_with_the_usual_rounds(store):
    host = Finished(has_new_edges=True)
    assert reopen(Reopening(store, store), host)
    assert host.reopened == [None]


def test_peers_reopen_after_a_pause_that_doubles(store, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(reopening, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    decision = Reopening(store, store)
    assert reopen(decision, Finished(should_go_on=True))
    for pause in (10.0, 20.0, 40.0):
        clock[0] += pause - 1
        assert not decision.has_reason(Finished(should_go_on=True))
        assert not reopen(decision, Finished(should_go_on=True))
        clock[0] += 1
        assert decision.has_reason(Finished(should_go_on=True))
        assert reopen(decision, Finished(should_go_on=True))
