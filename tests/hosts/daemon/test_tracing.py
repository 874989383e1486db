from pathlib import Path

import pytest

from manela.errors import OutputError
from manela.hosts.daemon.logs import Tracer
from manela.hosts.folder.trace import read_disclosures


def test_facts_are_added_to_those_of_earlier_starts(tmp_path):
    for number in (1, 2):
        tracer = Tracer(tmp_path / "trace.jsonl")
        tracer.add(kind="own", number=number)
        assert tracer.is_open
        tracer.close()
        assert not tracer.is_open
        tracer.add(kind="own", number=-1)
    assert [disclosure["number"] for disclosure in read_disclosures(tmp_path / "trace.jsonl")] == [1, 2]
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
