"""What Mastodon exports for a person, in all the forms in which people have it."""

import gzip
import io
import json
import tarfile
import zipfile
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_cases import ACTOR, ARCHIVE_EDGES, FOLLOWING, OUTBOX

from manela.errors import SourceError
from manela.sources import mastodon_archive
from manela.sources.mastodon_archive import Archive, MastodonArchiveSource, read_items
from manela.sources.state import ImportState

ANN, BOB, CEM, DAN = "ann@home.example", "bob@other.example", "cem@home.example", "dan@home.example"


def edges(path, owner=None):
    source = MastodonArchiveSource(path, owner)
    with ImportState(None, source.key) as state:
        return {
            edge for batch in source.read(state) for edge in zip(batch.own, batch.other, batch.weights, strict=True)
        }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "outbox.json").write_text(json.dumps(OUTBOX))
    (tmp_path / "actor.json").write_text(json.dumps(ACTOR))
    (tmp_path / "following_accounts.csv").write_text(FOLLOWING)
    return tmp_path


def test_follows_mentions_and_boosts_add_up(folder):
    source = MastodonArchiveSource(folder)
    with ImportState(None, source.key) as state:
        list(source.read(state))
    assert edges(folder) == ARCHIVE_EDGES
    assert source.describe().startswith("2 follows, 2 mentions, 1 boosts; 2 of accounts")


def test_a_tar_as_older_servers_export_it_is_read(folder):
    with tarfile.open(folder / "archive.tar.gz", "w:gz") as packed:
        for name in ("outbox.json", "actor.json", "following_accounts.csv"):
            packed.add(folder / name, name)
    assert edges(folder / "archive.tar.gz") == ARCHIVE_EDGES


def test_a_single_file_is_enough(folder):
    assert edges(folder / "following_accounts.csv", "@Ann@home.example") == {(ANN, BOB, 1.0), (ANN, DAN, 1.0)}
    assert edges(folder / "outbox.json") == {(ANN, BOB, 2.0), (ANN, CEM, 1.0)}


def test_the_owner_is_the_actor_of_the_outbox_where_there_is_no_actor_file(folder):
    (folder / "actor.json").unlink()
    assert edges(folder) == ARCHIVE_EDGES


def test_whose_archive_it_is_must_be_known(folder):
    (folder / "actor.json").unlink()
    (folder / "outbox.json").unlink()
    with pytest.raises(SourceError, match="owner='name@host'"):
        edges(folder)
    with pytest.raises(SourceError, match="name@host, got 'ann'"):
        edges(folder, "ann")


def test_a_list_of_follows_without_names_of_columns_is_read(folder):
    (folder / "following_accounts.csv").write_text("\ufeffbob@other.example\n\n@\n")
    assert edges(folder / "following_accounts.csv", ANN) == {(ANN, BOB, 1.0)}


def test_a_folder_without_an_export_is_told(tmp_path):
    with pytest.raises(SourceError, match="has neither"):
        edges(tmp_path, ANN)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("actor.json", b"{"),
        ("actor.json", b"[" * 100_000),
        ("actor.json", b"\xff"),
        ("outbox.json", b"{}"),
        ("outbox.json", b'{"orderedItems": ['),
        ("following_accounts.csv", b"x" * 100_000),
    ],
)
def test_damaged_files_are_told_in_a_line(folder, name, data):
    (folder / name).write_bytes(data)
    with pytest.raises(SourceError) as caught:
        edges(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "activity",
    [
        None, 7, [], {"type": "Create"}, {"type": "Create", "object": []}, {"type": "Create", "object": {"tag": {}}},
        {"type": "Create", "object": {"tag": [None, {"type": "Mention"}, {"type": "Mention", "name": []}]}},
        {"type": "Announce", "object": {"id": []}}, {"type": ["Create"]}, {"type": "Delete", "object": "x"},
    ],
)  # fmt: skip
def test_odd_activities_are_passed_over(folder, activity):
    outbox = {**OUTBOX, "orderedItems": [activity, *OUTBOX["orderedItems"]]}
    (folder / "outbox.json").write_text(json.dumps(outbox))
    assert edges(folder) == ARCHIVE_EDGES


def test_an_actor_file_that_fills_memory_and_too_many_accounts_are_refused(folder, monkeypatch):
    monkeypatch.setattr(mastodon_archive, "_MOST_ACCOUNTS", 1)
    with pytest.raises(SourceError, match="at most 1 accounts"):
        edges(folder)
    (folder / "actor.json").write_bytes(b" " * ((1 << 22) + 1))
    with pytest.raises(SourceError, match="at most 4,194,304 bytes"):
        edges(folder)


def test_reading_does_not_hold_an_outbox_in_memory(tmp_path):
    import tracemalloc

    note = json.dumps({**OUTBOX["orderedItems"][0], "padding": "x" * 2000})
    with (tmp_path / "outbox.json").open("w") as file:
        file.write('{"orderedItems": [')
        file.write(", ".join([note] * 10_000))
        file.write("]}")
    size = (tmp_path / "outbox.json").stat().st_size
    tracemalloc.start()
    assert edges(tmp_path) == {(ANN, BOB, 10_000.0), (ANN, CEM, 10_000.0)}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 2


def test_a_file_that_unpacks_to_much_is_refused_by_whoever_reads_it():
    assert io.BufferedReader(mastodon_archive.Bounded(io.BytesIO(b"abc"), 3, "x")).read() == b"abc"
    endless = mastodon_archive.Bounded(io.BytesIO(bytes(1 << 25)), 3, "x")
    with pytest.raises(SourceError, match="^x: unpacks to more than 200 times its size"):
        io.BufferedReader(endless).read()


def read(path, name="a.json", **options):
    with Archive(path, **options).open_member(name) as file:
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
def test_a_bomb_is_refused_when_it_has_grown_too_much(tmp_path, kind):
    bomb = {"a.json": b"\0" * (1 << 26)}
    path = make_zip(tmp_path / kind, bomb) if kind == "a.zip" else make_tar(tmp_path / kind, bomb)
    with pytest.raises(SourceError, match="200 times"):
        read(path, free_bytes=1 << 20)


def test_a_bomb_before_the_file_is_refused_too(tmp_path):
    with pytest.raises(SourceError, match="200 times"):
        read(make_tar(tmp_path / "a.tar.gz", {"media.png": b"\0" * (1 << 26), "a.json": b"yes"}), free_bytes=1 << 20)


def test_archives_of_too_many_files_are_refused(tmp_path):
    members = {f"{number}": b"" for number in range(9)}
    for path in (make_zip(tmp_path / "a.zip", members), make_tar(tmp_path / "a.tar", members)):
        with pytest.raises(SourceError, match="at most 3 files"):
            read(path, most_members=3)
    four = {"1": b"", "2": b"", "3": b"", "a.json": b"yes"}
    for path in (make_zip(tmp_path / "b.zip", four), make_tar(tmp_path / "b.tar", four)):
        with pytest.raises(SourceError, match="at most 3 files"):
            read(path, most_members=3)


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


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(values, max_size=8), st.integers(1, 9), st.booleans())
def test_items_are_those_of_the_list_wherever_blocks_end(items, block, indented):
    data = json.dumps({"a": [1], "items": items, "b": 2}, ensure_ascii=False, indent=1 if indented else None)
    read = list(read_items(io.BytesIO(data.encode(errors="replace")), "items", "file", block))
    assert read == json.loads(data.encode(errors="replace"), parse_float=Decimal)["items"]


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b'{"items": 3}', b'{"items": [', b'{"items": [1, 2', b'{"items": [{"a": }]}', b"\xff\xfe", b"[" * 99],
)
def test_what_is_no_list_is_told_in_a_line(data):
    with pytest.raises(SourceError, match="^file: "):
        list(read_items(io.BytesIO(data), "items", "file"))


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_items_are_refused(opening):
    with pytest.raises(SourceError, match="^file: an item must have at most 100 levels"):
        list(read_items(io.BytesIO(b'{"items": [' + opening * 200_000), "items", "file"))


def test_the_same_key_inside_an_item_is_no_list_of_items():
    data = b'{"first": {"items": [7]}, "a": [{"items": [8]}], "items": [{"items": [9]}]}'
    assert list(read_items(io.BytesIO(data), "items", "file")) == [{"items": [9]}]


@pytest.mark.parametrize("before", [b'{"items": ["', b'{"', b'{"a": ["', b'{"items": [{"a": "'])
def test_long_items_are_refused_before_they_are_in_memory(before):
    class Endless:
        given = 0

        def read(self, size):
            if size == 0:  # ijson asks for nothing to see the type
                return b""
            data = b"x" * size if self.given else before
            self.given += len(data)
            return data

    endless = Endless()
    with pytest.raises(SourceError, match=r"^file: an item must have at most 4,194,304 bytes"):
        list(read_items(endless, "items", "file"))
    assert endless.given < 5_000_000


def test_many_items_are_longer_together_than_one_may_be():
    data = b'{"items": [' + b",".join([b'"' + b"x" * 100_000 + b'"'] * 100) + b"]}"
    assert len(list(read_items(io.BytesIO(data), "items", "file"))) == 100
