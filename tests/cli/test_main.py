"""The command in processes of its own: what it prints, writes, and how it ends."""

import gzip
import json
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from manela import Manela
from manela.data.embedding import Embedding
from manela.errors import FormatError
from manela.formats.embeddings import read_embedding, write_embedding
from manela.formats.graphs import read_graph
from manela.settings.parameters import PAPER

QUICK = ("--dimensions", "8", "--pairs", "20000", "--rounds", "20")


@pytest.fixture
def edges(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "edges.txt"
    once = {(min(u, v), max(u, v)): (u, v) for u, v in rng.integers(40, size=(200, 2)).tolist()}
    path.write_text("".join(f"n{u} n{v}\n" for u, v in once.values()))
    return path


def test_embed_writes_vectors_with_provenance_and_is_quiet(manela, edges, tmp_path):
    done = manela("embed", edges, "-o", tmp_path / "out.npz", *QUICK, "--ratios", "0.7,0.3")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    embedding = read_embedding(tmp_path / "out.npz")
    assert embedding.vectors.shape == (40, 8)
    provenance = embedding.provenance
    assert provenance["parameters"]["ratios"] == [0.7, 0.3]
    assert provenance["parameters"]["random_state"] == 0
    assert len(provenance["graph"]["sha256"]) == 64
    assert provenance["version"]
    assert provenance["rounds_done"] == 20


def test_the_seed_of_a_command_that_learns_nothing_speaks_of_no_vectors(manela_here):
    for command, words in (
        ("groups", "the same seed finds the same groups"),
        ("map", "the same seed draws the same map"),
    ):
        shown = " ".join(manela_here(command, "--help").stdout.split())
        assert words in shown
        assert "the same vectors" not in shown


def test_the_same_command_writes_the_same_bytes_for_any_number_of_threads(manela, edges, tmp_path):
    vectors = []
    for jobs in (1, 3):
        manela("embed", edges, "-o", tmp_path / f"{jobs}.npy", *QUICK, "--jobs", jobs)
        vectors.append((tmp_path / f"{jobs}.npy").read_bytes())
    assert vectors[0] == vectors[1]


@pytest.mark.parametrize(
    "flags",
    [["--paper"], ["--exchange", "walks", "--frequency", "1", "--start", "random", "--views", "rounds", "--no-smooth"]],
)
def test_the_papers_settings_are_one_flag_or_five(manela_here, edges, tmp_path, flags):
    done = manela_here("embed", edges, "-o", tmp_path / "out.npz", *QUICK, *flags)
    assert (done.returncode, done.stderr) == (0, "")
    embedding = read_embedding(tmp_path / "out.npz")
    expected = Manela.paper(dimensions=8, pairs=20_000, rounds=20).fit(edges)
    np.testing.assert_array_equal(embedding.vectors, expected.embedding_)
    assert {name: embedding.provenance["parameters"][name] for name in PAPER} == PAPER


def test_with_the_papers_settings_others_can_be_given(manela_here, edges, tmp_path):
    done = manela_here("embed", edges, "-o", tmp_path / "out.npz", *QUICK, "--paper", "--smooth", "--frequency", "0.5")
    assert (done.returncode, done.stderr) == (0, "")
    expected = Manela.paper(dimensions=8, pairs=20_000, rounds=20, smooth=True, frequency=0.5).fit(edges)
    np.testing.assert_array_equal(read_embedding(tmp_path / "out.npz").vectors, expected.embedding_)


def test_by_default_the_command_learns_what_the_estimator_does(manela_here, edges, tmp_path):
    assert manela_here("embed", edges, "-o", tmp_path / "out.npz", "--dimensions", 8).returncode == 0
    np.testing.assert_array_equal(
        read_embedding(tmp_path / "out.npz").vectors, Manela(dimensions=8).fit(edges).embedding_
    )


def test_similar_lists_ids_and_cosines(manela_here, tmp_path):
    vectors = np.array([[1, 0], [1, 0.1], [0, 1]], dtype=np.float32)
    for name, ids in (("s.npz", np.array(["a", "b", "c"], dtype=object)), ("i.txt", np.array([10, 20, 30]))):
        write_embedding(Embedding(ids, vectors), tmp_path / name)
    done = manela_here("similar", tmp_path / "s.npz", "a", "-k", 2)
    assert done.stdout == "b\t0.9950\nc\t0.0000\n"
    assert manela_here("similar", tmp_path / "i.txt", 10, "-k", 1).stdout == "20\t0.9950\n"


def test_similar_looks_in_exports_of_several_hosts_of_one_frame(manela_here, tmp_path):
    vectors = np.array([[1, 0], [0, 1]], dtype=np.float32)
    for name, ids, frame in (
        ("a", "ab", "12.2"), ("c", "cd", "12.2"), ("other", "ef", "34.1"), ("none", "gh", None), ("same", "bx", "12.2")
    ):  # fmt: skip
        provenance = {} if frame is None else {"frame": frame}
        write_embedding(
            Embedding(np.array(list(ids), dtype=object), vectors, None, provenance), tmp_path / f"{name}.npz"
        )
    first = tmp_path / "a.npz"
    assert manela_here("similar", first, "a", "-k", 1, "--with", tmp_path / "c.npz").stdout == "c\t1.0000\n"
    for name, words in (
        ("other", "one frame can be compared, got 12.2 and 34.1"), ("none", "got 12.2 and none"), ("same", "same nodes")
    ):  # fmt: skip
        done = manela_here("similar", first, "a", "--with", tmp_path / f"{name}.npz")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert words in done.stderr


def test_info_tells_size_and_what_a_run_would_take(manela_here, edges):
    done = manela_here("info", edges, "--json")
    facts = json.loads(done.stdout)
    assert facts["nodes"] == 40
    assert facts["components"] == 1
    assert facts["update pairs"] == 40 * 30 * facts["rounds"]
    by_walks = json.loads(manela_here("info", edges, "--paper", "--json").stdout)
    assert by_walks["update pairs"] == 40 * 7450
    assert not any("GPU" in name or "Ray" in name for name in by_walks)  # walks run on the CPU
    assert facts["estimated seconds"] > 0
    assert facts["estimated peak memory, MB"] > 0
    text = manela_here("info", edges).stdout
    assert re.search(r"^nodes +40$", text, re.MULTILINE)
    for name in ("estimated peak memory, MB", "… of a GPU, MB", "… of Ray's object store, MB"):
        assert re.search(rf"^{name} +[\d.,]+$", text, re.MULTILINE)
        assert facts[name] > 0


def test_a_dry_run_tells_the_same_and_writes_nothing(manela_here, edges, tmp_path):
    done = manela_here("embed", edges, "-o", tmp_path / "out.npz", "--dry-run", "--dimensions", 8)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[:2]] == ["network", "nodes"]
    assert "estimated seconds" in done.stdout
    assert not (tmp_path / "out.npz").exists()


def test_datasets_are_listed_and_found(manela, real, tmp_path, monkeypatch):
    listed = manela("datasets", "list").stdout
    assert [line.split()[0] for line in listed.splitlines()] == ["blogcatalog", "ppi", "wikipedia", "sbm"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = real("ppi")
    assert manela("datasets", "path", "ppi").stdout.strip() == str(path)
    assert manela("datasets", "fetch", "ppi").stdout.strip() == str(path)


def test_a_data_set_is_embedded_by_its_name(manela_here, real, tmp_path):
    real("blogcatalog")
    done = manela_here("embed", "blogcatalog", "-o", tmp_path / "x.npz", "--pairs", 100_000, "--dimensions", 8)
    assert (done.returncode, done.stderr) == (0, "")
    assert read_embedding(tmp_path / "x.npz").vectors.shape == (10_312, 8)


def test_notes_are_told_once_unless_quiet(manela_here, tmp_path):
    (tmp_path / "g.adjlist").write_text("0 1\n1 2\n3\n")
    done = manela_here("embed", tmp_path / "g.adjlist", "-o", tmp_path / "o.npz", *QUICK)
    assert done.stderr.startswith("note: 1 of 4 nodes have no neighbour")
    assert len(done.stderr.splitlines()) == 1
    assert manela_here("embed", tmp_path / "g.adjlist", "-o", tmp_path / "o.npz", *QUICK, "--quiet").stderr == ""


def test_parameters_network_and_output_are_checked_once(edges, tmp_path, monkeypatch):
    from manela.cli.main import run
    from manela.formats import embeddings, loading
    from manela.settings import settings

    calls = []

    def count(module, name):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, **k: (calls.append(name), original(*a, **k))[1])

    count(settings, "_resolve")
    count(loading, "read_graph")
    count(embeddings, "check_writable")
    assert run(["embed", str(edges), "-o", str(tmp_path / "out.npz"), *QUICK]) == 0
    assert sorted(calls) == ["_resolve", "check_writable", "read_graph"]


def test_a_flag_is_made_for_every_parameter_of_a_group():
    from typing import Annotated

    import typer

    from manela.cli import options

    taken = {}
    app = typer.Typer()

    @app.command()
    @options.expand_flags
    def command(
        *, first: Annotated[options.Values, options.Flags("ratios", "context")], other: int = 3,
        second: Annotated[options.Values, options.Flags("n_jobs")],
    ) -> None:  # fmt: skip
        taken.update(first=first, other=other, second=second)

    app(["--ratios", "0.1,0.9", "--context", "-j", "2"], standalone_mode=False)
    assert taken == {"first": {"ratios": (0.1, 0.9), "context": True}, "other": 3, "second": {"n_jobs": 2}}


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], [], ["embed", "--help"], ["datasets", "--help"]])
def test_help_helps(manela, arguments):
    done = manela(*arguments)
    assert done.returncode == 0
    assert "Usage:" in done.stdout


def test_help_of_embed_shows_every_parameter_with_its_default(manela_here):
    from manela import Manela

    text = manela_here("embed", "--help").stdout
    for name in Manela().get_params():
        assert f"--{'jobs' if name == 'n_jobs' else name.replace('_', '-')}" in text
    assert "[default: 0.025]" in text


def damaged_checkpoint(folder):
    (folder / "run").mkdir()
    (folder / "run" / "checkpoint.npz").write_bytes(b"damaged")


FILES = {
    "empty.txt": b"",
    "one-column.txt": b"a b\nc\n",
    "word-weight.txt": b"a b 1\nb c heavy\n",
    "negative.txt": b"a b 1\nb c -1\n",
    "zero.txt": b"a b 0\n",
    "infinite.txt": b"a b inf\n",
    "one-node.txt": b"a a\n",
    "no-edges.adjlist": b"a\nb\n",
    "good.txt": b"a b\nb c\n",
    "spaces.csv": b"New York,Boston\n",
    "strange.xyz": b"once upon\na time there was\n",
    "cut.txt.gz": gzip.compress(bytes(range(32, 127)) * 100)[:-30],
}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.txt"], ["none.txt", "no such file"]),
        (["."], ["folder"]),
        (["empty.txt"], ["empty.txt", "empty"]),
        (["one-column.txt"], ["one-column.txt:2", "two columns", "'c'"]),
        (["word-weight.txt"], ["word-weight.txt:2", "must be a number", "'heavy'"]),
        (["negative.txt"], ["negative.txt:2", "above 0", "-1"]),
        (["zero.txt"], ["zero.txt:1", "above 0", "0"]),
        (["infinite.txt"], ["infinite.txt:1", "finite", "inf"]),
        (["one-node.txt"], ["one-node.txt", "two nodes", "1 node"]),
        (["no-edges.adjlist"], ["no-edges.adjlist", "an edge", "0 edge"]),
        (["strange.xyz"], ["strange.xyz", "format must be one of", "'.xyz'"]),
        (["other.mat"], ["other.mat", "variable 'network'", "but has other"]),
        (["cut.txt.gz"], ["cut.txt.gz", "cut off"]),
        (["good.txt", "--ratios", "0.7,0.7"], ["ratios must sum to 1", "1.4"]),
        (["good.txt", "--ratios", "-0.5,1.5"], ["ratios must be", "-0.5"]),
        (["good.txt", "--ratios", "a,b"], ["ratios must be numbers", "'a,b'"]),
        (["good.txt", "--dimensions", "0"], ["dimensions must be", "got 0"]),
        (["good.txt", "--dimensions", "x"], ["--dimensions", "integer", "'x'"]),
        (["good.txt", "--learning-rate", "nan"], ["--learning-rate must be", "nan"]),
        (["good.txt", "--pairs", "5", "--updates", "1"], ["at most one of pairs, updates and max_seconds"]),
        (["good.txt", "-o", "none/out.npz"], ["none/out.npz", "no such folder"]),
        (["good.txt", "-o", "/proc/out.npz"], ["/proc/out.npz", "cannot be written"]),
        (["good.txt", "-o", "out.doc"], ["out.doc", "format must be one of", "'.doc'"]),
        (["good.txt", "--checkpoint", "run"], ["run/checkpoint.npz", "--resume"]),
        (["good.txt", "--checkpoint", "run", "--resume"], ["run/checkpoint.npz", "is damaged"]),
        (["good.txt", "--resume"], ["--resume needs --checkpoint"]),
        (["good.txt", "--learning-rate", "1e38"], ["stopped being finite", "learning_rate", "1e+38"]),
        (["good.txt", "--engine", "abacus"], ["engine must be one of", "'abacus'"]),
        (["good.txt", "--exchange", "letters"], ["exchange must be one of", "'letters'"]),
        (["good.txt", "--paper", "--engine", "gpu"], ["walks run on the CPU", "engine 'gpu'"]),
        (["good.txt", "--frequency", "3"], ["frequency must be", "got 3"]),
        (["spaces.csv", "-o", "out.txt"], ["out.txt", "white space", "'New York'"]),
        (["good.txt", "-o", "good.txt"], ["good.txt", "would be overwritten"]),
        (["good.txt", "--checkpoint", "/proc"], ["/proc", "cannot be written"]),
        (["good.txt", "-o", "x" * 300 + ".npz"], ["name too long"]),
        (["good.txt", "--updates", "1e30"], ["updates must come to at most"]),
        (["good.txt", "--dimesions", "4"], ["No such option", "--dimesions", "--dimensions"]),
    ],
)
def test_bad_input_ends_with_status_2_one_line_and_no_output(manela_here, tmp_path, arguments, words):
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    scipy.io.savemat(tmp_path / "other.mat", {"other": sp.eye_array(3)})
    damaged_checkpoint(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = manela_here("embed", *([] if "-o" in arguments else ["-o", "out.npz"]), *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: ")
    for word in words:
        assert word.lower() in done.stderr.lower()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["similar", "e.npz", "zed"], ["e.npz", "no node has the id 'zed'"]),
        (["similar", "none.npz", "a"], ["none.npz", "no such file"]),
        (["similar", "e.npz", "a", "-k", "0"], ["k must be at least 1"]),
        (["info", "none.txt"], ["none.txt", "no such file"]),
        (["datasets", "fetch", "facebook"], ["unknown data set 'facebook'"]),
        (["embedd"], ["No such command 'embedd'"]),
        (["embed"], ["Missing argument 'GRAPH'"]),
        (["embed", "e.npz"], ["missing -o/--output"]),
        (["info", "sbm", "--directed", "--columns", "foo,bar"], ["--columns, --directed cannot apply", "generated"]),
        (["info", "m.npy", "--columns", "1,2"], ["--columns is for edge lists", "m.npy"]),
    ],
)
def test_other_mistakes_end_with_status_2_and_one_line(manela_here, tmp_path, arguments, words):
    write_embedding(Embedding(np.array(["a", "b"], dtype=object), np.eye(2, dtype=np.float32)), tmp_path / "e.npz")
    np.save(tmp_path / "m.npy", np.array([[0, 1], [1, 2], [2, 0]]))
    done = manela_here(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    "group", [["evaluate"], ["agent"], ["agent", "peer"], ["agent", "edges", "import"], ["datasets"], ["import"]]
)
def test_a_group_without_a_command_prints_its_help(manela_here, group):
    done = manela_here(*group)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == manela_here(*group, "--help").stdout
    assert "error:" not in done.stderr


def test_parameters_in_messages_are_flags(manela_here, tmp_path):
    (tmp_path / "edges.txt").write_text("a b 1 2\n")
    done = manela_here("info", tmp_path / "edges.txt")
    assert done.returncode == 2
    assert "pass --unweighted to ignore further columns, or --columns to choose" in done.stderr
    with pytest.raises(FormatError, match="pass unweighted=True to ignore further columns, or columns to choose"):
        read_graph(tmp_path / "edges.txt")


def test_parameters_in_warnings_are_flags(manela_here, tmp_path):
    (tmp_path / "edges.csv").write_text("payer,payee\na,b\na,b\nb,c\n")
    done = manela_here("info", tmp_path / "edges.csv")
    assert "note: 1 repeated edge was merged" in done.stderr
    assert "pass --duplicates first to count each edge once" in done.stderr
    assert "pass --columns to choose others" in done.stderr
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        read_graph(tmp_path / "edges.csv")
    messages = [str(warning.message) for warning in told]
    assert messages[0].endswith("pass columns to choose others")
    assert messages[1].endswith("pass duplicates='first' to count each edge once")


def test_ctrl_c_while_the_command_is_imported_ends_quietly(tmp_path):
    """The signal comes when the first module of the command line is asked for."""
    code = (
        "import builtins, os, signal\n"
        "real = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        "    if name == 'manela.cli.main':\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = interrupted\n"
        "from manela.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (130, "")
