"""What was refused, written down."""

import asyncio
import json

import pytest

from manela.errors import MalformedError, OutputError, TooOftenError
from manela.hosts.daemon.logs import Journal, begin_log
from manela.hosts.folder.store import Store


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
