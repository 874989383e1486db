"""What Mastodon exports for a person, in all the forms in which people have it."""

import io
import json
import tarfile

import pytest
from source_cases import ACTOR, ARCHIVE_EDGES, FOLLOWING, OUTBOX

from manela.errors import SourceError
from manela.sources import mastodon_archive
from manela.sources.mastodon_archive import MastodonArchiveSource
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
    monkeypatch.setattr(mastodon_archive, "_MOST_ACTOR_BYTES", 10)
    with pytest.raises(SourceError, match="at most 10 bytes"):
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
    assert io.BufferedReader(mastodon_archive._Bounded(io.BytesIO(b"abc"), 3, "x")).read() == b"abc"
    endless = mastodon_archive._Bounded(io.BytesIO(bytes(1 << 25)), 3, "x")
    with pytest.raises(SourceError, match="^x: unpacks to more than 200 times its size"):
        io.BufferedReader(endless).read()
