"""A daemon in this process: what it refuses to begin with, and a host that learns, stops and goes on."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import time

import numpy as np
import pytest

from manela.errors import AgentError, ClaimError, NodeName, PeerError
from manela.hosts.daemon.daemon import Daemon, run
from manela.hosts.daemon.reopening import request_rounds
from manela.hosts.folder import vectors as vectors_file
from manela.hosts.folder.audit import record
from manela.hosts.folder.backups import restore_backup
from manela.hosts.folder.config import Config
from manela.hosts.folder.erasure import erase_nodes, make_private
from manela.hosts.folder.home import export, init, read_status
from manela.hosts.folder.identity import CERTIFICATE, KEY
from manela.hosts.folder.store import BACKUP, HOST, SECRET, Store
from manela.hosts.folder.trace import read_disclosures
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.neighbourhood import Edge
from manela.hosts.state.terms import PeerOptions

PARAMETERS = {"dimensions": 8, "rounds": 3, "pairs": 2_000}
RING = [Edge(f"n{i}", (f"n{(i + step) % 12}", "alpha")) for i in range(12) for step in (1, 3)]


@pytest.fixture
def folder(tmp_path):
    """A host with a small ring, and no peers."""
    home = tmp_path / "alpha"
    init(home, Config("alpha", "127.0.0.1:0", PARAMETERS, peers=PeerOptions(start=0.0, wait=0.0)))
    with Store(home) as store:
        store.add_edges(RING)
    return home


@contextlib.contextmanager
def daemon_of(folder, **options):
    with Store(folder) as store:
        daemon = Daemon(folder, store, **options)
        try:
            yield daemon
        finally:
            daemon.close()


class Watcher(logging.Handler):
    """Keeps the daemon's events, and does the next piece of work each time that it has finished something."""

    def __init__(self, work):
        super().__init__()
        self.work, self.events = list(work), []

    def emit(self, record):
        self.events.append((record.getMessage(), record.fields))
        if record.getMessage() in ("done", "reloaded", "saved again"):
            self.work.pop(0)()


def run_until_done(daemon, *work):
    """Run a daemon until it has finished, learning and other work, and there is no work left; returns all events."""
    logger = logging.getLogger("manela.daemon")
    level, watcher = logger.level, Watcher([*work, lambda: daemon.learner.end()])
    logger.addHandler(watcher)
    logger.setLevel(logging.INFO)
    try:
        asyncio.run(asyncio.wait_for(daemon.run(False), 240))
    finally:
        logger.removeHandler(watcher)
        logger.setLevel(level)
    return watcher.events


@pytest.fixture
def process():
    """What a daemon changes in its process is as before after the test."""
    logger = logging.getLogger("manela.daemon")
    handlers, level, propagate = logger.handlers[:], logger.level, logger.propagate
    hang_up = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, hang_up)
    logger.handlers[:], logger.propagate = handlers, propagate
    logger.setLevel(level)


def test_a_folder_without_a_host_is_refused_before_anything_is_made(tmp_path, process):
    with pytest.raises(AgentError, match="does not hold a host; make one with `manela agent init`"):
        run(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_others_can_read_is_refused(folder, process):
    (folder / KEY).chmod(0o644)
    with pytest.raises(AgentError, match=KEY):
        run(folder)


def test_a_folder_of_a_host_of_another_name_is_refused(folder):
    with Store(folder) as store:
        store.put(HOST, "beta")
        with pytest.raises(AgentError, match="the name must be 'beta', for which this home was made, got 'alpha'"):
            Daemon(folder, store)


def test_a_store_whose_count_of_starts_is_damaged_is_refused(folder):
    with Store(folder) as store:
        store.put("starts", "many")
        with pytest.raises(AgentError, match="is damaged: it has been started 'many' times"):
            Daemon(folder, store)


def test_a_store_without_a_secret_is_refused(tmp_path):
    home = tmp_path / "alpha"
    init(home, Config("alpha", "127.0.0.1:0", PARAMETERS))
    (home / "other").mkdir()
    with Store(home / "other", create="alpha") as store:
        assert store.get(SECRET) is None
        with pytest.raises(AgentError, match="has no secret"):
            Daemon(home, store)


def test_every_start_has_draws_of_its_own(folder):
    seeds = []
    for start in ("1", "2", "3"):
        with daemon_of(folder) as daemon:
            seeds.append(daemon.terms.settings.seed)
            assert daemon.store.get("starts") == start
    assert len(set(seeds)) == 3


def test_a_host_learns_keeps_its_vectors_and_says_so(folder):
    with daemon_of(folder) as daemon:
        events = run_until_done(daemon)
    names = [event for event, _ in events]
    assert names == ["listening", "learning", "done", "stopped"]
    assert events[0][1]["port"] > 0
    status = read_status(folder)
    assert (status["name"], status["state"], status["running"]) == ("alpha", "stopped", False)
    assert (status["nodes"], status["arcs"], status["peers"], status["trouble"]) == (12, 48, {}, "")
    assert status["round"] == events[2][1]["round"] >= 3
    assert status["pairs"] == events[2][1]["pairs"] > 0
    embedding = export(folder)
    assert embedding.vectors.shape == (12, 8)
    assert np.isfinite(embedding.vectors).all()
    assert embedding.provenance["rounds_done"] == status["round"]


def test_a_host_that_is_done_does_nothing_more_at_its_next_start(folder):
    with daemon_of(folder) as daemon:
        run_until_done(daemon)
    before = VectorsFile(folder).load()
    with daemon_of(folder) as daemon:
        run_until_done(daemon)
    after = VectorsFile(folder).load()
    assert (after.round, after.pairs) == (before.round, before.pairs)
    np.testing.assert_array_equal(after.vectors, before.vectors)


def test_rounds_that_are_asked_for_are_done_once(folder):
    with daemon_of(folder) as daemon:
        run_until_done(daemon)
    done = VectorsFile(folder).load().round
    with Store(folder) as store:
        store.put("learn", "7 2")
    rounds = []
    for _ in range(2):
        with daemon_of(folder) as daemon:
            run_until_done(daemon)
        rounds.append(VectorsFile(folder).load().round)
    assert done < rounds[0] == rounds[1]
    with Store(folder) as store:
        assert store.get("learned") == "7"


def test_a_host_that_is_done_takes_new_edges_and_goes_on(folder):
    def add():
        with Store(folder) as other:
            other.add_edges([Edge("new", ("n0", "alpha"))])

    with daemon_of(folder) as daemon:
        names = [event for event, _ in run_until_done(daemon, add)]
    assert names == ["listening", "learning", "done", "edges taken", "continues", "learning", "done", "stopped"]
    assert "new" in export(folder)


def test_a_host_that_is_done_saves_again_when_the_disk_has_room(folder, tmp_path, manela_here, monkeypatch):
    write, disk, saved = vectors_file.write_arrays, {"full": True}, []

    def write_to_disk(*arguments):
        if disk["full"]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(*arguments)

    def export_and_make_room():
        done = manela_here("agent", "export", tmp_path / "vectors.csv", "--home", folder)
        assert f"note: these vectors are of round {before}, but the daemon is at round {before + 2}; " in done.stderr
        assert "No space left on device" in done.stderr
        disk["full"] = False

    def look_and_end():
        saved.append(VectorsFile(folder).load().round)
        daemon.learner.end()

    with daemon_of(folder) as daemon:
        run_until_done(daemon)
    before = VectorsFile(folder).load().round
    with Store(folder) as store:
        store.put("learn", "7 2")
    monkeypatch.setattr(vectors_file, "write_arrays", write_to_disk)
    with daemon_of(folder) as daemon:
        events = run_until_done(daemon, export_and_make_room, look_and_end)
    assert [event for event, _ in events if "saved" in event] == ["not saved", "saved again"]
    assert saved == [before + 2]
    done = manela_here("agent", "export", tmp_path / "vectors.csv", "--home", folder)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_backup_has_the_renewed_key_after_a_signal(folder, tmp_path, manela_here):
    def renew():
        assert manela_here("agent", "renew", "--home", folder).returncode == 0
        assert manela_here("agent", "renew", "--use", "--home", folder).returncode == 0
        os.kill(os.getpid(), signal.SIGHUP)

    old = (folder / KEY).read_bytes()
    with daemon_of(folder) as daemon:
        run_until_done(daemon, renew)
    restore_backup(folder / BACKUP, tmp_path / "restored")
    for name in (KEY, CERTIFICATE):
        assert (tmp_path / "restored" / name).read_bytes() == (folder / name).read_bytes()
    assert (folder / KEY).read_bytes() != old


def test_what_others_tell_is_traced_only_where_it_is_asked_for(folder):
    with daemon_of(folder) as daemon:
        run_until_done(daemon)
    assert not (folder / "trace.jsonl").exists()
    with daemon_of(folder, trace=True) as daemon:
        daemon.host.on_disclosure(kind="edge", own="n0")
        run_until_done(daemon)
    assert read_status(folder)["traced"]
    assert next(read_disclosures(folder / "trace.jsonl")) == {"kind": "edge", "own": "n0"}
    assert (folder / "trace.jsonl").stat().st_mode & 0o077 == 0


def test_a_port_in_use_ends_the_daemon_with_a_word_and_a_status(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        text = (folder / "agent.toml").read_text().replace('"127.0.0.1:0"', f'"{address}"')
        (folder / "agent.toml").write_text(text)
        with daemon_of(folder) as daemon, pytest.raises(PeerError, match=f"cannot listen on {address}"):
            run_until_done(daemon)
    assert read_status(folder)["state"] == "stopped"


def test_requested_rounds_do_not_change_how_long_later_changes_are_learned(folder):
    def count_rounds(change):
        """The rounds that a host learns after a change."""
        before = VectorsFile(folder).load().round
        with Store(folder) as store:
            change(store)
        with daemon_of(folder) as daemon:
            run_until_done(daemon)
        return VectorsFile(folder).load().round - before

    with daemon_of(folder) as daemon:
        run_until_done(daemon)
    usual = count_rounds(lambda store: store.add_edges([Edge("new", ("n0", "alpha"))]))
    for rounds in (1, 40):
        assert count_rounds(lambda store, rounds=rounds: request_rounds(store, rounds)) == rounds
        assert (
            count_rounds(lambda store, rounds=rounds: store.add_edges([Edge(f"new{rounds}", ("n0", "alpha"))])) == usual
        )


def test_a_status_that_cannot_be_written_is_trouble_in_metrics_and_log(folder):
    seen = []
    (folder / "status.json").mkdir()  # nothing can replace a folder

    def look():
        seen.append(daemon._read_status()["trouble"])
        daemon.learner.end()

    with daemon_of(folder) as daemon:
        events = run_until_done(daemon, look)
    assert "status.json: cannot be written" in seen[0]
    assert [event for event, _ in events].count("not saved") == 1


def test_names_are_hashed_in_log_and_audit_where_the_operator_wants_it(folder):
    def refuse():
        daemon.service.refuse("beta", ClaimError(NodeName("x@beta", "x@beta"), " is not a node of ", "gamma"))
        daemon._tell("beta is away: beta says: n3 and x@beta are odd")
        daemon.learner.end()

    text = (folder / "agent.toml").read_text()
    (folder / "agent.toml").write_text(text.replace("hash_names = false", "hash_names = true"))
    with daemon_of(folder) as daemon:
        events = run_until_done(daemon, refuse)
    with Store(folder) as store:
        remote, own = (store.hasher().show(node) for node in ("x@beta", "n3@alpha"))
        assert store.audited()[0][3] == f"{remote} is not a node of gamma"
    (refused,) = (fields for event, fields in events if event == "refused")
    assert refused["detail"] == f"{remote} is not a node of gamma"
    (told,) = (fields for event, fields in events if event == "peers")
    assert told["message"] == f"beta is away: beta says: {own} and {remote} are odd"


def test_private_nodes_and_lock_step_exclude_each_other(folder):
    (folder / "numbers.csv").write_text("".join(f"n{i}@alpha,{i}\n" for i in range(12)))
    with (folder / "agent.toml").open("a") as file:
        file.write("[lock_step]\nrandom_state = 1\n")
    text = (folder / "agent.toml").read_text().replace('start = "spectral"', 'start = "random"')
    (folder / "agent.toml").write_text(text)
    with Store(folder) as store:
        make_private(store, ["n3"], True)
    with Store(folder) as store, pytest.raises(AgentError, match="hosts in lock-step show all nodes"):
        Daemon(folder, store)


def test_a_node_that_is_removed_just_before_the_end_is_not_saved(folder):
    def remove():
        erase_nodes(folder, ["n0"])
        daemon.learner.end()

    with daemon_of(folder) as daemon:
        run_until_done(daemon, remove)
    assert VectorsFile(folder).load().names == sorted(f"n{i}" for i in range(1, 12))


def test_a_daemon_whose_nodes_are_all_removed_ends_without_vectors(folder):
    with daemon_of(folder) as daemon:
        events = run_until_done(daemon, lambda: erase_nodes(folder, [f"n{i}" for i in range(12)]))
    names = [event for event, _ in events]
    assert {"no nodes", "action"} < set(names)
    assert names[-1] == "stopped"
    assert VectorsFile(folder).load() is None
    assert b"n11" not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_actions_are_logged_once_and_so_is_a_change_of_the_noise(folder):
    def act():
        with Store(folder) as other:
            record(other, "test", "while it runs")
            other.add_edges([Edge("new", ("n0", "alpha"))])

    with Store(folder) as store:
        record(store, "test", "before it runs")
    with daemon_of(folder) as daemon:
        events = run_until_done(daemon, act)
    logged = [(fields["action"], fields["detail"]) for event, fields in events if event == "action"]
    assert logged == [("test", "before it runs"), ("test", "while it runs")]
    text = (folder / "agent.toml").read_text()
    (folder / "agent.toml").write_text(text.replace("noise = 1.0", "noise = 0.5"))
    with daemon_of(folder) as daemon:
        events = run_until_done(daemon)
    logged = [(fields["action"], fields["detail"]) for event, fields in events if event == "action"]
    assert logged == [("settings changed", "peers.noise was 1.0, is 0.5")]


def test_the_system_log_gets_the_lines_of_a_daemon(folder):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as system_log:
        system_log.bind(("127.0.0.1", 0))
        text = (folder / "agent.toml").read_text()
        address = f"udp:127.0.0.1:{system_log.getsockname()[1]}"
        (folder / "agent.toml").write_text(text.replace('syslog = ""', f'syslog = "{address}"'))
        with daemon_of(folder) as daemon:
            run_until_done(daemon)
        system_log.settimeout(60)
        assert b'"event": "listening"' in system_log.recv(10_000)


def test_a_missing_store_names_the_backup(folder, process):
    with daemon_of(folder) as daemon:
        run_until_done(daemon)
    for file in folder.glob("store.db*"):
        file.unlink()
    with pytest.raises(AgentError, match=f"store.db: is missing; restore the last good one with .*{BACKUP}"):
        run(folder)


def test_a_certificate_that_ends_soon_is_logged_at_the_start(folder, monkeypatch):
    monkeypatch.setattr("manela.hosts.daemon.daemon.find_expiry", lambda certificates: time.time() + 86400 * 3.5)
    with daemon_of(folder) as daemon:
        events = run_until_done(daemon)
    assert ("certificate", {"message": "this host's certificate expires in 3 days"}) in events
