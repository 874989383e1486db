import asyncio
from types import SimpleNamespace

import pytest

from manela.errors import OutputError
from manela.hosts.daemon import reopening
from manela.hosts.daemon.reopening import Reopening, RoundRequest, close_request, find_request, request_rounds
from manela.hosts.folder.store import Store


class Finished:
    """A host that is done, with nothing new; `reopened` has what it was asked for."""

    def __init__(self, **facts):
        self.done, self.has_new_edges, self.should_go_on, self.reopened = True, False, False, []
        self.is_outdated = False
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


def test_newer_starts_have_pauses_of_their_own_that_double_and_end(store, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(reopening, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    decision, pauses = Reopening(store, store), []
    for _ in range(12):
        assert reopen(decision, Finished(is_outdated=True, should_go_on=True))
        begun = clock[0]
        while not decision.has_reason(Finished(is_outdated=True, should_go_on=True)):
            clock[0] += 1.0
        pauses.append(clock[0] - begun)
    assert pauses[:4] == [2.0, 4.0, 8.0, 16.0]
    assert pauses[-1] == 900.0
    clock[0] += 10_000.0
    assert reopen(decision, Finished(is_outdated=True, should_go_on=True))
    clock[0] += 2.0
    assert decision.has_reason(Finished(is_outdated=True, should_go_on=True))


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


@pytest.fixture
def host_store(tmp_path):
    with Store(tmp_path, create="alpha") as host_store:
        yield host_store


def test_a_request_is_open_until_it_is_carried_out(host_store):
    assert find_request(host_store) is None
    assert request_rounds(host_store, 5) == 5
    request = find_request(host_store)
    assert request.rounds == 5
    close_request(host_store, request)
    assert find_request(host_store) is None


def test_rounds_are_added_to_those_that_wait_and_to_no_others(host_store):
    request_rounds(host_store, 5)
    assert request_rounds(host_store, 7) == 12
    close_request(host_store, find_request(host_store))
    assert request_rounds(host_store, 3) == 3


def test_what_closes_an_earlier_request_does_not_close_a_later_one(host_store):
    request_rounds(host_store, 5)
    earlier = find_request(host_store)
    request_rounds(host_store, 7)
    close_request(host_store, earlier)
    assert find_request(host_store).rounds == 12


@pytest.mark.parametrize("text", ["", "7", "7 many", "7 -1"])
def test_what_is_no_request_is_none(host_store, text):
    host_store.put("learn", text)
    assert find_request(host_store) is None


def test_the_words_of_earlier_versions_are_read(host_store):
    host_store.put("learn", "7 2")
    assert find_request(host_store) == RoundRequest("7", 2)
