"""What a host has disclosed is known also to the daemon that follows one that was killed."""

import json
import math

import pytest

from manela.hosts.daemon.account import Account
from manela.hosts.folder.store import Store
from manela.hosts.state.noise import Noise
from manela.hosts.state.terms import PeerOptions


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path, create="alpha") as found:
        yield found


def test_a_killed_daemon_has_spent_what_it_might_have(store):
    options = PeerOptions(epsilon=4.0)
    account, noise = Account(store, options), Noise(options, 1)
    account.load(noise.ledger)
    assert noise.ledger.charge(noise.budget / 8)
    noise.ledger.by_peer["beta"] = noise.budget / 8
    account.reserve(noise)
    after = Noise(options, 1)
    account.load(after.ledger)
    assert after.ledger.spent == pytest.approx(noise.budget * (1 / 8 + 1 / 2))
    account.reserve(after)  # no more than there is
    last = Noise(options, 1)
    account.load(last.ledger)
    assert last.ledger.spent == pytest.approx(noise.budget)
    assert not last.ledger.charge(noise.budget / 100)


def test_a_daemon_that_has_learned_has_spent_what_it_did(store):
    options = PeerOptions(epsilon=4.0)
    account, noise = Account(store, options), Noise(options, 1)
    account.load(noise.ledger)
    account.reserve(noise)
    assert noise.ledger.charge(0.1)
    account.keep(noise)
    after = Noise(options, 1)
    account.load(after.ledger)
    assert after.ledger.spent == pytest.approx(0.1)
    told = account.describe(after)
    assert (told["limit"], told["days"]) == (4.0, 30)
    assert 0.0 < told["spent"] < 4.0


def test_a_period_ends_and_what_was_spent_with_it(store):
    options = PeerOptions(epsilon=4.0, period=1)
    account, noise = Account(store, options), Noise(options, 1)
    store.put("account", json.dumps({"period": 3, "spent": 1.0, "peers": {"beta": 1.0}}))
    account.load(noise.ledger)
    assert (noise.ledger.spent, noise.ledger.by_peer) == (0.0, {})


def test_without_noise_there_is_no_number(store):
    options = PeerOptions(noise=0.0)
    account, noise = Account(store, options), Noise(options, 1)
    account.load(noise.ledger)
    noise.ledger.charge(math.inf)
    account.reserve(noise)
    account.keep(noise)
    assert account.describe(noise)["spent"] is None
    assert store.get("account") is None
