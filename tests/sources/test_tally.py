"""How often pairs wrote to each other."""

import pytest

from manela.errors import SourceError
from manela.sources import tally as module
from manela.sources.addresses import Addresses
from manela.sources.state import ImportState
from manela.sources.tally import Tally, digest

TODAY = 20_000


class Office:
    """An import of the mail of own.org into a state."""

    def __init__(self, state, half_life=0.0, today=TODAY, **options):
        self.addresses = Addresses(["own.org"], None)
        self.state = state
        self.tally = Tally(self.addresses, state, half_life, today, **options)

    def mail(self, message, sender, *recipients, day=TODAY):
        numbers = [self.addresses.number_one(address) for address in (sender, *recipients)]
        self.tally.add(digest(message.encode()), day, numbers[0], tuple(numbers[1:]))

    def finish(self):
        return {
            (own, other): pytest.approx(weight)
            for batch in self.tally.finish()
            for own, other, weight in zip(batch.own, batch.other, batch.weights.tolist(), strict=True)
        }


@pytest.fixture
def state():
    with ImportState(None, "mail") as found:
        yield found


def test_messages_between_two_are_counted_whoever_wrote(state):
    office = Office(state)
    office.mail("1", "ann@own.org", "bob@else.org")
    office.mail("2", "bob@else.org", "ann@own.org")
    office.mail("3", "bob@else.org", "ann@own.org", "cem@own.org")
    assert office.finish() == {("ann@own.org", "bob@else.org"): 3, ("cem@own.org", "bob@else.org"): 1}
    assert (office.tally.messages, office.tally.repeated) == (3, 0)


def test_directions_are_kept_between_an_own_user_and_another_if_they_matter(state):
    office = Office(state, directed=True)
    office.mail("1", "zoe@own.org", "bob@else.org", "ann@own.org")
    office.mail("2", "bob@else.org", "zoe@own.org")
    office.mail("3", "bob@else.org", "zoe@own.org", "ann@own.org")
    office.mail("4", "bob@else.org", "eve@else.org")
    assert office.finish() == {
        ("zoe@own.org", "bob@else.org"): 1,
        ("bob@else.org", "zoe@own.org"): 2,
        ("bob@else.org", "ann@own.org"): 1,
        ("ann@own.org", "zoe@own.org"): 1,
    }


def test_of_two_own_ones_the_first_in_the_alphabet_stands_first(state):
    office = Office(state)
    office.mail("1", "zoe@own.org", "ann@own.org")
    office.mail("2", "ann@own.org", "zoe@own.org")
    assert office.finish() == {("ann@own.org", "zoe@own.org"): 2}


def test_who_writes_to_themselves_or_is_a_stranger_to_a_stranger_is_no_pair(state):
    office = Office(state)
    office.mail("1", "ann@own.org", "ann@own.org")
    office.mail("2", "bob@else.org", "eve@else.org")
    office.mail("3", "ann@own.org")
    assert office.finish() == {}
    assert office.tally.messages == 3


def test_a_message_counts_once_however_often_it_comes(state):
    office = Office(state)
    for _ in range(3):
        office.mail("same", "ann@own.org", "bob@else.org")
    assert office.finish() == {("ann@own.org", "bob@else.org"): 1}
    assert (office.tally.messages, office.tally.repeated) == (1, 2)
    later = Office(state)
    later.mail("same", "ann@own.org", "bob@else.org")
    later.mail("new", "ann@own.org", "bob@else.org")
    assert later.finish() == {("ann@own.org", "bob@else.org"): 1}
    assert (later.tally.messages, later.tally.repeated) == (1, 1)


def test_sums_do_not_depend_on_how_many_are_counted_at_once(state, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    office = Office(state, most_waiting=3)
    for number in range(20):
        office.mail(str(number % 15), "ann@own.org", f"p{number % 5}@else.org")
    assert office.finish() == {("ann@own.org", f"p{number}@else.org"): 3 for number in range(5)}
    assert (office.tally.messages, office.tally.repeated) == (15, 5)


def test_older_messages_count_less_and_those_of_tomorrow_no_more(state):
    office = Office(state, half_life=10.0)
    for message, day in (("0", TODAY), ("1", TODAY - 10), ("2", TODAY - 20), ("3", TODAY + 50)):
        office.mail(message, "ann@own.org", f"p{message}@else.org", day=day)
    assert list(office.finish().values()) == [1.0, 0.5, 0.25, 1.0]


def kept(state):
    return [weight for batch in state.read_edges() for weight in batch.weights.tolist()]


def test_what_was_kept_fades_by_the_days_since_the_last_import(state):
    first = Office(state, half_life=10.0)
    first.mail("1", "ann@own.org", "bob@else.org")
    for batch in list(first.tally.finish()):
        state.add(batch, adds=True)
    second = Office(state, half_life=10.0, today=TODAY + 10)
    second.finish()
    assert kept(state) == pytest.approx([0.5])
    # a clock that went back makes nothing heavier, nor fade twice
    Office(state, half_life=10.0, today=TODAY + 3).finish()
    assert kept(state) == pytest.approx([0.5])


def test_without_a_half_life_nothing_fades(state):
    first = Office(state)
    first.mail("1", "ann@own.org", "bob@else.org", day=0)
    for batch in list(first.tally.finish()):
        state.add(batch, adds=True)
    Office(state, today=TODAY + 1000).finish()
    assert kept(state) == [1.0]


def test_a_clock_that_is_years_ahead_is_refused(state):
    Office(state).finish()
    Office(state, today=TODAY + 2000)
    with pytest.raises(SourceError, match="the clock is 2,001 days ahead of the last import"):
        Office(state, today=TODAY + 2001)


def test_an_import_of_nothing_leaves_what_was_seen(state):
    office = Office(state)
    office.mail("1", "ann@own.org", "bob@else.org")
    office.finish()
    assert Office(state).finish() == {}
    assert state.read_seen().tolist() == [digest(b"1")]


def test_digests_are_words_of_64_bits_and_go_by_the_text():
    found = {digest(str(number).encode()) for number in range(1000)}
    assert len(found) == 1000
    assert all(0 <= one < 2**64 for one in found)
    assert digest(b"") == digest(b"")
