import json

import pytest

from manela import __version__
from manela.errors import FormatError, OutputError
from manela.reproduction.laboratory import Ledger


def test_what_is_done_is_not_done_again(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return {"score": (1, 2)}

    for _ in range(2):
        ledger = Ledger(tmp_path / "r.jsonl")
        for _ in range(2):
            assert ledger.get("links", {"run": 1, "share": 0.2}, compute) == {"score": [1, 2]}
    assert len(calls) == 1
    record = json.loads((tmp_path / "r.jsonl").read_text())
    assert record["version"] == __version__
    assert record["about"] == {"run": 1, "share": 0.2}
    assert "cores" in record["machine"]
    assert record["seconds"] >= 0


def test_other_parameters_and_versions_are_other_results(tmp_path):
    ledger = Ledger(tmp_path / "r.jsonl")
    ledger.get("links", {"run": 1}, lambda: 1)
    assert ledger.get("links", {"run": 2}, lambda: 2) == 2
    old = (tmp_path / "r.jsonl").read_text().replace(f'"{__version__}"', '"0.0.1"')
    (tmp_path / "r.jsonl").write_text(old)
    assert Ledger(tmp_path / "r.jsonl").get("links", {"run": 1}, lambda: 3) == 3


def test_a_line_that_was_cut_off_is_dropped(tmp_path):
    path = tmp_path / "r.jsonl"
    ledger = Ledger(path)
    ledger.get("links", {"run": 1}, lambda: 1)
    ledger.get("links", {"run": 2}, lambda: 2)
    path.write_bytes(path.read_bytes()[:-10])
    again = Ledger(path)
    assert len(again.records) == 1
    assert again.get("links", {"run": 2}, lambda: 5) == 5
    assert len(Ledger(path).records) == 2


def test_a_damaged_line_is_named(tmp_path):
    (tmp_path / "r.jsonl").write_text('{"part": 1}\n')
    with pytest.raises(FormatError, match=r"r\.jsonl:1: is damaged"):
        Ledger(tmp_path / "r.jsonl")


def test_a_failure_keeps_nothing_and_an_unwritable_file_is_told(tmp_path):
    ledger = Ledger(tmp_path / "none" / "r.jsonl")
    with pytest.raises(ZeroDivisionError):
        ledger.get("links", {}, lambda: 1 / 0)
    with pytest.raises(OutputError, match="cannot be written"):
        ledger.get("links", {}, lambda: 1)


def test_a_frozen_ledger_computes_nothing(tmp_path):
    Ledger(tmp_path / "r.jsonl").get("links", {"run": 1}, lambda: 1)
    frozen = Ledger(tmp_path / "r.jsonl", frozen=True)
    assert frozen.get("links", {"run": 1}, lambda: 2) == 1
    with pytest.raises(LookupError):
        frozen.get("links", {"run": 2}, lambda: 2)


def test_a_frozen_ledger_leaves_a_line_that_is_being_written(tmp_path):
    path = tmp_path / "r.jsonl"
    Ledger(path).get("links", {"run": 1}, lambda: 1)
    with path.open("ab") as file:
        file.write(b'{"part": "li')
    before = path.read_bytes()
    assert Ledger(path, frozen=True).get("links", {"run": 1}, lambda: 2) == 1
    assert path.read_bytes() == before
