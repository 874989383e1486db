"""Daemons that learned apart come to one frame when they can reach each other."""

import time

import numpy as np
import pytest

from manela.formats.datasets import planted_partition
from manela.hosts.daemon.reopening import request_start
from manela.hosts.federation import Federation, assign
from manela.hosts.folder.home import export, read_status
from manela.hosts.folder.store import Store


@pytest.fixture
def federation(tmp_path):
    graph, communities = planted_partition(400, 8, inside=8, outside=2, seed=3)
    found = Federation(
        graph, assign(graph, 4, "random", 1), tmp_path, {"dimensions": 16}, start=0.2, wait=0.2, finish=20.0
    )  # fmt: skip
    found.communities = communities
    return found


def wait_for(federation, members, is_met):
    """Wait until all these members have a status that is as wanted."""
    while not all(is_met(read_status(member.home)) for member in members):
        time.sleep(0.1)


def wait_for_one_frame(federation, generation):
    """Wait until all are done in one frame of this generation or a later one, and return its name."""
    while True:
        statuses = federation.statuses()
        frames = {status["frame"] for status in statuses}
        is_settled = all(status["state"] == "done" and not status["provisional"] for status in statuses)
        if is_settled and len(frames) == 1 and int(max(frames).partition(".")[2]) >= generation:
            return max(frames)
        federation.check()
        time.sleep(0.1)


def share_across(federation):
    """Of the ten nearest at other hosts, the share that is of the own community."""
    vectors = federation.gather().vectors
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    homes = np.empty(len(units), object)
    for (_, home), row in federation.numbers.items():
        homes[row] = home
    cosines = np.where(homes[:, None] == homes, -2.0, units @ units.T)
    nearest = np.argsort(-cosines, axis=1)[:, :10]
    return float((federation.communities[nearest] == federation.communities[:, None]).mean())


def test_daemons_that_each_learned_alone_come_to_one_frame(federation):
    """Each ran while the others were away."""
    for member in federation.members:
        federation.start(member)
        wait_for(federation, [member], lambda status: status.get("state") == "done" and status["provisional"])
        federation.kill(member)
    assert len({read_status(member.home)["frame"] for member in federation.members}) == 4
    assert share_across(federation) < 0.8
    with federation.running():
        frame = wait_for_one_frame(federation, 2)
        assert share_across(federation) > 0.97
        assert all(peer["comparable"] for status in federation.statuses() for peer in status["peers"].values())
        with Store(federation.members[2].home) as store:
            request_start(store)
        newer = wait_for_one_frame(federation, int(frame.partition(".")[2]) + 1)
    assert {export(member.home).provenance["frame"] for member in federation.members} == {newer}
    assert share_across(federation) > 0.97
