import bz2
import gzip
import lzma
import warnings
import zipfile

import networkx as nx
import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.errors import FormatError, ManelaError, ManelaWarning
from manela.formats.graphs import read_graph


@pytest.fixture
def write(tmp_path):
    def write(text, name="graph.txt"):
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def edges_of(graph):
    matrix = graph.to_scipy().tocoo()
    return {
        frozenset((graph.nodes[i], graph.nodes[j])): float(w)
        for i, j, w in zip(*matrix.coords, matrix.data, strict=True)
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.txt", "a b\nb c\n"),
        ("g.txt", "# comment\n% other\n\n  a\tb  \r\nb   c"),
        ("g.edgelist", "a,b\nb,c\n"),
        ("g.csv", "a,b\nb, c\n"),
        ("g.csv", "source,target\na,b\nb,c\n"),
        ("g.csv", 'Source;Target\n"a";"b"\nb;c\n'),
        ("g.tsv", "a\tb\nb\tc\n"),
        ("g.txt.gz", "a b\nb c\n"),
        ("g.txt", "\ufeffa b\nb c\n"),
        ("g.adjlist", "a b\nb a c\n# none\nc\n"),
        ("g.adjlist", "a\rb\nb\ra\rc\r\n"),
        ("g.txt", "a, b\nb, c\n"),
    ],
)
def test_every_way_to_write_a_b_c_reads_the_same(write, name, text):
    graph = read_graph(write(text, name))
    assert edges_of(graph) == {frozenset("ab"): 1.0, frozenset("bc"): 1.0}
    assert all(type(node) is str for node in graph.nodes)


def test_integers_are_integers_only_if_all_are_written_so(write):
    assert read_graph(write("10 2\n-3 10\n")).nodes.tolist() == [-3, 2, 10]
    assert read_graph(write("10 2\n007 10\n")).nodes.tolist() == ["10", "2", "007"]
    assert read_graph(write("1 2\n2 99999999999999999999\n")).nodes.tolist() == ["1", "2", "99999999999999999999"]
    assert read_graph(write("-0 2\n")).nodes.tolist() == ["-0", "2"]


def test_ids_may_hold_spaces_and_marks_in_csv_and_any_letters(write):
    graph = read_graph(write('"Ann Lee","B ""Bo"" O"\nÅsa,"x,y"\n', "g.csv"))
    assert graph.nodes.tolist() == ["Ann Lee", 'B "Bo" O', "Åsa", "x,y"]


HEADINGS = {
    "payer,payee\nalice,bob\nbob,carol\n": "",
    "source,target\nalice,bob\nbob,carol\n": "",
    "Source,Target,Weight\nalice,bob,2\nbob,carol,3\n": "",
    "id_1,id_2\n1,2\n2,3\n": "",
    "FromNodeId\tToNodeId\n1\t2\n2\t3\n": "",
    "# Nodes: 3\n# FromNodeId\tToNodeId\n1\t2\n2\t3\n": "",
    "x,y\n1,2\n2,3\n": "using columns x and y",
    "who,whom,euros\nalice,bob,2.5\nbob,carol,3\n": "euros as weight",
    ",source,target\n0,alice,bob\n1,bob,carol\n": "ignoring a column without a name",
    "index,who,whom\n0,alice,bob\n1,bob,carol\n": "who and whom",
    "from,to,timestamp\nalice,bob,100\nbob,carol,200\n": "ignoring timestamp",
    "weight,target,source\n2,bob,alice\n3,carol,bob\n": "",
    "id,src,dst,note\n7,alice,bob,\n9,bob,carol,x\n": "ignoring id, note",
    "sender,receiver\na1@x.org,b@x.org\nb@x.org,c@y.org\n": "sender and receiver",
    "mail one,mail two\na1@x.org,b@x.org\nb@x.org,c@y.org\n": "mail one and mail two",
}


@pytest.mark.filterwarnings("ignore::manela.ManelaWarning")
@pytest.mark.parametrize("text", HEADINGS)
def test_a_heading_is_no_edge(write, text):
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        graph = read_graph(write(text, "g.csv"))
    assert (graph.number_of_nodes, graph.number_of_edges) == (3, 2)
    assert HEADINGS[text] in " ".join(str(note.message) for note in notes)
    assert len(notes) <= 1
    weights = {"Weight": 2, "euros": 2.5, "weight": 2}
    wanted = next((weight for name, weight in weights.items() if name in text.splitlines()[0]), None)
    assert graph.is_weighted == (wanted is not None)
    if graph.is_weighted:
        assert edges_of(graph)[frozenset(("alice", "bob"))] == wanted


@pytest.mark.parametrize(
    "text", ["alice,bob\nbob,carol\n", "source,target\ntarget,bob\n", "start,end,1.5\nend,x,2\n", "ann bob\nbob 2\n"]
)
def test_what_is_no_heading_is_an_edge(write, text):
    graph = read_graph(write(text, "g.csv" if "," in text else "g.txt"))
    assert (graph.number_of_nodes, graph.number_of_edges) == (3, 2)


def test_columns_are_chosen_by_name_or_number(write):
    text = "when,buyer,what,seller,price\n1,ann,x,bob,5\n2,bob,,cem,7\n"
    path = write(text, "g.csv")
    wanted = {frozenset(("ann", "bob")): 5.0, frozenset(("bob", "cem")): 7.0}
    assert edges_of(read_graph(path, columns=["seller", "buyer", "price"])) == wanted
    assert edges_of(read_graph(path, columns=["2", "4", "5"])) == wanted
    arcs = read_graph(path, columns=["seller", "buyer"], directed=True)
    assert (list(arcs.neighbours("bob")), list(arcs.neighbours("ann"))) == (["ann"], [])
    bare = write("1 ann bob\n2 bob cem\n", "g.txt")
    assert edges_of(read_graph(bare, columns=["2", "3"])) == dict.fromkeys(wanted, 1.0)
    for columns, words in (
        (["buyer"], "two, or three"), (["buyer", "nobody"], "no column is named 'nobody'; the file has when, buyer"),
        (["2", "2"], "must be different"), (["2", "9"], "9 columns or more"),
    ):  # fmt: skip
        with pytest.raises(FormatError, match=words):
            read_graph(path, columns=columns)
    with pytest.raises(FormatError, match="use numbers from 1"):
        read_graph(bare, columns=["a", "b"])


def test_a_csv_with_long_comments_is_split_by_commas_all_the_same(write):
    text = "# a comment\n" * 20_000 + "New York,Boston\nBoston,Salem\n"
    assert read_graph(write(text, "g.csv")).nodes.tolist() == ["New York", "Boston", "Salem"]
    assert read_graph(write("%" + "x" * 200_000 + "\n1,2\n2,3\n", "g.csv")).nodes.tolist() == [1, 2, 3]


def test_a_semicolon_before_a_comma_separates_a_csv(write):
    assert read_graph(write("a;b,x\nb,x;c\n", "g.csv")).nodes.tolist() == ["a", "b,x", "c"]


def test_quotes_mean_nothing_where_white_space_separates(write):
    assert read_graph(write('a""b c\na"b c\n')).nodes.tolist() == ['a""b', "c", 'a"b']


@pytest.mark.parametrize("text", ["1.5", "1e3", "0.1234567890123456789", "+2", ".5", "5.", "12345678901234567890"])
def test_weights_are_read_as_python_reads_them(write, text):
    graph = read_graph(write(f"a b {text}\nb c 77\n"))
    assert edges_of(graph)[frozenset("ab")] == float(text)


def test_many_weights_of_many_digits_are_read_exactly(write):
    weights = np.random.default_rng(0).lognormal(size=5000).tolist()
    graph = read_graph(write("".join(f"{i} {i + 1} {w!r}\n" for i, w in enumerate(weights))))
    assert [edges_of(graph)[frozenset((i, i + 1))] for i in range(0, 5000, 500)] == weights[::500]
    assert sorted(graph.weights[::1].tolist()) == sorted(weights + weights)


@pytest.mark.parametrize("weight", ["1,000.00", "1,5", "2,500" + "0" * 40, '1""2', "12 3", '5"6'])
def test_a_quoted_weight_is_read_to_its_closing_mark(write, weight):
    text = f'source,target,weight\nann,bob,"{weight}"\nbob,carl,900\n'
    if weight == '5"6':
        text = text.replace(f'"{weight}"', weight)  # a mark inside a field that is not quoted
    with pytest.raises(FormatError) as caught:
        read_graph(write(text, "th.csv"))
    assert str(caught.value).endswith(f"th.csv:2: a weight must be a number, got {weight!r}")


@pytest.mark.filterwarnings("ignore::manela.ManelaWarning")
def test_quoted_weights_of_any_form_are_read(write):
    weights = ["1e3", "0.12345678901234567", " 2.5e0 ", "3" + "0" * 40, "7"]
    lines = "".join(f'{i},{i + 1},"{weight}",""\n' for i, weight in enumerate(weights))
    graph = read_graph(write("payer,payee,amount,note\n" + lines, "g.csv"))
    assert [edges_of(graph)[frozenset((i, i + 1))] for i in range(len(weights))] == list(map(float, weights))
    first = read_graph(write('1e1,ann,bob\n"2e1",bob,cem\n', "g.csv"), columns=["2", "3", "1"])
    assert sorted(edges_of(first).values()) == [10, 20]


@pytest.mark.parametrize("weight", ["nan", "inf", "-inf", "NA", "NaN", "null"])
def test_a_first_line_without_a_proper_weight_is_an_error_and_no_header(write, weight):
    for rest in ("bob,carol,1\ncarol,alice,2\n", "dora,emil,1\nemil,finn,2\n"):
        with pytest.raises(FormatError, match=r"g\.csv:1: a weight must be "):
            read_graph(write(f"alice,bob,{weight}\n{rest}", "g.csv"))


def test_a_first_line_with_an_empty_weight_is_no_header(write):
    with pytest.raises(FormatError, match="either every line or none must have a weight"):
        read_graph(write("alice,bob,\nbob,carol,1\ncarol,alice,2\n", "g.csv"))


def test_unweighted_leaves_out_every_further_column(write):
    graph = read_graph(write("a b 3 17:00 x\nb c 4 18:00\n"), unweighted=True)
    assert not graph.is_weighted
    assert graph.number_of_edges == 2


def test_directed_follows_lines_as_given(write):
    graph = read_graph(write("0 1\n1 2\n"), directed=True)
    assert graph.degrees.tolist() == [1, 1, 0]


def test_an_adjacency_list_may_name_nodes_without_neighbours(write):
    graph = read_graph(write("0 1 2\n3\n", "g.adj"))
    assert graph.degrees.tolist() == [2, 1, 1, 0]


@pytest.mark.parametrize(
    ("text", "line", "rule", "value"),
    [
        ("a b\nc\n", 2, "two columns", "'c'"),
        ("a b 1\nb c heavy\n", 2, "a weight must be a number", "'heavy'"),
        ("# c\na b 1\n\nb c -2\n", 4, "finite and above 0", "-2"),
        ("a b 0\n", 1, "finite and above 0", "0"),
        ("a b 1\nb c inf\n", 2, "finite and above 0", "inf"),
        ("a b nan\n", 1, "finite and above 0", "nan"),
        ("a b 1e308\n", 1, "finite and above 0", "1e+308"),
        ("a b 1_0\n", 1, "must be a number", "1_0"),
        ("a b 1\nb c 1e999\n", 2, "finite and above 0", "inf"),
        ("a b 1\nb c\n", 2, "either every line or none", "'b c'"),
        ("a b 1 2\n", 1, "unweighted=True", "'a b 1 2'"),
        ("a b\n" + "x" * 2000 + " b\n", 2, "longer than 1024", "xxx"),
        (b"a b\nc \xff\xfe\n", 2, "UTF-8", "xff"),
    ],
)
def test_a_bad_line_is_named_with_its_number_the_rule_and_the_value(write, text, line, rule, value):
    path = write(text)
    with pytest.raises(FormatError) as caught:
        read_graph(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert rule in message
    assert value in message


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        ("a,b\n,c\n", 2, "must not be empty"),
        ('a,b\n"c,d\n', 2, "quotation mark must be closed"),
        ("source,target,weight\na,b,1\nb,c,x\n", 3, "must be a number"),
        (b"source,target\na,b\nb,\xff\n", 3, "UTF-8"),
    ],
)
def test_a_bad_line_of_csv_is_named(write, text, line, rule):
    with pytest.raises(FormatError, match=rule) as caught:
        read_graph(write(text, "g.csv"))
    assert f"g.csv:{line}:" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "name", "rule"),
    [
        (b"", "g.txt", "but is empty"),
        (b"# only a comment\n", "g.txt", "at least two nodes"),
        (b"a a\n", "g.txt", "at least two nodes"),
        (b"a b\x00\n", "g.txt", "must be text"),
        (gzip.compress(b"a b\n" * 1000, mtime=0)[:-20], "g.cut.gz", "format"),
    ],
)
def test_a_bad_file_is_named(write, data, name, rule):
    with pytest.raises(ManelaError, match=rule) as caught:
        read_graph(write(data, name))
    assert name in str(caught.value)


def test_a_gzip_file_that_is_cut_off_is_named(tmp_path):
    path = tmp_path / "g.txt.gz"
    path.write_bytes(gzip.compress(np.random.default_rng(0).bytes(5000).hex().encode())[:-20])
    with pytest.raises(FormatError, match="damaged or cut off"):
        read_graph(path)


names = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), min_size=1, max_size=8).filter(
    lambda name: name[0] not in "#%" and not set(name) & set(',;"')
)


@pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")
@given(st.lists(st.tuples(names, names, st.floats(1e-9, 1e9)), min_size=1, max_size=40))
def test_what_is_written_is_read_back(tmp_path_factory, edges):
    edges = [("start", "end", 1.0), *edges]
    path = tmp_path_factory.mktemp("edges") / "g.tsv"
    path.write_text("".join(f"{u}\t{v}\t{w!r}\n" for u, v, w in edges), encoding="utf-8")
    graph = read_graph(path)
    wanted = {}
    for u, v, w in edges:
        if u != v:
            wanted[frozenset((u, v))] = wanted.get(frozenset((u, v)), 0) + w
    found = edges_of(graph)
    assert set(found) == set(wanted)
    if graph.is_weighted:
        assert found == pytest.approx(wanted)


@given(
    st.binary(max_size=300) | st.text('ab01 ,;\t\r\n"#%.-+e', max_size=300).map(str.encode),
    st.sampled_from(["g.txt", "g.csv", "g.tsv", "g.adjlist", "g.txt.gz", "g.mat", "g.npz", "g.gml", "g.graphml"]),
)
def test_no_bytes_make_a_reader_fail_other_than_by_our_errors(tmp_path_factory, data, name):
    path = tmp_path_factory.mktemp("fuzz") / name
    path.write_bytes(data)
    try:
        graph = read_graph(path)
    except ManelaError as error:
        assert str(path) in str(error)
        assert "\n" not in str(error)
    else:
        assert graph.number_of_edges > 0


@given(st.binary(max_size=200), st.integers(0, 60))
def test_no_damage_to_a_gzip_file_makes_the_reader_fail_other_than_by_our_errors(tmp_path_factory, noise, cut):
    path = tmp_path_factory.mktemp("fuzz") / "g.txt.gz"
    whole = gzip.compress(b"a b\nb c\n" * 50)
    path.write_bytes(whole[: len(whole) - cut] + noise)
    try:
        read_graph(path)
    except ManelaError as error:
        assert str(path) in str(error)


def test_a_long_edge_list_of_strings_is_the_network_that_was_written(tmp_path):
    rng = np.random.default_rng(0)
    ends = rng.integers(50_000, size=(200_000, 2))
    path = tmp_path / "long.txt"
    path.write_text("".join(f"user-{u} user-{v}\n" for u, v in ends.tolist()))
    graph = read_graph(path, duplicates="first")
    wanted = {(min(u, v), max(u, v)) for u, v in ends.tolist() if u != v}
    assert graph.number_of_edges == len(wanted)
    u, v = next(iter(wanted))
    assert f"user-{v}" in graph.neighbours(f"user-{u}")


def pack(data, ending, path):
    if ending == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inside.csv", data)
    elif ending == ".zst":
        with pyarrow.output_stream(str(path), compression="zstd") as stream:
            stream.write(data)
    else:
        path.write_bytes({".gz": gzip, ".bz2": bz2, ".xz": lzma}[ending].compress(data))


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst", ".zip"])
def test_packed_files_are_read_and_cut_ones_told(tmp_path, ending):
    path = tmp_path / f"edges.csv{ending}"
    lines = [f"node {i},node {(7 * i + 1) % 500}" for i in range(500)]
    pack("\n".join(lines).encode(), ending, path)
    assert read_graph(path, duplicates="first").number_of_nodes == 500
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(FormatError, match="damaged or cut off"):
        read_graph(path)


def test_a_zip_must_hold_one_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "two.csv.zip", "w") as archive:
        archive.writestr("a.csv", "1,2")
        archive.writestr("b.csv", "2,3")
    with pytest.raises(FormatError, match="must hold one file, but holds 2"):
        read_graph(tmp_path / "two.csv.zip")


def test_edge_lists_of_networkx_are_read_as_it_writes_them(tmp_path):
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=4)
    graph.add_edge(1, 2, weight=2.5, colour="a b {c}")
    nx.write_edgelist(graph, tmp_path / "w.edgelist")
    assert edges_of(read_graph(tmp_path / "w.edgelist")) == {frozenset((0, 1)): 4.0, frozenset((1, 2)): 2.5}
    nx.write_edgelist(nx.path_graph(3), tmp_path / "p.edgelist")
    found = read_graph(tmp_path / "p.edgelist")
    assert (found.nodes.tolist(), found.is_weighted) == ([0, 1, 2], False)
    (tmp_path / "bad.edgelist").write_text("0 1 {'weight': 4}\n1 2 {'weight': __import__('os')}\n")
    with pytest.raises(FormatError, match=r"bad.edgelist:2: attributes must be a dict"):
        read_graph(tmp_path / "bad.edgelist")


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("old mac.csv", "source,target\ra,b\rb,c\r", None),
        ("commas.edgelist", "a,b,{'weight': 1}\nb,c,{'weight': 1}\n", None),
        ("named.csv", "person,friend\na,b\nb,c\n", ["person", "friend"]),
        ("case.csv", "Person,Friend\na,b\nb,c\n", ["person", "friend"]),
    ],
)
def test_ways_that_were_misread_are_read_right(write, name, text, columns):
    assert edges_of(read_graph(write(text, name), columns=columns)) == {frozenset("ab"): 1.0, frozenset("bc"): 1.0}


def test_a_weight_that_is_named_and_not_there_is_told(write):
    with pytest.raises(FormatError, match="3 columns or more"):
        read_graph(write("1,2\n2,3\n", "g.csv"), columns=["1", "2", "3"])
    with pytest.raises(FormatError, match="3 columns or more"):
        read_graph(write("source,target,weight\n1,2\n2,3\n", "g.csv"))


def test_tabs_separate_fields_with_blanks(write):
    assert read_graph(write("San Jose\tNew York\nNew York\tRome\n")).nodes.tolist() == ["San Jose", "New York", "Rome"]


RING = [
    f"{name} {other}" for name, other in zip("abcdefghijklmnopqrstuvwxyz", "bcdefghijklmnopqrstuvwxyza", strict=True)
]


def test_a_header_of_unknown_words_is_one_if_no_other_of_many_lines_is_like_it(write):
    with pytest.warns(ManelaWarning) as caught:
        graph = read_graph(write("\n".join(["employee manager", *RING])))
    assert graph.number_of_nodes == 26
    [alone, ends] = [str(warning.message) for warning in caught]
    assert "the first line, 'employee manager', was read as a header" in alone
    assert alone.endswith("if it is an edge, add one above")
    assert "using columns employee and manager" in ends


def test_with_few_lines_it_is_an_edge_and_a_warning_says_how_it_becomes_a_header(write):
    path = write("\n".join(["employee manager", *RING[:5]]))
    with pytest.warns(ManelaWarning, match="an edge; if it is a header, pass columns with its names, such as empl"):
        assert read_graph(path).number_of_nodes == 8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManelaWarning)
        assert read_graph(path, columns=["employee", "manager"]).number_of_nodes == 6


def test_an_edge_whose_node_comes_late_is_no_header(write):
    middle = RING * 60
    path = write("\n".join(["employee manager", *middle, "a employee"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ManelaWarning)
        warnings.filterwarnings("ignore", "[0-9,]+ repeated edge", ManelaWarning)
        assert read_graph(path).number_of_nodes == 28


def test_where_semicolons_separate_a_weight_may_have_a_decimal_comma(write):
    with pytest.warns(ManelaWarning, match="Betrag as weight"):
        graph = read_graph(write('Kunde;Lieferant;Betrag\na;b;398,63\nb;c;1\nc;d;2.5\nd;e;"7,25"\n', "g.csv"))
    assert edges_of(graph) == {
        frozenset("ab"): 398.63, frozenset("bc"): 1.0, frozenset("cd"): 2.5, frozenset("de"): 7.25
    }  # fmt: skip


@pytest.mark.parametrize("weight", ["1.000,50", "1,2,3", ","])
def test_a_weight_with_two_points_or_none_is_an_error_with_semicolons_too(write, weight):
    with pytest.raises(FormatError, match=f":2: a weight must be a number, got '{weight}'"):
        read_graph(write(f"a;b;1\nb;c;{weight}\n", "g.csv"))


def test_what_is_no_utf_8_and_no_text_at_all_is_named(write, tmp_path):
    with pytest.raises(FormatError, match="must be UTF-8 text, got .*; save the file as UTF-8"):
        read_graph(write("a,Jörg\n".encode("latin-1"), "g.csv"))
    with zipfile.ZipFile(tmp_path / "book.xlsx", "w") as book:
        book.writestr("[Content_Types].xml", "")
        book.writestr("xl/workbook.xml", "")
    with pytest.raises(FormatError, match="is an Excel workbook; save the sheet with the edges as CSV"):
        read_graph(tmp_path / "book.xlsx")
