"""Where networks come from: files, pipes and addresses."""

import gzip
import os
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import pytest

from manela.errors import FormatError, ParameterError
from manela.formats.graphs import read_graph
from manela.formats.input_file import sniff

EDGES = b"ann bob\nbob cem\n"


@contextmanager
def serving(content, told=None, status=200):
    """A server that answers everything with this, and tells its length or another."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            if told is not False:
                self.send_header("Content-Length", str(len(content) if told is None else told))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("told", [None, False])
def test_an_address_is_downloaded_with_progress(told):
    content = gzip.compress(EDGES)
    seen = []
    with serving(content, told) as address:
        graph = read_graph(f"{address}/edges.txt.gz?token=1", progress=lambda have, size: seen.append((have, size)))
    assert graph.nodes.tolist() == ["ann", "bob", "cem"]
    assert seen[-1] == (len(content), len(content))
    assert seen[0][1] == (0 if told is False else len(content))


@pytest.mark.parametrize(
    ("told", "status", "limit", "words"),
    [
        (None, 404, 1.0, "Not Found"),
        (None, 200, 1e-9, "must not be longer than 1e-09 GB"),
        (False, 200, 1e-9, "must not be longer than 1e-09 GB"),
        (10**12, 200, 1.0, "must not be longer than 1 GB"),
        (1000, 200, 1.0, "ended after 16 of 1,000 bytes|cannot be read"),
    ],
)
def test_what_cannot_be_downloaded_is_one_line_with_the_address(told, status, limit, words):
    with serving(EDGES, told, status) as address, pytest.raises(FormatError, match=words) as caught:
        read_graph(f"{address}/edges.txt", size_limit=limit)
    assert str(caught.value).startswith(address)
    assert len(str(caught.value).splitlines()) == 1


def test_nobody_there_and_nothing_known_are_one_line():
    with pytest.raises(FormatError, match="cannot be read"):
        read_graph("http://127.0.0.1:1/edges.txt")
    with pytest.raises(FormatError, match="cannot be read"):
        read_graph("nonsense://somewhere/edges.txt")
    with pytest.raises(FormatError, match="cannot be read: Invalid IPv6 URL"):
        read_graph("http://[::1")


def test_what_fsspec_knows_is_read():
    with fsspec.open("memory://folder/edges.txt", "wb") as file:
        file.write(EDGES)
    assert read_graph("memory://folder/edges.txt").number_of_edges == 2


def test_a_pipe_is_read_as_process_substitution_gives_it():
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(gzip.compress(EDGES))
    try:
        assert read_graph(f"/dev/fd/{read}").number_of_edges == 2
    finally:
        os.close(read)


def test_little_that_unpacks_to_much_is_refused(tmp_path):
    path = tmp_path / "bomb.txt.gz"
    path.write_bytes(gzip.compress(b"a b\n" * 1_000_000))
    with pytest.raises(FormatError, match="0.001 GB unpacked"):
        read_graph(path, size_limit=0.001)
    assert read_graph(path, duplicates="first").number_of_edges == 1


def test_standard_input_and_output_of_the_command(manela, tmp_path):
    done = manela("embed", "-", "-o", "-", "--dimensions", "4", "--quiet", input="ann bob\nbob cem\ncem ann\n")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "node,d0,d1,d2,d3"
    assert [line.partition(",")[0] for line in lines[1:]] == ["ann", "bob", "cem"]


def test_formats_are_recognised_by_how_files_begin():
    assert sniff(b"<?xml version='1.0'?><graphml>") == ".graphml"
    assert sniff(b"# comment\n1\t2\n2\t3\n") == ".tsv"
    assert sniff(b"a b c d\n1 2\n") == ""
    assert sniff(b"\x00\x01\x02") == ""
    assert sniff(b"") == ""


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
def test_a_limit_that_is_none_is_refused(tmp_path, limit):
    (tmp_path / "g.txt").write_bytes(EDGES)
    with pytest.raises(ParameterError, match="size_limit must be above 0 GB"):
        read_graph(tmp_path / "g.txt", size_limit=limit)


def test_nothing_at_all_is_called_empty():
    with pytest.raises(FormatError, match="/dev/null: must hold a network, but is empty"):
        read_graph("/dev/null")
