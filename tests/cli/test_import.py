import os

import pytest

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
