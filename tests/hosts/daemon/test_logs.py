"""Lines of a daemon's log."""

import json
import logging
import os

import pytest

from manela.hosts.daemon.logs import JsonLines, begin_log, log


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
