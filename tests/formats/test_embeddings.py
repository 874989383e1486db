import datetime
import decimal
import fractions
import ipaddress
import json
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from manela.data.embedding import Embedding
from manela.errors import FormatError, ManelaError, ManelaWarning, OutputError
from manela.formats.embeddings import read_embedding, write_embedding

ENDINGS = [
    ".npz", ".npy", ".txt", ".emb", ".bin", ".csv", ".tsv", ".parquet", ".feather", ".arrow", ".safetensors", ".sqlite",
    ".db", ".tensorboard", ".csv.gz", ".txt.gz", ".bin.gz",
]  # fmt: skip
WITH_FACTS = (".npz", ".npy", ".parquet", ".feather", ".safetensors", ".sqlite")
"""Formats that keep provenance and ids of any type."""


def make(ids, context=False):
    nodes = np.array(ids, dtype=np.int64) if all(type(i) is int for i in ids) else np.empty(len(ids), dtype=object)
    nodes[:] = ids
    vectors = np.random.default_rng(0).normal(size=(len(ids), 5)).astype(np.float32)
    return Embedding(nodes, vectors, vectors * 2 if context else None, {"method": "manela", "seed": 7})


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("ids", [[3, 1, -2], ["x", "Åsa", "7"]])
def test_ids_with_their_types_and_every_bit_come_back(tmp_path, ending, ids):
    written = make(ids)
    write_embedding(written, tmp_path / f"out{ending}")
    read = read_embedding(tmp_path / f"out{ending}")
    assert read.nodes.tolist() == ids
    np.testing.assert_array_equal(read.vectors, written.vectors)
    assert read.vectors.dtype == np.float32
    if ending in WITH_FACTS:
        assert dict(read.provenance) == {"method": "manela", "seed": 7}


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".feather", ".safetensors", ".sqlite"])
def test_context_and_ids_of_other_types_are_kept(tmp_path, ending):
    ids = [("a", 1), None, 2.5, True, "s", ("b", ("c",))]
    written = make(ids, context=True)
    write_embedding(written, tmp_path / f"out{ending}")
    read = read_embedding(tmp_path / f"out{ending}")
    assert read.nodes.tolist() == ids
    np.testing.assert_array_equal(read.context, written.context)


def test_npz_is_plain_numpy_without_pickles_and_the_same_bytes_each_time(tmp_path):
    for name in ("one.npz", "two.npz"):
        write_embedding(make(["a", "b"]), tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with np.load(tmp_path / "one.npz", allow_pickle=False) as arrays:
        assert arrays["nodes"].tolist() == ["a", "b"]
        assert arrays["vectors"].shape == (2, 5)
        assert json.loads(str(arrays["provenance"]))["seed"] == 7


def test_word2vec_text_is_what_others_read(tmp_path):
    write_embedding(make([4, 2]), tmp_path / "out.txt")
    first, second, _ = (tmp_path / "out.txt").read_text().splitlines()
    assert first == "2 5"
    assert second.split()[0] == "4"
    assert len(second.split()) == 6


def test_ids_that_a_format_cannot_hold_are_refused_and_leave_nothing(tmp_path):
    with pytest.raises(OutputError, match="white space"):
        write_embedding(make(["a b", "c"]), tmp_path / "out.txt")
    with pytest.raises(OutputError, match="got object"):
        write_embedding(make([object(), "c"]), tmp_path / "out.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "message"),
    [("out.doc", "must be one of"), ("none/out.npz", "no such folder"), (".", "folder|must be one of")],
)
def test_an_output_that_cannot_be_written_is_refused(tmp_path, path, message):
    with pytest.raises(OutputError, match=message):
        write_embedding(make([1, 2]), tmp_path / path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_file_before(tmp_path):
    path = tmp_path / "out.txt"
    write_embedding(make(["a", "b"]), path)
    before = path.read_bytes()
    with pytest.raises(OutputError):
        write_embedding(make(["a", "b c"]), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "out.npz"
    write_embedding(make(list(range(50))), path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(FormatError, match="damaged"):
        read_embedding(path)


@pytest.mark.parametrize("header", ["node,d0,d1\n", ",0,1\n", ""])
def test_tables_of_others_lose_no_node(tmp_path, header):
    (tmp_path / "e.csv").write_text(header + "a,1.5,2\nb,0.5,1\n")
    found = read_embedding(tmp_path / "e.csv")
    assert found.nodes.tolist() == ["a", "b"]
    np.testing.assert_array_equal(found.vectors, [[1.5, 2], [0.5, 1]])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.txt", "2 3\na 1 2 3\nb 1 2\n", r"e\.txt:3: a line must be an id and 3 numbers"),
        ("e.txt", "words\n", r"e\.txt:1: must be the number of nodes"),
        ("e.txt", "99999999 99999999\n", "cannot be in a file of this size"),
        ("e.csv", "node,d0\na,1\nb\n", r"e\.csv:3: a line must have 2 fields, got 1"),
        ("e.csv", "node,d0\na,x\n", r"e\.csv:2: a vector must be numbers, got 'x'; if it is a network"),
        ("e.csv", "ann,bob\nbob,cem\n", r"e\.csv:2: a vector must be numbers, got 'cem'; if it is a network"),
        (
            "e.csv",
            "1,2\n1,3\n2,3\n",
            r"e\.csv: must hold one vector for each node, got several for 1; if it is a network",
        ),
        ("e.txt", "2 1\n1 3\n1 4\n", r"e\.txt: must hold one vector .* got several for 1; if it is a network"),
        ("e.txt", "ann bob\nbob cem\n", r"e\.txt:1: .*; if it is a network, learn its vectors first"),
        ("e.txt", "1 1\na b\n", r"e\.txt:2: a vector must be numbers, got 'b'"),
        ("e.csv", "", "must hold a vector for each node"),
        ("e.csv", "node,d0\na,nan\n", r"e\.csv: holds vectors that are not finite numbers"),
        ("e.txt", "1 2\na 1 inf\n", r"e\.txt: holds vectors that are not finite numbers"),
        ("e.npy", "", "needs its ids beside it"),
        ("e.npz", "nonsense", "damaged or not a file of manela"),
        ("e.pdf", "", "must be one of"),
    ],
)
def test_what_is_no_embedding_is_refused_with_the_file(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=message):
        read_embedding(tmp_path / name)


@pytest.mark.parametrize("ending", [".npz", ".npy", ".bin", ".csv.gz", ".parquet", ".safetensors", ".tensorboard"])
def test_an_id_that_occurs_twice_is_refused_in_every_format(tmp_path, ending):
    write_embedding(make([3, 7, 3]), tmp_path / f"e{ending}")
    with pytest.raises(FormatError, match="must hold one vector for each node, got several for 3"):
        read_embedding(tmp_path / f"e{ending}")


def test_a_folder_in_a_folder_that_is_missing_is_told(tmp_path):
    with pytest.raises(OutputError, match="v.tensorboard: cannot be written: no such folder: .*nowhere$"):
        write_embedding(make([1]), tmp_path / "nowhere" / "v.tensorboard")


@given(st.binary(max_size=200), st.sampled_from([one for one in ENDINGS if one not in (".npy", ".tensorboard")]))
def test_no_bytes_make_a_reader_fail_other_than_by_our_errors(tmp_path_factory, data, ending):
    path = tmp_path_factory.mktemp("fuzz") / f"e{ending}"
    path.write_bytes(data)
    try:
        read_embedding(path)
    except ManelaError as error:
        assert str(path) in str(error)


def test_npy_never_pairs_vectors_with_ids_of_others(tmp_path, monkeypatch):
    file = tmp_path / "e.npy"
    old = Embedding(np.array([1, 2]), np.ones((2, 3), np.float32))
    new = Embedding(np.array([7, 8]), np.full((2, 3), 2.0, np.float32))
    write_embedding(old, file)

    replace = Path.replace

    def crash(self, target):
        if Path(target) == file:  # the ids are new, and the power fails before the vectors are
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        write_embedding(new, file)
    monkeypatch.undo()
    found = read_embedding(file)
    assert (found.nodes.tolist(), found.vectors[0, 0]) == ([1, 2], 1.0)
    write_embedding(new, file)
    found = read_embedding(file)
    assert (found.nodes.tolist(), found.vectors[0, 0]) == ([7, 8], 2.0)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["e.nodes.json", "e.npy"]
    np.save(file, np.zeros((2, 3), np.float32))
    with pytest.raises(FormatError, match="belong to other vectors"):
        read_embedding(file)


@pytest.mark.parametrize("ending", WITH_FACTS)
def test_ids_with_a_text_form_come_back_as_they_were(tmp_path, ending):
    ids = np.empty(8, dtype=object)
    ids[:] = [
        uuid.UUID(int=7), datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 3, 4), decimal.Decimal("1.50"),
        b"\x00\xff", ("a", uuid.UUID(int=8)), None, ipaddress.ip_address("10.0.0.1"),
    ]  # fmt: skip
    write_embedding(Embedding(ids, np.eye(8, dtype=np.float32)), tmp_path / f"e{ending}")
    found = read_embedding(tmp_path / f"e{ending}").nodes.tolist()
    assert found == ids.tolist()
    assert [type(one) for one in found] == [type(one) for one in ids.tolist()]


def test_ids_of_other_types_come_back_as_text(tmp_path):
    ids = np.empty(2, dtype=object)
    ids[:] = [fractions.Fraction(1, 3), "a"]
    write_embedding(Embedding(ids, np.eye(2, dtype=np.float32)), tmp_path / "e.npz")
    assert read_embedding(tmp_path / "e.npz").nodes.tolist() == ["1/3", "a"]
    other = np.empty(2, dtype=object)
    other[:] = [fractions.Fraction(1, 3), type("Odd", (), {"__str__": lambda self: "1/3"})()]
    with pytest.raises(OutputError, match="the same text"):
        write_embedding(Embedding(other, np.eye(2, dtype=np.float32)), tmp_path / "e.npz")


def test_other_ids_say_what_to_do(tmp_path):
    ids = np.empty(2, dtype=object)
    ids[:] = [object(), "a"]
    with pytest.raises(OutputError, match=r"got object; convert it with str"):
        write_embedding(Embedding(ids, np.eye(2, dtype=np.float32)), tmp_path / "e.npz")


def test_tensorboard_has_vectors_metadata_and_where_they_are(tmp_path):
    folder = tmp_path / "e.tensorboard"
    for ids in (["x", "two words", "7"], ["a", "b"]):
        write_embedding(make(ids), folder)
        assert (folder / "metadata.tsv").read_text().splitlines() == ids
        assert len((folder / "vectors.tsv").read_text().splitlines()) == len(ids)
        assert 'tensor_path: "vectors.tsv"' in (folder / "projector_config.pbtxt").read_text()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["e.tensorboard"]
    (tmp_path / "other.tensorboard").mkdir()
    with pytest.raises(OutputError, match="must be a new folder"):
        write_embedding(make(["a", "b"]), tmp_path / "other.tensorboard")


def test_a_database_is_there_for_others_to_query(tmp_path):
    write_embedding(make(["x", "y"]), tmp_path / "e.db")
    with closing(sqlite3.connect(tmp_path / "e.db")) as connection:
        [(vector,)] = connection.execute("SELECT vector FROM vectors WHERE node = 'y'")
    np.testing.assert_array_equal(np.frombuffer(vector, "<f4"), make(["x", "y"]).vectors[1])
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE something (a)")
    with pytest.raises(FormatError, match="must hold the tables"):
        read_embedding(tmp_path / "other.db")


def test_safetensors_of_others_have_numbered_rows(tmp_path):
    save_file({"weights": np.eye(3, dtype=np.float32)}, tmp_path / "e.safetensors")
    assert read_embedding(tmp_path / "e.safetensors").nodes.tolist() == [0, 1, 2]


def test_frames_hold_ids_and_vectors():
    embedding = make(["x", "y"])
    assert embedding.to_pandas().loc["y"].tolist() == embedding["y"].tolist()
    frame = embedding.to_polars()
    assert frame.columns == ["node", "d0", "d1", "d2", "d3", "d4"]
    assert frame["node"].to_list() == ["x", "y"]
    assert frame.row(1)[1:] == tuple(embedding["y"].tolist())


def test_what_others_have_in_a_database_or_folder_is_not_lost(tmp_path):
    with closing(sqlite3.connect(tmp_path / "mine.db")) as connection, connection:
        connection.execute("CREATE TABLE mine (a)")
    with pytest.raises(OutputError, match="does not hold vectors"):
        write_embedding(make(["a", "b"]), tmp_path / "mine.db")
    folder = tmp_path / "e.tensorboard"
    write_embedding(make(["a", "b"]), folder)
    (folder / "mine.txt").write_text("kept")
    write_embedding(make(["a", "b", "c"]), folder)
    assert (folder / "mine.txt").read_text() == "kept"
    write_embedding(make(["a", "b"]), tmp_path / "e.db")
    write_embedding(make(["a", "b", "c"]), tmp_path / "e.db")
    assert len(read_embedding(tmp_path / "e.db")) == 3


def test_ids_that_would_be_mixed_up_or_lost_are_refused_or_kept(tmp_path):
    for ids, words in (([1, "1"], "the same when written"), (["a\rb", "c"], "line ends")):
        with pytest.raises(OutputError, match=words):
            write_embedding(make(ids), tmp_path / "e.csv")
    write_embedding(make(["a\0", "a"]), tmp_path / "e.npz")
    assert read_embedding(tmp_path / "e.npz").nodes.tolist() == ["a\0", "a"]
    with pytest.raises(OutputError, match="not valid text"):
        write_embedding(make(["\ud800", "a"]), tmp_path / "e.csv")


def test_vectors_that_a_format_does_not_hold_are_told(tmp_path):
    with pytest.warns(ManelaWarning, match="context vectors were not written"):
        write_embedding(make(["a", "b"], context=True), tmp_path / "e.csv")


def test_a_path_may_be_text(tmp_path):
    write_embedding(make(["a", "b"]), tmp_path / "e.npz")
    assert read_embedding(str(tmp_path / "e.npz")).nodes.tolist() == ["a", "b"]
    with pytest.raises(FormatError, match=r"nothing\.npz: no such file"):
        read_embedding("nothing.npz")
