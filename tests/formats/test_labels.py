import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from manela.errors import FormatError
from manela.formats.labels import read_labels


def test_a_mat_file_has_a_row_for_each_node(tmp_path):
    group = sp.csr_array(np.array([[1, 0], [0, 0], [1, 1]]))
    scipy.io.savemat(tmp_path / "net.mat", {"group": group})
    labels = read_labels(tmp_path / "net.mat")
    np.testing.assert_array_equal(labels.of(np.arange(3)), group.toarray() != 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.txt", "# who is what\na red\nb blue\na blue\n\nc red\n"),
        ("labels.txt", "a red blue\nb blue\nc red\n"),
        ("labels.csv", "node,label\na,red\nb, blue\na,blue\nc,red\n"),
        ("labels.tsv", "a\tred\tblue\nb\tblue\nc\tred\n"),
    ],
)
def test_lines_name_a_node_and_its_labels(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    labels = read_labels(tmp_path / name)
    assert set(labels.names) == {"red", "blue"}
    found = labels.of(np.array(["c", "b", "x", "a"], dtype=object))
    by_name = {label: found[:, column].tolist() for column, label in enumerate(labels.names)}
    assert by_name == {"red": [True, False, False, True], "blue": [False, True, False, True]}


def test_csv_labels_may_have_blanks_commas_and_signs(tmp_path):
    (tmp_path / "l.csv").write_text('\ufeffid,label\n1,dark red\n2,"red, dark"\n3,C#\n4,C\n', encoding="utf-8")
    assert read_labels(tmp_path / "l.csv").names == ("dark red", "red, dark", "C#", "C")


def test_nodes_of_a_mat_file_without_a_label_need_no_vector(tmp_path):
    scipy.io.savemat(tmp_path / "net.mat", {"group": np.array([[1, 0], [0, 1], [0, 0]])})
    assert read_labels(tmp_path / "net.mat").of(np.arange(2)).tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize("group", ["text", np.zeros((2, 2, 2)), np.array([["a", 1]], dtype=object), {"a": 1}])
def test_a_mat_file_that_holds_something_else_is_told(tmp_path, group):
    scipy.io.savemat(tmp_path / "net.mat", {"group": group})
    with pytest.raises(FormatError, match="must be a matrix of 0 and 1"):
        read_labels(tmp_path / "net.mat")


def test_integers_match_text(tmp_path):
    with gzip.open(tmp_path / "l.txt.gz", "wt") as file:
        file.write("10 a\n2 b\n")
    assert read_labels(tmp_path / "l.txt.gz").of(np.array([2, 10])).tolist() == [[False, True], [True, False]]


def test_labels_of_unknown_nodes_are_an_error(tmp_path):
    (tmp_path / "l.txt").write_text("1 a\n7 b\n")
    with pytest.raises(FormatError, match=r"labels 1 nodes .* '7'"):
        read_labels(tmp_path / "l.txt").of(np.array([1, 2]))


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("l.txt", b"a red\nb\n", r"l\.txt:2: must be a node and a label, got 'b'"),
        ("l.txt", b"", "must hold labels"),
        ("l.txt", b"\xff\xfe\x00", "is not text"),
        ("l.mat", b"nonsense", "damaged or not a .mat"),
        ("l.txt.gz", b"\x1f\x8b\x08\x00cut", "damaged"),
    ],
)
def test_bad_files_are_named_with_the_rule(tmp_path, name, content, rule):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=rule):
        read_labels(tmp_path / name)


def test_missing_files_folders_and_variables_are_named(tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        read_labels(tmp_path / "none.txt")
    with pytest.raises(FormatError, match="is a folder"):
        read_labels(tmp_path)
    scipy.io.savemat(tmp_path / "net.mat", {"other": np.eye(2)})
    with pytest.raises(FormatError, match="'group', got other"):
        read_labels(tmp_path / "net.mat")


@given(st.binary(max_size=300))
def test_whatever_a_file_holds_gives_labels_or_our_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("labels") / "l.txt"
    path.write_bytes(content)
    try:
        labels = read_labels(path)
    except FormatError:
        return
    assert labels.matrix.shape == (len(labels.nodes), len(labels.names))


def test_an_empty_cell_of_csv_is_no_label(tmp_path):
    (tmp_path / "l.csv").write_text("node,group\na,0\nb,\nc,1\n")
    labels = read_labels(tmp_path / "l.csv")
    assert labels.of(np.array(["a", "b", "c"], dtype=object)).sum(axis=1).tolist() == [1, 0, 1]


@pytest.mark.parametrize("name", ["labels.csv", "LABELS.CSV"])
def test_the_case_of_an_ending_does_not_matter(tmp_path, name):
    (tmp_path / name).write_text('ann,"a b, c"\nbob,d\n')
    assert read_labels(tmp_path / name).names == ("a b, c", "d")
    (tmp_path / f"{name}.GZ").write_bytes(gzip.compress(b'ann,"a b, c"\nbob,d\n'))
    assert read_labels(tmp_path / f"{name}.GZ").names == ("a b, c", "d")
