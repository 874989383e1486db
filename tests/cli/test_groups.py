"""manela groups: what it writes, tells and refuses."""

import csv

import numpy as np
import pytest

from manela.data.embedding import Embedding
from manela.formats.embeddings import write_embedding


@pytest.fixture
def vectors(tmp_path):
    """Three plain groups of 60, 40 and 20 nodes, with ids that CSV has to quote."""
    rng = np.random.default_rng(0)
    planted = np.repeat(np.arange(3), [60, 40, 20])
    ids = np.array([f'node "{row}", of {group}' for row, group in enumerate(planted)], dtype=object)
    points = np.eye(3)[planted] + rng.normal(scale=0.05, size=(120, 3))
    path = tmp_path / "vectors.npz"
    write_embedding(Embedding(ids, points.astype(np.float32)), path)
    (tmp_path / "labels.tsv").write_text(
        "".join(f"{node}\tis {group}\n" for node, group in zip(ids, planted, strict=True))
    )
    return path


def test_groups_are_written_and_scored(manela_here, vectors, tmp_path):
    done = manela_here("groups", vectors, "-o", tmp_path / "groups.csv")
    assert (done.returncode, done.stdout) == (0, "")
    with (tmp_path / "groups.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["node", "group"]
    assert rows[1] == ['node "0", of 0', "0"]
    assert all(node.endswith(group) for node, group in rows[1:])
    assert "3 groups of 60, 40, 20 nodes" in done.stderr
    assert "silhouette of 24 hidden nodes: 0.9" in done.stderr
    assert "on hidden nodes: 1.000" in done.stderr


def test_labels_are_compared_and_the_number_is_taken(manela_here, vectors, tmp_path):
    done = manela_here("groups", vectors, "-o", tmp_path / "g.csv", "-k", 3, "--labels", tmp_path / "labels.tsv")
    assert done.returncode == 0, done.stderr
    assert "labels.tsv: 1.000 of 120 nodes with one label" in done.stderr


def test_dense_regions_go_to_standard_output(manela_here, vectors):
    done = manela_here("groups", vectors, "-o", "-", "--method", "hdbscan", "--quiet")
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "node,group"
    assert len(done.stdout.splitlines()) == 121


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "missing -o/--output"),
        (["-o", "g.csv", "-k", "121"], "count must be at most"),
        (["-o", "g.csv", "--method", "louvain"], "method must be one of"),
        (["-o", "g.csv", "--labels", "none.txt"], "no such file"),
        (["-o", "g.npz"], "must be a .csv file"),
        (["-o", "missing/g.csv"], "no such folder"),
    ],
)
def test_mistakes_end_with_one_line_and_no_file(manela_here, vectors, tmp_path, arguments, words):
    done = manela_here("groups", vectors, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert words in done.stderr
    assert not (tmp_path / "g.csv").exists()
