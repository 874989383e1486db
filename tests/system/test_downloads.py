"""What is copied within a limit; downloads from real servers are tested with data sets and input files."""

import io

import pytest

from manela.system.downloads import DownloadError, TooLongError, copy_stream


def test_a_stream_is_continued_where_a_file_ends(tmp_path):
    told = []
    (tmp_path / "part").write_bytes(b"abc and more")
    copy_stream(
        io.BytesIO(b"def"), tmp_path / "part", limit=12, size=12, start=9, progress=lambda *seen: told.append(seen)
    )
    assert (tmp_path / "part").read_bytes() == b"abc and mdef"
    assert told == [(12, 12)]


def test_more_than_the_limit_or_less_than_the_size_is_refused(tmp_path):
    with pytest.raises(TooLongError):
        copy_stream(io.BytesIO(b"x" * 9), tmp_path / "long", limit=8)
    with pytest.raises(TooLongError):
        copy_stream(io.BytesIO(b""), tmp_path / "announced", limit=8, size=9)
    with pytest.raises(DownloadError, match="ended after 3 of 4 bytes"):
        copy_stream(io.BytesIO(b"abc"), tmp_path / "short", limit=8, size=4)
    copy_stream(io.BytesIO(b"x" * 8), tmp_path / "whole", limit=8)
    assert (tmp_path / "whole").stat().st_size == 8
