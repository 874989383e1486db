"""Real daemons on this machine: what they learn together, and what they survive."""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from harness import circles, draw_ring, infer

from manela import Manela
from manela.analysis.classification import measure_separation
from manela.formats.datasets import stochastic_block_model
from manela.formats.embeddings import read_embedding
from manela.hosts.federation import Federation, assign
from manela.hosts.folder.home import is_running, read_status
from manela.hosts.folder.trace import read_disclosures
from manela.hosts.folder.vectors import VectorsFile

LONGEST = 240.0


@pytest.fixture(scope="module")
def blocks():
    return stochastic_block_model(nodes=200, inside=0.25, between=0.01, seed=3)


def federate(graph, folder, hosts=3, **options):
    parameters = {"dimensions": 16, "ratios": (0.7, 0.3), **options.pop("parameters", {})}
    return Federation(graph, assign(graph, hosts, "random", 1), folder, parameters, **options)


def wait(federation, holds=lambda statuses: False):
    """Until a condition holds, or all are done."""
    until = time.monotonic() + LONGEST
    for statuses in federation.wait(poll=0.02):
        assert time.monotonic() < until, statuses
        if holds(statuses):
            break
    return statuses


def came_back(name, pid):
    """That the daemon of this name runs in this process, and learns."""
    return lambda statuses: any(
        (status["name"], status.get("pid")) == (name, pid) and status["state"] in ("learning", "done")
        for status in statuses
    )


def no_process_left(federation):
    return all(not is_running(member.home) for member in federation.members)


@pytest.mark.parametrize("walks", [False, True], ids=["messages", "walks"])
def test_daemons_in_lock_step_give_the_bits_of_one_process(blocks, tmp_path, walks):
    graph, _ = blocks
    budget = {"pairs": 60_000, "rounds": 10, "context": True} if walks else {"patience": 0.2}
    parameters = {"dimensions": 16, "ratios": (0.4, 0.3, 0.3), **budget}
    whole = (
        Manela.paper(**parameters, random_state=7)
        if walks
        else Manela(**parameters, negative_source="moments", random_state=7)
    )
    whole.fit(graph)
    exchange = {"exchange": "walks"} if walks else {}
    federation = federate(graph, tmp_path, 3, parameters={**parameters, **exchange}, lock_step=True, seed=7)
    with federation.running():
        wait(federation)
    assert no_process_left(federation)
    found = federation.gather()
    np.testing.assert_array_equal(found.vectors, whole.embedding_)
    if walks:
        np.testing.assert_array_equal(found.context, whole.context_)
    assert found.nodes.tolist() == graph.nodes.tolist()


def test_the_command_splits_learns_gathers_and_leaves_nothing(blocks, tmp_path, manela):
    graph, communities = blocks
    file = tmp_path / "graph.csv"
    sources = np.repeat(np.arange(graph.number_of_nodes), graph.degrees)
    file.write_text("".join(f"{a},{b}\n" for a, b in zip(sources, graph.indices, strict=True) if a < b))
    where = tmp_path / "hosts.txt"
    where.write_text("".join(f"{node} {'east' if node % 3 else 'west'}\n" for node in graph.nodes.tolist()))
    out = tmp_path / "out.npz"
    done = manela(
        "federate", file, "--by", where, "-o", out, "--folder", tmp_path / "hosts", "--trace",
        "--dimensions", 16, "--ratios", "0.7,0.3",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "200 vectors of 2 hosts" in done.stderr
    assert "bytes a pair, 0 refusals" in done.stderr
    found = read_embedding(out)
    order = np.argsort(found.nodes.astype(int))
    assert measure_separation(found.vectors[order], communities).accuracy > 0.95
    for name in ("east", "west"):
        folder = tmp_path / "hosts" / name
        assert not is_running(folder)
        assert {fact["kind"] for fact in read_disclosures(folder / "trace.jsonl")} <= {"edge", "shown", "own", "sums"}
        assert (folder / "key.pem").stat().st_mode & 0o777 == 0o600
    again = manela("federate", file, "-o", out, "--folder", tmp_path / "hosts")
    assert again.returncode == 2
    assert "must be new or empty" in again.stderr


def test_what_traced_daemons_were_told_lies_inside_the_circles_of_their_nodes(tmp_path):
    graph, where = draw_ring(64, 4)
    parameters = {
        "dimensions": 16, "ratios": (0.4, 0.3, 0.3), "pairs": 60_000, "rounds": 12, "exchange": "walks"
    }  # fmt: skip
    federation = Federation(graph, where, tmp_path, parameters, trace=True)
    with federation.running():
        wait(federation)
    traces, everything = federation.traces(), circles(graph, range(64), 1)
    numbers = {(str(node), host): row for row, (node, host) in enumerate(zip(graph.nodes, where, strict=True))}
    names = sorted(traces)
    assert names == sorted(set(where))
    for group in [[name] for name in names] + [[one, two] for one in names for two in names if one < two]:
        rows = {row for (_, host), row in numbers.items() if host in group}
        allowed = circles(graph, rows, 3)
        assert allowed < everything  # otherwise this would prove nothing
        known = {
            fact["vector"]: numbers[fact["node"], fact["peer"]]
            for name in group for fact in traces[name] if fact["kind"] == "neighbour"
        }  # fmt: skip
        seen = {row for edge in circles(graph, rows, 1) for row in edge}
        assert set(known.values()) <= seen
        for name in group:
            by_id, by_vector = infer(name, traces[name], numbers, known)
            assert by_id
            assert by_id <= {edge for edge in everything if edge & rows}
            assert by_vector <= allowed & everything


def test_killing_the_command_ends_the_daemons(blocks, tmp_path):
    command = [sys.executable, "-m", "manela", "federate", "sbm", "--hosts", "2", "-o", str(tmp_path / "out.npz"),
               "--folder", str(tmp_path / "hosts"), "--pairs", "10000000000", "--rounds", "1000000"]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    folders = [tmp_path / "hosts" / f"host{i}" for i in (1, 2)]
    until = time.monotonic() + LONGEST
    while not all((folder / "status.json").exists() and read_status(folder).get("round", 0) > 0 for folder in folders):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    process.kill()
    process.wait()
    process.stderr.close()
    while any(is_running(folder) for folder in folders):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert not (tmp_path / "out.npz").exists()


def test_daemons_killed_at_random_moments_come_back_and_finish(blocks, tmp_path):
    graph, communities = blocks
    federation = federate(graph, tmp_path, 3, parameters={"pairs": 6_000_000, "rounds": 400}, away=20)
    random = np.random.default_rng(5)
    kills = 0
    with federation.running():
        wait(federation, lambda statuses: all(status.get("round", 0) > 0 for status in statuses))
        while kills < 5:
            member = federation.members[int(random.integers(3))]
            time.sleep(float(random.uniform(0.0, 0.6)))
            federation.kill(member)
            kills += 1
            # whatever was written is whole
            saved = VectorsFile(member.home).load()
            assert saved is None or np.isfinite(saved.vectors).all()
            before = 0 if saved is None else saved.round
            federation.start(member)
            status = wait(federation, came_back(member.name, federation.pid(member)))
            assert next(one for one in status if one["name"] == member.name)["round"] >= before
        statuses = wait(federation)
    assert all(status["round"] == status["rounds"] for status in statuses)
    found = federation.gather()
    assert np.isfinite(found.vectors).all()
    undisturbed = Manela(dimensions=16, ratios=(0.7, 0.3), pairs=6_000_000, rounds=400).fit(graph)
    disturbed, whole = (measure_separation(one, communities) for one in (found.vectors, undisturbed.embedding_))
    assert disturbed.accuracy > whole.accuracy - 0.02
    assert disturbed.silhouette > whole.silhouette - 0.1


def test_the_rest_goes_on_when_one_is_gone_for_good(blocks, tmp_path):
    graph, communities = blocks
    federation = federate(
        graph, tmp_path, 3, parameters={"pairs": 6_000_000, "rounds": 600}, away=5, grace=0.2, wait=0.5, finish=1.0
    )
    with federation.running():
        wait(federation, lambda statuses: min(status.get("round", 0) for status in statuses) > 60)
        gone, *rest = federation.members
        federation.kill(gone)
        until = time.monotonic() + LONGEST
        while not all(read_status(member.home)["state"] == "done" for member in rest):
            assert time.monotonic() < until
            time.sleep(0.05)
        statuses = {member.name: read_status(member.home) for member in rest}
    assert all(status["peers"][gone.name]["state"] == "away" for status in statuses.values())
    kept = federation.gather()
    here = np.array([federation.numbers[name, member.name] for member in rest for name in _names(member)])
    assert measure_separation(kept.vectors[here], communities[here]).accuracy > 0.95


def _names(member):
    return VectorsFile(member.home).load().names


def test_edges_and_peers_change_while_it_runs(blocks, tmp_path, manela_here):
    graph, _ = blocks
    federation = federate(graph, tmp_path, 2, parameters={"pairs": 10**10, "rounds": 10**6}, wait=0.2)
    one, two = federation.members
    with federation.running():
        wait(federation, lambda statuses: all(status.get("round", 0) > 5 for status in statuses))
        before = [status["nodes"] for status in federation.statuses()]
        assert manela_here("agent", "edges", "add", "newcomer", "also-new@host2", "--home", one.home).returncode == 0
        assert manela_here("agent", "edges", "add", "also-new", "newcomer@host1", "--home", two.home).returncode == 0
        more = tmp_path / "more.csv"
        more.write_text("newcomer,third\n# a comment\nthird,newcomer,1\n")
        assert manela_here("agent", "edges", "import", more, "--home", one.home).returncode == 0
        statuses = wait(
            federation,
            lambda statuses: [status["nodes"] for status in statuses] == [before[0] + 2, before[1] + 1],
        )
        # both have met anew, and go on
        after = statuses[0]["round"]
        wait(
            federation,
            lambda statuses: (
                statuses[0]["round"] > after + 5
                and all(peer["state"] == "here" for status in statuses for peer in status["peers"].values())
            ),
        )
        assert manela_here("agent", "edges", "remove", "newcomer", "third", "--home", one.home).returncode == 0
        assert manela_here("agent", "edges", "remove", "newcomer", "third", "--home", one.home).returncode == 2
        bad = tmp_path / "bad.csv"
        bad.write_text("x,y@host2\nx,y@host2,minus\n")
        failed = manela_here("agent", "edges", "import", bad, "--home", one.home)
        assert failed.returncode == 2
        assert "line 2: a weight must be a number" in failed.stderr

        # a peer that is removed is refused from then on, and is let in again
        certificate = two.home / "certificate.pem"
        assert manela_here("agent", "peer", "remove", "host2", "--home", one.home).returncode == 0
        os.kill(federation.pid(one), signal.SIGHUP)
        wait(federation, lambda statuses: statuses[1]["peers"]["host1"]["trouble"] != "")
        listed = manela_here("agent", "peer", "list", "--home", one.home).stdout
        assert "host2" not in listed
        added = manela_here("agent", "peer", "add", "host2", two.address, certificate, "--home", one.home)
        assert added.returncode == 0, added.stderr
        wait(
            federation,
            lambda statuses: statuses[1]["peers"]["host1"]["trouble"] == "" and "host2" in statuses[0]["peers"],
        )

        shown = manela_here("agent", "status", "--home", one.home).stdout
        assert "learning" in shown
        assert "peer host2" in shown
        assert json.loads(manela_here("agent", "status", "--json", "--home", one.home).stdout)["name"] == "host1"
        exported = manela_here("agent", "export", tmp_path / "one.csv", "--home", one.home)
        assert exported.returncode == 0, exported.stderr
    nodes = {str(node) for node in read_embedding(tmp_path / "one.csv").nodes.tolist()}
    assert {"newcomer", "third"} <= nodes
    assert "also-new" not in nodes
    assert len(nodes) == before[0] + 2


def test_two_daemons_do_not_share_a_folder(blocks, tmp_path, manela):
    graph, _ = blocks
    federation = federate(graph, tmp_path, 1, parameters={"pairs": 10**10, "rounds": 10**6})
    with federation.running():
        wait(federation, lambda statuses: statuses[0].get("round", 0) > 0)
        second = manela("agent", "run", "--home", federation.members[0].home)
        assert second.returncode == 2
        assert "a daemon is already running there" in second.stderr


def test_a_disk_that_is_full_keeps_the_last_good_state(blocks, tmp_path):
    graph, _ = blocks
    federation = federate(graph, tmp_path, 1, parameters={"pairs": 10**10, "rounds": 10**6, "dimensions": 256})
    [member] = federation.members
    with federation.running():
        wait(federation, lambda statuses: statuses[0].get("round", 0) > 3)
        # as on a full disk, files cannot grow any more
        resource.prlimit(federation.pid(member), resource.RLIMIT_FSIZE, (150_000, 150_000))
        status = wait(federation, lambda statuses: "cannot be written" in statuses[0]["trouble"])[0]
        saved = VectorsFile(member.home).load()
        assert saved.round <= status["round"]
        # it goes on learning, and saves again when there is room
        wait(federation, lambda statuses: statuses[0]["round"] > status["round"] + 5)
        resource.prlimit(federation.pid(member), resource.RLIMIT_FSIZE, (150_000, 150_000))
    assert np.isfinite(VectorsFile(member.home).load().vectors).all()
    log = (member.home / "log.jsonl").read_text()
    assert log.count('"not saved"') <= 2  # said once, and at the end


def test_a_damaged_store_says_so(blocks, tmp_path, manela):
    graph, _ = blocks
    federation = federate(graph, tmp_path, 1, parameters={"pairs": 100_000, "rounds": 3})
    [member] = federation.members
    with federation.running():
        wait(federation)
    file = VectorsFile(member.home).path
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    failed = manela("agent", "run", "--home", member.home)
    assert failed.returncode == 2
    assert "restore it from a backup" in failed.stderr
    assert manela("agent", "export", tmp_path / "x.npz", "--home", member.home).returncode == 2
    missing = manela("agent", "run", "--home", tmp_path / "nowhere")
    assert missing.returncode == 2
    assert "manela agent init" in missing.stderr


def test_a_store_that_cannot_be_written_says_so_and_stays(blocks, tmp_path, manela):
    graph, _ = blocks
    federation = federate(graph, tmp_path, 1)
    [member] = federation.members
    before = (member.home / "store.db").read_bytes()
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))}
    failed = manela("agent", "edges", "add", "x", "y", "--home", member.home, **limit)
    assert failed.returncode == 2
    assert "store.db: cannot be" in failed.stderr
    assert (member.home / "store.db").read_bytes() == before


def obey_modes():
    """Have a process of root, too, obey the modes of files: CAP_DAC_OVERRIDE is lost when it executes a program."""
    if os.geteuid() == 0:
        drop_from_bounding_set, dac_override = 24, 1
        ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override, 0, 0, 0)


def test_a_folder_that_is_read_only_says_so(blocks, tmp_path, manela):
    graph, _ = blocks
    [member] = federate(graph, tmp_path, 1).members
    member.home.chmod(0o500)
    try:
        failed = manela("agent", "run", "--home", member.home, preexec_fn=obey_modes)
    finally:
        member.home.chmod(0o700)
    assert failed.returncode == 2
    assert "cannot be written" in failed.stderr
