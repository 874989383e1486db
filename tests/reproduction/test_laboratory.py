"""What every experiment of the paper needs to run."""

import json

import numpy as np
import pytest

from manela import Graph, __version__
from manela.errors import FormatError, OutputError
from manela.reproduction.laboratory import BIASES, FIRST_RATIO, FULL, QUICK, Laboratory, Ledger, fit, split_ratio
from manela.settings.parameters import PAPER


@pytest.fixture
def laboratory(tmp_path):
    told = []
    found = Laboratory(QUICK, Ledger(tmp_path / "ledger.jsonl"), 1, told.append)
    return found, told


def test_a_result_is_computed_once_and_told_each_time(laboratory):
    lab, told = laboratory
    asked = []
    for _ in range(2):
        assert lab.get("links", lambda: asked.append(1) or {"map": 0.5}, network="ppi", run=3, grid=[1]) == {"map": 0.5}
    assert asked == [1]
    assert told == ["links: network=ppi run=3"] * 2
    assert lab.get("links", lambda: {"map": 0.7}, network="ppi", run=4, grid=[1]) == {"map": 0.7}
    again = Laboratory(QUICK, Ledger(lab.ledger.path), 1, told.append)
    assert again.get("links", lambda: 1 / 0, network="ppi", run=3, grid=[1]) == {"map": 0.5}


def test_a_result_that_failed_is_not_kept(laboratory):
    lab, _ = laboratory
    with pytest.raises(ZeroDivisionError):
        lab.get("links", lambda: 1 / 0, network="ppi")
    assert lab.get("links", lambda: 1, network="ppi") == 1


def test_each_method_gets_the_work_that_the_plan_gives_it(laboratory):
    lab, _ = laboratory
    assert lab.choose_parameters("manela", 100, 0.7, seed=4) == {
        "ratios": [0.7, 0.3], "pairs": 100 * QUICK.pairs_per_node, "random_state": 4
    }  # fmt: skip
    assert lab.choose_parameters("deepwalk", 100, 0.7, p=4.0, q=0.5) == {"walks": QUICK.walks, "random_state": 0}
    assert lab.choose_parameters("node2vec", 100, 0.7, p=4.0, q=0.5, seed=1) == {
        "walks": QUICK.walks, "p": 4.0, "q": 0.5, "random_state": 1
    }  # fmt: skip
    full = Laboratory(FULL, lab.ledger, 1, lab.tell)
    assert full.choose_parameters("deepwalk", 100, 0.7)["walks"] == 10


@pytest.mark.parametrize("r1", [0.0, 0.1, 0.3, 0.7, 1.0])
def test_ratios_are_two_that_sum_to_1_without_a_tail_of_digits(r1):
    ratios = split_ratio(r1)
    assert sum(ratios) == pytest.approx(1.0)
    assert len(str(ratios[1])) <= 3


def test_every_network_of_the_plan_has_the_papers_settings():
    for network in FULL.networks:
        assert 0 < FIRST_RATIO[network] < 1
        assert len(BIASES[network]) == 2


@pytest.mark.parametrize("method", ["manela", "deepwalk", "node2vec"])
def test_a_method_is_fitted_with_the_papers_settings_and_a_seed_gives_the_same_bits(laboratory, method):
    lab, _ = laboratory
    rows = np.arange(40)
    graph = Graph.from_edges(np.tile(rows, 2), np.concatenate(((rows + 1) % 40, (rows + 7) % 40)))
    parameters = lab.choose_parameters(method, 40, 0.7, p=2.0, q=0.5, seed=3) | {"dimensions": 8}
    if method == "manela":
        parameters["pairs"] = 2000
    one, two = (fit(method, parameters, graph, jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    assert one.embedding_.shape == (40, 8)
    found = one.get_params()
    assert all(found[name] == value for name, value in parameters.items())
    if method == "manela":
        assert all(found[name] == value for name, value in PAPER.items() if name not in parameters)
        assert (found["n_jobs"], two.get_params()["n_jobs"]) == (1, 2)
    else:
        assert two.get_params()["n_jobs"] == 1


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
