"""Archives: found, read in place, and refused when they are bombs or damaged."""

import gzip
import io
import tarfile
import zipfile

import pytest

from manela.errors import SourceError
from manela.sources import mastodon_archive as archive
from manela.sources.mastodon_archive import Archive


def read(path, name="a.json"):
    with Archive(path).open_member(name) as file:
        if file is None:
            return None
        data = b""
        while block := file.read(1 << 16):
            data += block
        return data


def make_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return path


def make_tar(path, members):
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as packed:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
    return path


MEMBERS = {"media/a.json/x": b"no", "export/a.json": b"yes", "deep/er/b.json": b"no"}


def test_a_member_is_found_in_every_kind_of_archive(tmp_path):
    (tmp_path / "a.json").write_bytes(b"yes")
    places = [
        tmp_path, make_zip(tmp_path / "a.zip", MEMBERS), make_tar(tmp_path / "a.tar.gz", MEMBERS),
        make_tar(tmp_path / "a.tar", MEMBERS),
    ]  # fmt: skip
    for place in places:
        assert read(place) == b"yes"
        assert read(place, "b.json") is None
        assert read(place, "missing.json") is None


def test_nothing_is_unpacked_to_disk(tmp_path):
    make_zip(tmp_path / "a.zip", {"../../evil": b"x", "a.json": b"yes"})
    assert read(tmp_path / "a.zip") == b"yes"
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize("kind", ["a.zip", "a.tar.gz"])
def test_a_bomb_is_refused_when_it_has_grown_too_much(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(archive, "_FREE_BYTES", 1 << 20)
    bomb = {"a.json": b"\0" * (1 << 26)}
    path = make_zip(tmp_path / kind, bomb) if kind == "a.zip" else make_tar(tmp_path / kind, bomb)
    with pytest.raises(SourceError, match="200 times"):
        read(path)


def test_a_bomb_before_the_file_is_refused_too(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_FREE_BYTES", 1 << 20)
    with pytest.raises(SourceError, match="200 times"):
        read(make_tar(tmp_path / "a.tar.gz", {"media.png": b"\0" * (1 << 26), "a.json": b"yes"}))


def test_archives_of_too_many_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_MOST_MEMBERS", 3)
    members = {f"{number}": b"" for number in range(9)}
    for path in (make_zip(tmp_path / "a.zip", members), make_tar(tmp_path / "a.tar", members)):
        with pytest.raises(SourceError, match="at most 3 files"):
            read(path)
    four = {"1": b"", "2": b"", "3": b"", "a.json": b"yes"}
    for path in (make_zip(tmp_path / "b.zip", four), make_tar(tmp_path / "b.tar", four)):
        with pytest.raises(SourceError, match="at most 3 files"):
            read(path)


def damaged(data):
    return data[:40] + bytes(byte ^ 0x55 for byte in data[40:])


@pytest.mark.parametrize(
    "change", [damaged, lambda data: data[: len(data) // 2], lambda data: b"nonsense", lambda _: b""]
)
@pytest.mark.parametrize("kind", ["a.zip", "a.tar.gz"])
def test_damaged_archives_are_told_in_a_line(tmp_path, change, kind):
    import random

    members = {"a.json": random.Random(0).randbytes(50_000)}
    path = make_zip(tmp_path / kind, members) if kind == "a.zip" else make_tar(tmp_path / kind, members)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(SourceError, match=r"cannot be read|200 times") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_gzip_that_is_no_tar_is_told_in_a_line(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(b"nonsense" * 1000))
    with pytest.raises(SourceError, match="cannot be read"):
        read(tmp_path / "a.tar.gz")


def test_an_encrypted_zip_is_told_in_a_line(tmp_path):
    data = bytearray(make_zip(tmp_path / "a.zip", {"a.json": b"yes"}).read_bytes())
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(SourceError, match="cannot be read.*encrypted"):
        read(tmp_path / "a.zip")
