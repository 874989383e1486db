"""manela evaluate in processes of its own."""

import json

import numpy as np
import pytest

from manela.data.embedding import Embedding
from manela.formats.datasets import stochastic_block_model
from manela.formats.embeddings import write_embedding


@pytest.fixture
def vectors(tmp_path):
    """Vectors that tell which of three labels a node has, and the labels."""
    rng = np.random.default_rng(0)
    which = rng.integers(3, size=90)
    table = (np.eye(3)[which] + 0.05 * rng.normal(size=(90, 3))).astype(np.float32)
    write_embedding(Embedding(np.arange(90), table), tmp_path / "out.npz")
    (tmp_path / "labels.csv").write_text("node,label\n" + "".join(f"{v},l{k}\n" for v, k in enumerate(which)))
    return tmp_path


@pytest.fixture
def network(tmp_path):
    graph, _ = stochastic_block_model(nodes=90, inside=0.4, between=0.02, seed=2)
    u, v = graph.to_scipy().nonzero()
    path = tmp_path / "net.txt"
    path.write_text("".join(f"{a} {b}\n" for a, b in zip(u, v, strict=True) if a < b))
    return path


def test_classify_prints_a_table_and_writes_scores_and_a_picture(manela_here, vectors):
    done = manela_here(
        "evaluate", "classify", vectors / "out.npz", vectors / "labels.csv", "--train-ratios", "0.3,0.6",
        "--shuffles", 3, "--json", vectors / "scores.json", "--plot", vectors / "scores.svg",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["train", "30%", "60%"]
    scores = json.loads((vectors / "scores.json").read_text())["scores"]
    assert [row["train_ratio"] for row in scores] == [0.3, 0.6]
    assert len(scores[0]["open_macro"]) == 3
    mean = np.mean(scores[1]["micro"])
    assert mean > 0.95
    assert f"{mean:.4f} ±" in lines[2]
    assert (vectors / "scores.svg").read_text().startswith("<?xml")


def test_scores_do_not_depend_on_the_order_of_a_file(manela_here, vectors):
    from manela.formats.embeddings import read_embedding

    read = read_embedding(vectors / "out.npz")
    order = np.random.default_rng(1).permutation(90)
    noisy = read.vectors + np.random.default_rng(2).normal(size=read.vectors.shape).astype(np.float32)
    tables = []
    for name, rows in (("a.npz", np.arange(90)), ("b.csv", order)):
        write_embedding(Embedding(read.nodes[rows], noisy[rows]), vectors / name)
        done = manela_here("evaluate", "classify", vectors / name, vectors / "labels.csv", "--train-ratios", "0.5")
        tables.append(done.stdout)
    assert tables[0] == tables[1] != ""


def test_links_prints_a_line_for_each_method(manela_here, network, tmp_path):
    done = manela_here(
        "evaluate", "links", network, "--method", "manela,deepwalk,prone,netmf,adamic-adar", "--runs", 2,
        "--dimensions", 16, "--pairs", 200_000, "--json", tmp_path / "links.json", "--plot", tmp_path / "links.png",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    methods = ["manela", "deepwalk", "prone", "netmf", "adamic-adar"]
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["method", *methods]
    scores = json.loads((tmp_path / "links.json").read_text())["scores"]
    assert len(scores["manela"]) == 2
    assert all(run["auc"] > 0.75 for runs in scores.values() for run in runs)
    assert (tmp_path / "links.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("classify", "none.npz", "labels.csv"), "none.npz: no such file"),
        (("classify", "out.npz", "none.csv"), "none.csv: no such file"),
        (("classify", "out.npz", "labels.csv", "--train-ratios", "0.5,2"), "train-ratios must be between 0 and 1"),
        (("classify", "out.npz", "labels.csv", "--train-ratios", "half"), "train-ratios must be numbers"),
        (("classify", "out.npz", "labels.csv", "--plot", "picture.gif"), "must end in .png or .svg"),
        (("classify", "out.npz", "labels.csv", "--json", "none/x.json"), "cannot be written"),
        (("classify", "out.npz", "sbm"), "has no labels"),
        (("classify", "out.npz", "labels.csv", "--random-state", "-1"), "--random-state must be"),
        (("classify", "out.npz", "labels.csv", "--jobs", "0"), "--jobs must be"),
        (("links", "sbm", "--random-state", "-1"), "--random-state must be"),
        (("links", "sbm", "--method", "magic"), "method must be one of manela"),
        (("links", "sbm", "--share", "1.5", "--runs", "1"), "share must be between 0 and 1"),
        (("links", "none.txt"), "none.txt: no such file"),
    ],
)
def test_bad_input_gives_one_line_and_status_2(manela_here, vectors, arguments, rule):
    done = manela_here("evaluate", *arguments, cwd=vectors)
    assert done.returncode == 2
    assert rule in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert sorted(path.name for path in vectors.iterdir()) == ["labels.csv", "out.npz"]


def test_the_papers_scores_come_out_on_its_smallest_network(manela_here, real, tmp_path):
    real("ppi")
    assert manela_here("embed", "ppi", "-o", tmp_path / "ppi.npz", "--ratios", "0.1,0.9", "--quiet").returncode == 0
    done = manela_here(
        "evaluate", "classify", tmp_path / "ppi.npz", "ppi", "--train-ratios", "0.5", "--json", tmp_path / "s.json"
    )
    assert done.returncode == 0
    scores = json.loads((tmp_path / "s.json").read_text())["scores"][0]
    assert np.mean(scores["micro"]) >= 0.222
