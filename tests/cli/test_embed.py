"""manela embed with a map; what else it does is in test_main.py."""

import re

import pytest

from manela.formats.embeddings import read_embedding

SMALL = ("--dimensions", "8", "--pairs", "2000", "--rounds", "3")


@pytest.fixture
def network(tmp_path):
    file = tmp_path / "friends.csv"
    file.write_text("".join(f"p{i},p{(i + step) % 12}\n" for i in range(12) for step in (1, 3)))
    return file


def find_data(page, part):
    return re.search(f'id="{part}">([^<]+)<', page)[1]


def test_vectors_and_a_map_with_links_come_from_one_command(network, tmp_path, manela_here):
    done = manela_here("embed", network, "-o", tmp_path / "v.npz", "--map", tmp_path / "map.html", *SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(read_embedding(tmp_path / "v.npz")) == 12
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert "<title>Map of friends.csv</title>" in page
    assert manela_here("map", tmp_path / "v.npz", "-o", tmp_path / "2.html", "--edges", network).returncode == 0
    other = (tmp_path / "2.html").read_text(encoding="utf-8")
    for part in ("data-picture", "data-links", "data-names"):
        assert find_data(page, part) == find_data(other, part)


def test_a_map_is_only_estimated_with_a_dry_run(network, tmp_path, manela_here):
    done = manela_here("embed", network, "--dry-run", "--map", tmp_path / "map.html")
    assert done.returncode == 0
    assert not (tmp_path / "map.html").exists()


@pytest.mark.parametrize(("page", "words"), [("map.png", "must end in .html"), ("no/map.html", "no")])
def test_a_map_that_cannot_be_written_is_refused_before_learning(network, tmp_path, manela_here, page, words):
    done = manela_here("embed", network, "-o", tmp_path / "v.npz", "--map", tmp_path / page, *SMALL)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "v.npz").exists()


def test_a_map_of_edges_from_standard_input_is_named_after_the_vectors(network, tmp_path, manela):
    with network.open() as edges:
        done = manela("embed", "-", "-o", tmp_path / "v.npz", "--map", tmp_path / "map.html", *SMALL, stdin=edges)
    assert done.returncode == 0, done.stderr
    assert "<title>Map of v.npz</title>" in (tmp_path / "map.html").read_text(encoding="utf-8")
