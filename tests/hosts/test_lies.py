"""A host that learns by messages, and a peer that answers each request with anything that can be decoded."""

from contextlib import suppress

import numpy as np
import pytest
from harness import make_terms, meet_all, split_over

from manela.errors import RefusedError
from manela.formats.datasets import stochastic_block_model
from manela.hosts.state.instructions import Ask, Compute, NotReadyError
from manela.hosts.state.messages import Pull, Shown, Step, Sums
from manela.hosts.wire import codec
from manela.hosts.wire.calls import decode_reply
from manela.kernels.moments import Moments

ODD = np.array([0.0, -0.0, 1e-45, 1e-30, 1.0, -3.0, 1e4, 6e4, 1e20, 3e38, np.inf, -np.inf, np.nan], np.float32)


def lie(random, host, peer, request):
    """An answer of the right shape, with odd values in it."""
    tables, levels, m = host.count_rows(request)
    known = len(host.peers.links[peer].neighbours)
    amount = int(random.integers(0, known + 1))
    levels = int(random.choice([1, levels]))
    rows = (
        random.choice(ODD, (amount, tables, levels, m))
        if random.random() < 0.5
        else (random.normal(size=(amount, tables, levels, m)) * random.choice(ODD[2:10]))
    )
    strengths = random.choice([0.0, -1.0, 1e-300, 0.5, 1.0, 7.0, 1e300, np.inf, np.nan], amount)
    size = int(random.choice([1, 31, 32, 75, 2**24, 2**31]))
    most = int(size * 2**19)
    total = random.integers(-most, most + 1, m)
    half = random.integers(-(2**62), 2**62, (m, m)) // 2
    products = np.clip(half + half.T, -min(size * 2**38, 2**62), min(size * 2**38, 2**62))
    moments = [Moments(size, total, products)] * tables if random.random() < 0.5 else []
    sums = Sums(int(random.choice([0, 1, 2**31])), random.integers(-(2**62), 2**62, m), 2**100)
    step = Step(int(random.integers(3)), int(random.choice([0, 1, request.step.number])), int(random.integers(3)))
    step = request.step if random.random() < 0.7 else step
    numbers = np.sort(random.choice(known, amount, replace=False))
    version = int(random.choice([0, 1, 5, 2**62]))
    return Shown(step, version, numbers, rows.astype(np.float32), strengths, moments, sums)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("weighted", [False, True])
def test_whatever_a_peer_answers_vectors_stay_finite_and_only_refusals_are_raised(seed, weighted):
    graph, _ = stochastic_block_model(nodes=90, inside=0.3, between=0.05, seed=3)
    terms = make_terms(weighted=weighted, rounds=6, pairs=None, every=1, means=1)
    hosts, _ = split_over(graph, 2, terms)
    meet_all(hosts)
    host, random = hosts["h0"], np.random.default_rng(seed)
    for instruction in host.script():
        if isinstance(instruction, Compute):
            host.compute()
        elif isinstance(instruction, Ask):
            for peer, request in host.requests().items():
                with np.errstate(over="ignore", invalid="ignore"):
                    content = codec.encode(lie(random, host, peer, request))
                with suppress(RefusedError):
                    reply = decode_reply(host, peer, request, content)
                    refusals = host.receive(peer, request, reply)
                    assert all(isinstance(refusal, RefusedError) for refusal in refusals)
                with suppress(RefusedError, NotReadyError):
                    host.answer(peer, request_of(host, peer, random))
    assert host.done
    assert np.isfinite(host.vectors).all()
    assert np.isfinite(host.smoothed).all()


def request_of(host, peer, random):
    """A request of the peer for any step."""
    step = Step(int(random.integers(3)), int(random.integers(8)), int(random.integers(3)))
    return Pull(host.peers[peer].session.number, step, int(random.choice([0, 1, 2**62])))
