"""The flags of sources: what they build, and where secrets come from."""

import os
import shutil
import sqlite3

import pytest

from manela.cli.import_ import BUILDERS


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "social.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE payments (payer, payee, amount)")
    connection.executemany("INSERT INTO payments VALUES (?, ?, ?)", [("ann", "bob", 2), ("bob", "cem", 1)])
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"


@pytest.mark.parametrize("name", BUILDERS)
def test_every_source_has_help(manela_here, name):
    done = manela_here("import", name, "--help")
    assert done.returncode == 0
    assert "--output" in done.stdout


def test_a_query_becomes_a_file_of_edges(manela_here, database, tmp_path):
    done = manela_here(
        "import", "sql", database, "--query", "SELECT payer, payee, amount FROM payments", "-o", tmp_path / "edges.csv"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "edges.csv").read_text() == "source,target,weight\nann,bob,2\nbob,cem,1\n"


def test_a_password_in_a_url_is_refused_in_a_line(manela_here, tmp_path):
    done = manela_here("import", "sql", "postgresql://a:xyzzy@db/x", "--query", "SELECT 1, 2", "-o", tmp_path / "e.csv")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "MANELA_SECRET" in done.stderr
    assert "xyzzy" not in done.stderr


def test_a_secret_is_taken_from_a_file_or_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("MANELA_SECRET", "from the environment")
    assert BUILDERS["sql"]("postgresql://a@db/x", "SELECT 1, 2").secret == "from the environment"
    (tmp_path / "secret").write_text("from a file\n")
    (tmp_path / "secret").chmod(0o600)
    assert BUILDERS["neo4j"]("bolt://db", secret_file=tmp_path / "secret").secret == "from a file"


def test_an_api_without_a_token_says_where_to_make_one(manela_here, monkeypatch, tmp_path):
    monkeypatch.delenv("MANELA_SECRET", raising=False)
    done = manela_here("import", "mastodon-api", "https://example.org", "-o", tmp_path / "e.csv")
    assert done.returncode == 2
    assert "Development" in done.stderr


def test_rdf_files_become_a_file_of_edges(manela_here, tmp_path):
    (tmp_path / "a.nt").write_text(
        "<http://a/1> <http://a/knows> <http://a/2> .\n<http://a/1> <http://a/x> <http://a/3> .\n"
    )
    arguments = ["--predicate", "http://a/knows", "-o", tmp_path / "edges.csv"]
    assert manela_here("import", "rdf", tmp_path / "a.nt", *arguments).returncode == 0
    assert (tmp_path / "edges.csv").read_text().splitlines()[1:] == ["http://a/1,http://a/2,1"]


def test_names_of_keys_are_one_of_two(manela_here, tmp_path):
    done = manela_here("import", "gpg", "--names", "face", "-o", tmp_path / "e.csv")
    assert done.returncode == 2
    assert "email or key, got 'face'" in done.stderr


@pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")
def test_a_folder_without_a_key_ring_stays_empty(manela_here, tmp_path):
    (tmp_path / "ring").mkdir(mode=0o700)
    done = manela_here("import", "gpg", "--homedir", tmp_path / "ring", "-o", tmp_path / "e.csv")
    assert done.returncode == 2
    assert "does not hold a key ring" in done.stderr
    assert list((tmp_path / "ring").iterdir()) == []


LETTER = "From x Mon Nov 16 10:00:00 2026\nMessage-ID: <1@x>\nFrom: ann@example.org\nTo: bob@x.net\n\nhello\n"


@pytest.fixture
def box(tmp_path):
    (tmp_path / "box").write_text(LETTER)
    return tmp_path / "box"


@pytest.mark.parametrize(("output", "state"), [("box", None), ("edges.csv", "box"), ("edges.csv", "edges.csv")])
def test_what_is_read_is_not_overwritten(box, tmp_path, manela_here, output, state):
    options = [] if state is None else ["--state", tmp_path / state]
    done = manela_here("import", "mail", box, "--domain", "example.org", "-o", tmp_path / output, *options)
    assert done.returncode == 2
    assert "name another file" in done.stderr
    assert box.read_text() == LETTER


def test_a_pipe_is_not_replaced_by_a_file(box, tmp_path, manela_here):
    os.mkfifo(tmp_path / "pipe")
    done = manela_here("import", "mail", box, "--domain", "example.org", "-o", tmp_path / "pipe")
    assert done.returncode == 2
    assert "not a regular file" in done.stderr
    assert (tmp_path / "pipe").is_fifo()


def test_edges_go_to_standard_output(box, manela_here):
    done = manela_here("import", "mail", box, "--domain", "example.org", "-o", "-", "--half-life", 0)
    assert done.stdout == "source,target,weight\nann@example.org,bob@x.net,1\n"
    assert "1 messages in 1 mailbox" in done.stderr
