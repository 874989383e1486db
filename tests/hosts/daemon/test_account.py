"""What a host has disclosed is known also to the daemon that follows one that was killed."""

import json
import math
import time

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
    assert after.ledger.spent == pytest.approx(noise.budget)
    assert not after.ledger.charge(noise.budget / 100)
    assert after.ledger.by_peer["beta"] == pytest.approx(noise.budget)


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
    options = PeerOptions(epsilon=4.0, period=30)
    today = int(time.time() / 86_400)
    for began, spent in ((today - 31, 0.0), (today - 20, 1.0)):
        account, noise = Account(store, options), Noise(options, 1)
        store.put("account", json.dumps({"period": began, "spent": 1.0, "peers": {"beta": 1.0}}))
        account.load(noise.ledger)
        assert noise.ledger.spent == spent
    # another length of periods neither forgets what was spent nor keeps it for ever
    shorter, noise = Account(store, PeerOptions(epsilon=4.0, period=10)), Noise(options, 1)
    shorter.load(noise.ledger)
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
