"""What hosts meet in years: renewals, latecomers, changes after the end, strangers, damage, and upgrades."""

import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from manela.formats.datasets import stochastic_block_model
from manela.hosts.daemon.saving import allow_many_files
from manela.hosts.federation import Federation, assign, free_ports
from manela.hosts.folder.config import Config
from manela.hosts.folder.home import export, init, read_status
from manela.hosts.folder.identity import CERTIFICATE, fingerprint, make_identity, read_certificate
from manela.hosts.folder.store import NAME, Store
from manela.hosts.state.neighbourhood import Edge

LONGEST = 240.0
OLD = Path(__file__).parents[1] / "hosts" / "folder" / "host-0.1.tar.gz"


@pytest.fixture(scope="module")
def blocks():
    return stochastic_block_model(nodes=80, inside=0.3, between=0.02, seed=3)[0]


def federate(graph, folder, hosts=2, parameters=(), **options):
    given = {"dimensions": 8, "patience": 0.1, **dict(parameters)}
    options = {"start": 60.0, "finish": 60.0, "longest_pause": 0.5, **options}
    return Federation(graph, assign(graph, hosts, "random", 1), folder, given, **options)


def wait_for(federation, holds, seconds=LONGEST):
    until = time.monotonic() + seconds
    while True:
        statuses = {status["name"]: status for status in federation.statuses()}
        if holds(statuses):
            return statuses
        assert time.monotonic() < until, statuses
        federation.check()
        time.sleep(0.02)


def all_done(statuses):
    return all(status.get("state") == "done" for status in statuses.values())


def restart(federation, member):
    federation.kill(member)
    federation.start(member)


def test_a_certificate_is_renewed_without_a_gap(blocks, tmp_path, manela_here):
    federation = federate(blocks, tmp_path, parameters={"rounds": 10**6, "pairs": 10**10, "smooth": False})
    one, two = federation.members

    def both_here(statuses):
        return all(
            status.get("peers") and status["updated"] > time.time() - 5
            and all(peer["state"] == "here" for peer in status["peers"].values())
            for status in statuses.values()
        )  # fmt: skip

    def connect_anew():
        """Every connection is a new one, with a handshake both ways."""
        for member in federation.members:
            restart(federation, member)
        pids = {member.name: federation.pid(member) for member in federation.members}
        wait_for(
            federation,
            lambda statuses: (
                both_here(statuses)
                and all(status["pid"] == pids[name] and status["round"] > 0 for name, status in statuses.items())
            ),
        )

    with federation.running():
        wait_for(federation, both_here)
        assert manela_here("agent", "renew", "--home", two.home).returncode == 0
        following = two.home / f"next-{CERTIFICATE}"
        assert manela_here("agent", "peer", "add", two.name, two.address, following, "--home", one.home).returncode == 0
        connect_anew()  # with both pinned, and the old one in use
        assert manela_here("agent", "renew", "--use", "--home", two.home).returncode == 0
        os.kill(federation.pid(two), signal.SIGHUP)
        connect_anew()  # with both pinned, and the new one in use
        old = two.home / f"old-{CERTIFICATE}"
        removed = manela_here("agent", "peer", "remove", two.name, "--certificate", old, "--home", one.home)
        assert removed.returncode == 0, removed.stderr
        connect_anew()
    with Store(one.home) as store:
        assert store.peers()[two.name][1] == (read_certificate(two.home / CERTIFICATE),)


def test_a_latecomer_new_nodes_and_a_wish_for_more_are_learned_from(blocks, tmp_path, manela_here):
    federation = federate(blocks, tmp_path, start=0.2, wait=0.2, finish=2.0)
    early, late = federation.members
    with contextlib.ExitStack() as stack:
        stack.callback(federation.stop)
        federation.start(early)
        alone = wait_for(federation, lambda found: found[early.name].get("state") == "done")[early.name]
        federation.start(late)
        found = wait_for(federation, lambda found: all_done(found) and found[early.name]["round"] > alone["round"])
        assert found[early.name]["peers"][late.name]["edges_agreed"] > 0
        assert found[early.name]["peers"][late.name]["edges_disagreed"] == 0
        rounds = found[early.name]["round"]
        with Store(early.home) as store:
            store.add_edges([Edge("newcomer", (name, early.name)) for name in export(early.home).nodes[:3].tolist()])
        found = wait_for(federation, lambda found: all_done(found) and found[early.name]["round"] > rounds)
        assert "newcomer" in export(early.home).nodes.tolist()
        assert found[early.name]["nodes"] == alone["nodes"] + 1
        rounds = found[early.name]["round"]
        asked = manela_here("agent", "learn", "--rounds", 5, "--home", early.home)
        assert asked.returncode == 0, asked.stderr
        found = wait_for(federation, lambda found: all_done(found) and found[early.name]["round"] > rounds)
        assert found[early.name]["round"] == rounds + 5
        # an honest peer is not blamed for what the protocol makes happen
        assert found[early.name]["refusals"] == {}
        assert found[late.name]["refusals"] == {}


def test_strangers_that_say_nothing_keep_nobody_out(blocks, tmp_path, monkeypatch):
    assert allow_many_files() > 2000
    federation = federate(
        blocks, tmp_path, parameters={"rounds": 10**6, "pairs": 10**10, "smooth": False}, deadline=4.0, wait=0.0
    )
    one, two = federation.members
    port = int(one.address.rpartition(":")[2])
    popen = subprocess.Popen

    def start_with_few_files(*given, **options):
        return popen(*given, **options, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 512)))

    monkeypatch.setattr("manela.hosts.federation.subprocess.Popen", start_with_few_files)
    with federation.running(), contextlib.ExitStack() as stack:
        wait_for(federation, lambda found: all(status.get("round", 0) > 0 for status in found.values()))
        connections = []
        for _ in range(1200):
            stranger = stack.enter_context(socket.socket())
            stranger.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                stranger.connect(("127.0.0.1", port))
            connections.append(stranger)
        # a peer that comes anew is let in, and what is learned is saved
        restart(federation, two)
        pid = federation.pid(two)
        before = wait_for(
            federation,
            lambda found: (
                found[two.name]["pid"] == pid
                and found[two.name]["peers"][one.name]["state"] == "here"
                and found[one.name]["peers"][two.name]["state"] == "here"
            ),
        )[one.name]["round"]
        saved = (one.home / "vectors.npz").stat().st_mtime_ns
        wait_for(
            federation,
            lambda found: (
                found[one.name]["round"] > before + 5
                and (one.home / "vectors.npz").stat().st_mtime_ns > saved
                and not found[one.name]["trouble"]
            ),
        )
        found = wait_for(federation, lambda found: found[one.name]["refusals"].get("unknown", {}))
        assert found[one.name]["refusals"]["unknown"]["unknown peer"] > 100


def run_daemon(home, seconds=240):
    command = [sys.executable, "-m", "manela", "agent", "run", "--home", str(home)]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


def test_what_others_can_read_and_what_is_damaged_is_refused_with_one_line(tmp_path, manela_here):
    home = tmp_path / "alpha"
    home.mkdir(mode=0o755)
    [port] = free_ports(1)
    assert manela_here("agent", "init", "alpha", "--home", home, "--listen", f"127.0.0.1:{port}").returncode == 0
    assert home.stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o077 == 0 for file in home.iterdir())
    assert manela_here("agent", "edges", "add", "annabelle", "bob", "--home", home).returncode == 0
    for name in ("key.pem", NAME):
        (home / name).chmod(0o644)
        done = run_daemon(home)
        assert done.returncode == 2
        assert re.fullmatch(rf"error: .*{name}: others can read it \(mode 0644\); run .*\n", done.stderr)
        (home / name).chmod(0o600)
    # a daemon that ran once has kept a backup
    process = subprocess.Popen(
        [sys.executable, "-m", "manela", "agent", "run", "--home", str(home)], stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + LONGEST
        while read_status(home).get("state") != "done":
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        process.terminate()
        process.wait(120)
    for left in home.glob(f"{NAME}-*"):
        left.unlink()
    (home / NAME).write_bytes((home / NAME).read_bytes().replace(b"annabelle", b"annabellf"))
    done = run_daemon(home)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert f"manela agent restore {home / 'backup.tar'} --home {home}" in done.stderr
    assert manela_here("agent", "restore", home / "backup.tar", "--home", home).returncode == 0
    assert manela_here("agent", "edges", "list", "--home", home).stdout == "annabelle,bob\n"


def test_a_host_of_0_1_is_upgraded(tmp_path, manela_here):
    with tarfile.open(OLD) as archive:
        archive.extractall(tmp_path, filter="data")
    home = tmp_path / "alpha"
    (home / NAME).chmod(0o600)
    [port] = free_ports(1)
    config = (home / "agent.toml").read_text()
    config = config.replace("127.0.0.1:17446", f"127.0.0.1:{port}").replace(
        "start = 30.0", "start = 0.1\nwait = 0.0\nfinish = 0.1"
    )
    (home / "agent.toml").write_text(config)
    listed = manela_here("agent", "edges", "list", "--home", home)
    assert listed.stdout.splitlines() == ["zoe", "ann,bob", "ann,cem@beta,2.0", "bob,dora@beta"], listed.stderr
    assert "beta  127.0.0.1:17448" in manela_here("agent", "peer", "list", "--home", home).stdout
    assert (home / "store-1.db").stat().st_mode & 0o777 == 0o600
    before = manela_here("agent", "export", tmp_path / "before.csv", "--home", home)
    assert before.stdout.endswith("3 vectors\n"), before.stderr
    process = subprocess.Popen(
        [sys.executable, "-m", "manela", "agent", "run", "--home", str(home)], stderr=subprocess.PIPE, text=True
    )
    try:
        until = time.monotonic() + LONGEST
        while read_status(home).get("state") != "done":
            assert time.monotonic() < until
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
    finally:
        process.terminate()
        _, log = process.communicate(timeout=120)
    assert "learned by walks" in log
    assert sorted(export(home).nodes.tolist()) == ["ann", "bob", "zoe"]


def test_an_operators_day(tmp_path, manela_here):
    homes = {name: tmp_path / name for name in ("alpha", "beta")}
    ports = dict(zip(homes, free_ports(2), strict=True))
    edges = {
        "alpha": "ann,bob\nann,cem@beta\nbob,dora@beta\n",
        "beta": "cem,dora\ncem,ann@alpha\ndora,bob@alpha\ndora,eve@alpha\n",
    }
    processes = {}

    def run(*arguments, home):
        done = manela_here("agent", *arguments, "--home", homes[home])
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    with contextlib.ExitStack() as stack:
        for name, home in homes.items():
            init(home, Config(name, f"127.0.0.1:{ports[name]}", {"dimensions": 4, "patience": 0.1}))
            (tmp_path / f"{name}.csv").write_text(edges[name])
            run("edges", "import", tmp_path / f"{name}.csv", home=name)
            log = stack.enter_context((home / "log").open("wb"))
            processes[name] = subprocess.Popen(
                [sys.executable, "-m", "manela", "agent", "run", "--home", str(home)], stderr=log
            )
            stack.callback(processes[name].wait, 120)
            stack.callback(processes[name].terminate)

        def wait(holds):
            until = time.monotonic() + LONGEST
            while not holds({name: read_status(home) for name, home in homes.items()}):
                assert time.monotonic() < until, [(home / "log").read_text()[-1000:] for home in homes.values()]
                time.sleep(0.05)

        wait(lambda found: all(status.get("port") for status in found.values()))
        lines = {name: run("invite", home=name).strip() for name in homes}
        assert re.fullmatch(rf"manela:alpha@127\.0\.0\.1:{ports['alpha']}#[0-9A-F]{{64}}", lines["alpha"])
        forged = lines["alpha"][:-1] + ("0" if lines["alpha"][-1] != "0" else "1")
        refused = manela_here("agent", "peer", "add", forged, "--home", homes["beta"])
        assert refused.returncode == 2
        assert "is not the one in the invitation" in refused.stderr
        run("peer", "add", lines["alpha"], "--nodes", 2, home="beta")
        run("peer", "add", lines["beta"], home="alpha")
        wait(lambda found: all(
            status.get("state") == "done" and [one["edges_agreed"] for one in status["peers"].values()] == [2]
            for status in found.values()
        ))  # fmt: skip
        listed = run("peer", "list", home="beta")
        assert "alpha  127.0.0.1" in listed
        assert "2 nodes by the operator" in listed
        assert re.search(r"here, seen \d+ s ago, manela \d", listed)
        assert "edges known to both hosts: 2, to one only: 1" in listed
        wait(lambda found: found["alpha"]["peers"]["beta"]["asked"] is not None)
        checked = run("check", home="alpha")
        assert re.search(r"ok +to beta +answers and accepts this host", checked)
        assert re.search(r"ok +from beta +it asked this host \d+ s ago", checked)
        run("backup", tmp_path / "b.tar", home="alpha")
        assert "stop it first" in manela_here("agent", "restore", tmp_path / "b.tar", "--home", homes["alpha"]).stderr
        done = manela_here("agent", "restore", tmp_path / "b.tar", "--home", tmp_path / "copy")
        assert done.returncode == 0, done.stderr
        assert manela_here("agent", "edges", "list", "--home", tmp_path / "copy").stdout == edges["alpha"]
        run("edges", "export", tmp_path / "out.csv", "--peer", "beta", home="alpha")
        assert (tmp_path / "out.csv").read_text() == "ann,cem@beta\nbob,dora@beta\n"
        # a node that is removed is gone from what is exported; a peer that is removed is gone altogether
        run("node", "remove", "bob", home="alpha")
        wait(lambda found: found["alpha"]["nodes"] == 1 and found["alpha"]["state"] == "done")
        assert export(homes["alpha"]).nodes.tolist() == ["ann"]
        assert "removed beta, with 1 edges" in run("peer", "remove", "beta", home="alpha")
        wait(lambda found: found["alpha"]["peers"] == {})
        # by the connection that is still there, or by a new one
        words = ("is not known here", "does it not know the certificate of this host?")
        wait(lambda found: any(some in found["beta"]["peers"]["alpha"]["trouble"] for some in words))
        # who is not who was pinned is told apart by what it shows
        make_identity("gamma", tmp_path / "gamma.key", tmp_path / "gamma.pem")
        pinned = read_certificate(tmp_path / "gamma.pem")
        run("peer", "add", "gamma", f"127.0.0.1:{ports['alpha']}", tmp_path / "gamma.pem", home="beta")
        wait(lambda found: found["beta"]["peers"].get("gamma", {}).get("trouble"))
        trouble = read_status(homes["beta"])["peers"]["gamma"]["trouble"]
        shown = read_certificate(homes["alpha"] / CERTIFICATE)
        assert f"it presented {fingerprint(shown)}, but {fingerprint(pinned)} is pinned" in trouble


def test_numbers_that_cannot_be_are_refused_with_one_line(tmp_path, manela_here):
    done = manela_here("federate", "sbm", "--hosts", 2, "-o", tmp_path / "x.npz", "--random-state=-1")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "random-state" in done.stderr
