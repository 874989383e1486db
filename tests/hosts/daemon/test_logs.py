"""Lines of a daemon's log."""

import asyncio
import contextlib
import json
import logging
import os
import socket
from pathlib import Path

import pytest

from manela.errors import ClaimError, MalformedError, NodeName, OutputError, TooOftenError
from manela.hosts.daemon.logs import Journal, JsonLines, NameKeeper, Tracer, add_syslog, begin_log, drop_syslog, log
from manela.hosts.folder.erasure import erase_nodes
from manela.hosts.folder.store import Store
from manela.hosts.folder.trace import read_disclosures
from manela.hosts.state.neighbourhood import Edge


@pytest.fixture
def logger():
    """The daemon's logger as a new process has it."""
    found = logging.getLogger("manela.daemon")
    kept = found.handlers[:], found.level, found.propagate
    found.handlers[:], found.propagate = [], True
    yield found
    found.handlers[:], found.level, found.propagate = kept
    found.setLevel(kept[1])  # which forgets what was remembered of the level


def test_an_event_is_one_line_of_json_on_stderr_with_its_facts(logger, capfd):
    begin_log()
    log("edges taken", nodes=3, message='two\nlines, "ü"')
    log("done")
    out, err = capfd.readouterr()
    first, second = map(json.loads, err.splitlines())
    assert out == ""
    assert (first["event"], first["nodes"], first["message"]) == ("edges taken", 3, 'two\nlines, "ü"')
    assert first["time"].endswith("Z")
    assert set(second) == {"time", "event"}
    assert "ü" in err  # for people


def test_a_log_that_is_begun_twice_writes_each_line_once(logger, capfd):
    begin_log()
    begin_log()
    log("once")
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_a_program_that_has_plans_for_the_log_keeps_them(logger, capfd):
    logger.addHandler(logging.NullHandler())
    begin_log()
    log("unseen")
    assert capfd.readouterr().err == ""
    assert logger.propagate


def test_the_time_is_that_of_the_event_in_utc():
    record = logging.makeLogRecord({"msg": "x", "created": 86400.5})
    assert json.loads(JsonLines().format(record)) == {"time": "1970-01-02T00:00:00Z", "event": "x"}


def test_what_cannot_be_encoded_is_replaced(logger, capfd):
    begin_log()
    log("name", who="a\udcffb")
    assert json.loads(capfd.readouterr().err)["who"] == "a?b"


def test_a_daemon_goes_on_where_nothing_can_be_written(logger):
    begin_log()
    kept = os.dup(2)
    full = os.open("/dev/full", os.O_WRONLY) if os.path.exists("/dev/full") else None  # noqa: PTH110
    try:
        if full is None:
            os.close(2)
        else:
            os.dup2(full, 2)
        log("unheard")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        if full is not None:
            os.close(full)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path, create="alpha") as found:
        yield found


def test_alike_refusals_are_one_line_and_a_flood_is_a_few(store, capfd):
    begin_log()
    journal = Journal(store)
    for _ in range(5):
        journal.add("beta", TooOftenError("slow down"))
    for i in range(1000):
        journal.add("flood", MalformedError(f"rubbish {i}"))
    journal.add("gamma", MalformedError("once"))
    journal.flush_now()
    lines = store.audited(1000)
    assert [detail for _, peer, _, detail in lines if peer == "beta"] == ["slow down (5 times)"]
    assert [detail for _, peer, _, detail in lines if peer == "gamma"] == ["once"]
    flood = [detail for _, peer, _, detail in lines if peer == "flood"]
    assert len(flood) == 21
    assert "and others (980 times)" in flood
    logged = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert {line["event"] for line in logged} == {"refused"}
    assert len(logged) == len(lines)


def test_a_store_that_cannot_be_written_is_told_once_a_line(store, capfd, monkeypatch):
    begin_log()
    journal, audit = Journal(store), store.audit

    def fail(_):
        raise OutputError("the disk is full")

    monkeypatch.setattr(store, "audit", fail)
    journal.add("beta", TooOftenError("slow down"))
    for _ in range(5):
        with pytest.raises(OutputError):
            asyncio.run(journal.flush())
    assert capfd.readouterr().err.count("slow down") == 1
    for i in range(3000):
        journal.add(f"peer{i}", MalformedError("x"))
    with pytest.raises(OutputError):
        asyncio.run(journal.flush())
    monkeypatch.setattr(store, "audit", audit)
    asyncio.run(journal.flush())
    assert len(store.audited(10_000)) == 1000


def test_facts_are_added_to_those_of_earlier_starts(tmp_path):
    for number in (1, 2):
        tracer = Tracer(tmp_path / "trace.jsonl")
        tracer.add(kind="own", number=number)
        assert tracer.is_open
        tracer.close()
        assert not tracer.is_open
        tracer.add(kind="own", number=-1)
    assert [fact["number"] for fact in read_disclosures(tmp_path / "trace.jsonl")] == [1, 2]
    assert (tmp_path / "trace.jsonl").stat().st_mode & 0o077 == 0


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "trace.jsonl").symlink_to(tmp_path / "other")
    with pytest.raises(OutputError, match="cannot be written"):
        Tracer(tmp_path / "trace.jsonl")
    assert not (tmp_path / "other").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_trace_that_cannot_be_written_is_given_up_and_logged_once(caplog):
    caplog.set_level("INFO", "manela.daemon")
    tracer = Tracer(Path("/dev/full"))
    tracer.add(kind="own", names="x" * 100_000)  # more than is buffered
    assert not tracer.is_open
    tracer.add(kind="own", number=2)
    tracer.close()
    assert [record.getMessage() for record in caplog.records] == ["not traced"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_what_cannot_be_written_at_the_end_is_logged(caplog):
    caplog.set_level("INFO", "manela.daemon")
    tracer = Tracer(Path("/dev/full"))
    tracer.add(kind="own")
    assert tracer.is_open
    tracer.close()
    assert not tracer.is_open
    assert [record.getMessage() for record in caplog.records] == ["not traced"]


# the system's log


@pytest.fixture(params=["unix", "udp"])
def system_log(request, tmp_path, monkeypatch):
    """A socket as the system's log has it, and its address."""
    monkeypatch.chdir(tmp_path)  # paths of sockets are short
    if request.param == "unix":
        found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        found.bind("log")
        address = str(tmp_path / "log")
    else:
        found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        found.bind(("127.0.0.1", 0))
        address = f"udp:127.0.0.1:{found.getsockname()[1]}"
    found.settimeout(60)
    with found:
        yield found, address


def test_the_system_log_gets_each_line(logger, system_log):
    found, address = system_log
    handler = add_syslog(address, "alpha")
    log("edges taken", nodes=3)
    priority, _, line = found.recv(10_000).decode().partition(">")
    assert priority == "<30"  # daemon, info
    assert line.startswith(f"manela-alpha[{os.getpid()}]: ")
    event = json.loads(line.partition(": ")[2])
    assert (event["event"], event["nodes"]) == ("edges taken", 3)
    drop_syslog(handler)
    log("not sent")
    assert add_syslog("", "alpha") is None
    drop_syslog(None)
    found.setblocking(False)
    with pytest.raises(BlockingIOError):
        found.recv(1)


def test_a_system_log_that_is_missing_full_or_back_does_not_hold_up_the_daemon(logger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    handler = add_syslog(str(tmp_path / "log"), "alpha")
    log("lost")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as found:
        found.bind("log")
        for number in range(10_000):  # nobody reads them
            log("filled", number=number)
        found.setblocking(False)
        assert b'"number": 0' in found.recv(10_000)
        with contextlib.suppress(BlockingIOError):
            while found.recv(10_000):
                pass
        log("back", text="x" * 100_000)
        assert len(found.recv(100_000)) == 8192
    log("lost again")
    drop_syslog(handler)


# names of nodes


ANN, BOB = NodeName("ann", "ann@alpha"), NodeName("x@beta", "x@beta")


def test_all_names_are_hashed_where_the_operator_wants_it(store):
    names, hasher = NameKeeper(store, True), store.hasher()
    assert names.show(ANN) == hasher.show("ann@alpha")
    assert names.show(BOB) == hasher.show("x@beta")
    message = "beta is away: beta says: 'ann' and x@beta, of beta:7446, are odd"
    expected = f"beta is away: beta says: '{names.show(ANN)}' and {names.show(BOB)}, of beta:7446, are odd"
    assert names.conceal(message, {"ann", "bob"}) == expected


def test_only_names_that_were_erased_are_hashed_otherwise(tmp_path, store):
    names = NameKeeper(store, False)
    assert (names.show(ANN), names.conceal("ann x@beta", {"ann"})) == ("ann", "ann x@beta")
    hashed = store.hasher().hash("ann", "alpha")
    with store.write() as database:
        database.execute("INSERT INTO erased VALUES (?, 'alpha')", (hashed,))
    names.refresh()
    assert names.show(ANN) == store.hasher().show("ann@alpha")
    assert names.show(BOB) == "x@beta"
    assert names.conceal("ann, x@beta and bob", {"bob"}) == f"{names.show(ANN)}, x@beta and bob"


def test_refusals_are_written_with_the_names_that_may_be_shown(logger, store, capfd):
    begin_log()
    journal = Journal(store, NameKeeper(store, True).show)
    journal.add("beta", ClaimError(BOB, " and ", ANN, " are not adjacent"))
    journal.flush_now()
    hashed = [store.hasher().show(node) for node in ("x@beta", "ann@alpha")]
    assert store.audited()[0][3] == " and ".join(hashed) + " are not adjacent"
    assert "ann" not in capfd.readouterr().err


def test_a_refusal_after_an_erasure_has_the_hash(tmp_path):
    from manela.hosts.folder.config import Config
    from manela.hosts.folder.home import init
    from manela.hosts.state.neighbourhood import Neighbourhood

    init(tmp_path / "home", Config("alpha", "127.0.0.1:1", {}))
    with Store(tmp_path / "home") as found:
        found.add_edges([Edge("ann", ("bob", "alpha")), Edge("ann", ("x", "beta"))])
        erase_nodes(tmp_path / "home", ["ann"])
        near = Neighbourhood.build("alpha", found.edges())
        _, (refusal,) = near.admit_all("beta", ["x@beta"], ["ann"])
        assert str(refusal) == "x@beta and ann are not adjacent by this host's list"
        journal = Journal(found, NameKeeper(found, False).show)
        journal.add("beta", refusal)
        journal.flush_now()
        assert found.audited()[0][3].startswith(f"x@beta and {found.hasher().show('ann@alpha')} are not")
