"""Lines of a daemon's log."""

import asyncio
import json
import logging
import os
from pathlib import Path

import pytest

from manela.errors import MalformedError, OutputError, TooOftenError
from manela.hosts.daemon.logs import Journal, JsonLines, Tracer, begin_log, log
from manela.hosts.folder.store import Store
from manela.hosts.folder.trace import read_disclosures


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
