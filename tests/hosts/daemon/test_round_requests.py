import pytest

from manela.hosts.daemon.reopening import RoundRequest, close_request, find_request, request_rounds
from manela.hosts.folder.store import Store


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path, create="alpha") as store:
        yield store


def test_a_request_is_open_until_it_is_carried_out(store):
    assert find_request(store) is None
    assert request_rounds(store, 5) == 5
    request = find_request(store)
    assert request.rounds == 5
    close_request(store, request)
    assert find_request(store) is None


def test_rounds_are_added_to_those_that_wait_and_to_no_others(store):
    request_rounds(store, 5)
    assert request_rounds(store, 7) == 12
    close_request(store, find_request(store))
    assert request_rounds(store, 3) == 3


def test_what_closes_an_earlier_request_does_not_close_a_later_one(store):
    request_rounds(store, 5)
    earlier = find_request(store)
    request_rounds(store, 7)
    close_request(store, earlier)
    assert find_request(store).rounds == 12


@pytest.mark.parametrize("text", ["", "7", "7 many", "7 -1"])
def test_what_is_no_request_is_none(store, text):
    store.put("learn", text)
    assert find_request(store) is None


def test_the_words_of_earlier_versions_are_read(store):
    store.put("learn", "7 2")
    assert find_request(store) == RoundRequest("7", 2)
