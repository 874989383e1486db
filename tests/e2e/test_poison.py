"""Real daemons, of which the fourth is hostile: what the others learn stays good, and they say whom they doubt."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hostile_daemon import ATTACKS

from manela.analysis.classification import classify
from manela.formats.datasets import stochastic_block_model
from manela.hosts.federation import Federation, assign
from manela.hosts.folder.home import export, read_status
from manela.hosts.folder.store import Store

LONGEST = 240.0
ABSENT, LOSS = "absent", 0.03
FALSE_ROWS = ("norm 3", "norm 10", "norm 999", "constant", "differing", "equivocation")
"""Attacks by which every vector of the liar is a lie from the beginning."""


@pytest.fixture(scope="module")
def blocks():
    return stochastic_block_model(nodes=300, communities=6, inside=0.2, between=0.035, seed=0)


def learn(blocks, folder, attack):
    """Four daemons, the fourth of which lies or is absent; returns micro-F1 of the others, and what they say."""
    graph, communities = blocks
    folder.mkdir()
    federation = Federation(graph, assign(graph, 4, "random", 0), folder, {"dimensions": 32}, finish=5.0)
    *honest, liar = federation.members
    daemons = Path(__file__).with_name("hostile_daemon.py")
    command = [sys.executable, daemons, attack, liar.home, *(member.home for member in honest)]
    if attack == ABSENT:
        for member in honest:
            with Store(member.home) as store:
                store.remove_peer(liar.name)
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdin=subprocess.PIPE, stderr=log) as process:
        until = time.monotonic() + LONGEST
        while not all(read_status(member.home).get("state") == "done" for member in honest):
            assert time.monotonic() < until, federation.statuses()
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        statuses = [read_status(member.home) for member in honest]
        process.stdin.close()  # which ends them all
    vectors, rows = [], []
    for member in honest:
        found = export(member.home)
        vectors.append(found.vectors)
        rows += [federation.numbers[node, member.name] for node in found.nodes.tolist()]
    labels = sp.csr_matrix(np.eye(6)[communities[rows]])
    return float(classify(np.concatenate(vectors), labels, jobs=1).micro.mean()), statuses, liar.name


@pytest.fixture(scope="module")
def absence(blocks, tmp_path_factory):
    """Micro-F1 where the fourth host is not there."""
    folder = tmp_path_factory.mktemp("absent")
    return np.median([learn(blocks, folder / str(times), ABSENT)[0] for times in range(9)])


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_fourth_host_costs_no_more_than_its_absence(blocks, absence, tmp_path, attack):
    score, statuses, liar = learn(blocks, tmp_path / "0", attack)
    scores = [score]
    # hosts draw from secrets of their own, and a score is off by 0.02: the median counts, of more runs if in doubt
    for more in (2, 4, 8):
        if np.median(scores) < absence - LOSS * (more > 2):
            scores += [learn(blocks, tmp_path / str(len(scores) + again), attack)[0] for again in range(more)]
    assert np.median(scores) >= absence - LOSS, (scores, absence)
    assert all(status["peers"][liar]["state"] == "here" for status in statuses)  # it took part to the end
    if attack in FALSE_ROWS:
        assert sum(sum(status["peers"][liar]["alarms"].values()) for status in statuses) > 0
    # honest hosts go on believing each other
    for status in statuses:
        assert status["refusals"].keys() <= {liar}
        assert all("disagreeing" not in peer["alarms"] for name, peer in status["peers"].items() if name != liar)
