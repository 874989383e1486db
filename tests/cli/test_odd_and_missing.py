import csv

import pytest

from manela.formats.datasets import stochastic_block_model


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    graph, _ = stochastic_block_model(90, 3, 0.4, 0.02, 1)
    file = tmp_path_factory.mktemp("network") / "friends.csv"
    lines = [f"p{row},p{other}" for row in range(90) for other in graph.neighbours(row).tolist() if row < other]
    file.write_text("\n".join(lines) + "\n")
    return file


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_odd_edges_are_written_with_a_score_of_what_was_hidden(network, tmp_path, manela_here):
    done = manela_here("anomalies", network, "-o", tmp_path / "odd.csv", "-k", 7, "--folds", 2)
    assert done.returncode == 0, done.stderr
    found = rows_of(tmp_path / "odd.csv")
    assert len(found) == 7
    assert [float(row["oddness"]) for row in found] == sorted((float(row["oddness"]) for row in found), reverse=True)
    assert "AUC of hidden edges against random pairs 0." in done.stderr


def test_missing_edges_are_written_for_all_or_for_some(network, tmp_path, manela_here):
    done = manela_here("recommend", network, "-o", tmp_path / "all.csv", "-k", 3)
    assert done.returncode == 0, done.stderr
    assert len(rows_of(tmp_path / "all.csv")) == 270
    assert "edges hidden for a trial" in done.stderr
    done = manela_here("recommend", network, "-o", tmp_path / "some.csv", "--node", "p1", "--node", "p2", "--no-score")
    assert done.returncode == 0, done.stderr
    assert {row["source"] for row in rows_of(tmp_path / "some.csv")} == {"p1", "p2"}
    assert "hidden" not in done.stderr


def test_vectors_of_a_file_are_used(network, tmp_path, manela_here):
    assert manela_here("embed", network, "-o", tmp_path / "vectors.npz", "--dimensions", 16).returncode == 0
    given = manela_here(
        "recommend", network, "-o", tmp_path / "given.csv", "--vectors", tmp_path / "vectors.npz", "--no-score"
    )
    learned = manela_here("recommend", network, "-o", tmp_path / "learned.csv", "--dimensions", 16, "--no-score")
    assert given.returncode == learned.returncode == 0
    assert (tmp_path / "given.csv").read_bytes() == (tmp_path / "learned.csv").read_bytes()


def test_what_is_wrong_is_said_in_a_line(network, tmp_path, manela_here):
    for arguments, words in (
        (("recommend", network, "-o", tmp_path / "x.csv", "--node", "nobody"), "no node has the id 'nobody'"),
        (("recommend", network, "-o", tmp_path / "no" / "x.csv"), "no such folder"),
        (("anomalies", network, "-o", tmp_path), "is a folder"),
        (("anomalies", network, "-o", tmp_path / "x.csv", "--folds", 1), "--folds"),
    ):
        done = manela_here(*arguments)
        assert done.returncode == 2
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
