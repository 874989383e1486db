import mailbox
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from manela.errors import ParameterError, SourceError
from manela.sources.mail import MailSource
from manela.sources.source import import_to_file
from manela.sources.state import ImportState

TODAY = 20_773  # 2026-11-16


def letter(sender, recipients, identity, date="16 Nov 2026 10:00:00 +0000", more=""):
    return (
        f"From {sender} Mon Nov 16 10:00:00 2026\nMessage-ID: <{identity}@x>\nDate: Mon, {date}\nFrom: {sender}\n"
        f"To: {recipients}\n{more}Subject: secret plans\n\nsecret body\n\n"
    )


def edges_of(source, path=None):
    with ImportState(path, source.key) as state:
        found = {}
        for batch in source.read(state):
            found |= dict(zip(zip(batch.own, batch.other, strict=True), batch.weights.tolist(), strict=True))
            if path is not None:
                state.add(batch, True)
        if path is not None:
            state.commit()
        return found


def source_of(path, **settings):
    return MailSource([path], ["example.org"], today=TODAY, **settings)


def test_correspondents_are_counted_both_ways_and_own_ones_come_first(tmp_path):
    box = tmp_path / "box"
    box.write_text(
        letter("anna@example.org", "bob@other.net, carl@example.org", 1)
        + letter("bob@other.net", "Anna <anna@example.org>", 2)
        + letter("bob@other.net", "dora@third.net", 3)
        + letter("carl@example.org", "anna@example.org, carl@example.org", 4)
    )
    assert edges_of(source_of(box)) == {
        ("anna@example.org", "bob@other.net"): 2.0,
        ("anna@example.org", "carl@example.org"): 2.0,
    }


def test_a_message_counts_once_however_many_mailboxes_hold_it(tmp_path):
    one = letter("anna@example.org", "bob@other.net", 1)
    (tmp_path / "inbox").write_text(one + one)
    box = mailbox.Maildir(tmp_path / "sent")
    box.add(one.split("\n", 1)[1])
    source = source_of(tmp_path)
    assert edges_of(source) == {("anna@example.org", "bob@other.net"): 1.0}
    assert source.describe() == "1 messages in 2 mailboxes; left out: 2 counted before"


def test_old_messages_count_less(tmp_path):
    (tmp_path / "box").write_text(
        letter("anna@example.org", "new@x.net", 1)
        + letter("anna@example.org", "old@x.net", 2, "20 May 2026 10:00:00 +0000")
        + letter("anna@example.org", "future@x.net", 3, "20 May 2099 10:00:00 +0000")
        + letter("anna@example.org", "undated@x.net", 4, "nonsense")
    )
    found = edges_of(source_of(tmp_path / "box"))
    weights = {other: weight for (_, other), weight in found.items()}
    assert weights["new@x.net"] == weights["future@x.net"] == weights["undated@x.net"] == 1.0
    np.testing.assert_allclose(weights["old@x.net"], 0.5, rtol=1e-3)
    alike = edges_of(source_of(tmp_path / "box", half_life=0.0))
    assert set(alike.values()) == {1.0}


@pytest.mark.parametrize(
    "header",
    ["List-Id: <friends.x.net>\n", "Precedence: bulk\n", "Auto-Submitted: auto-replied\n", "list-unsubscribe: <x>\n"],
)
def test_lists_and_machines_are_left_out(tmp_path, header):
    (tmp_path / "box").write_text(
        letter("anna@example.org", "bob@x.net", 1, more=header) + letter("no-reply@example.org", "bob@x.net", 2)
    )
    source = source_of(tmp_path / "box")
    assert edges_of(source) == {}
    assert "1 of lists or automatic" in source.describe()
    assert "1 without a person" in source.describe()


def test_an_announcement_to_many_is_left_out(tmp_path):
    many = ", ".join(f"p{number}@x.net" for number in range(51))
    (tmp_path / "box").write_text(letter("anna@example.org", many, 1))
    assert edges_of(source_of(tmp_path / "box")) == {}
    assert len(edges_of(source_of(tmp_path / "box", most_recipients=60))) == 51


def test_only_what_is_new_is_read_and_adds_to_what_was_there(tmp_path):
    box, state = tmp_path / "box", tmp_path / "state"
    box.write_text(letter("anna@example.org", "bob@x.net", 1))
    assert import_to_file(source_of(box), tmp_path / "edges.csv", state) == 1
    with box.open("a") as file:
        file.write(letter("anna@example.org", "bob@x.net", 2) + letter("anna@example.org", "carl@x.net", 3))
    source = source_of(box)
    assert import_to_file(source, tmp_path / "edges.csv", state) == 2
    assert source.describe().startswith("2 messages")
    assert (tmp_path / "edges.csv").read_text().splitlines() == [
        "source,target,weight", "anna@example.org,bob@x.net,2", "anna@example.org,carl@x.net,1",
    ]  # fmt: skip
    assert import_to_file(source_of(box), tmp_path / "edges.csv", state) == 2


def test_a_mailbox_that_was_rewritten_or_moved_is_not_counted_twice(tmp_path):
    first, second = (letter("anna@example.org", "bob@x.net", number, more="X: y\n" * 300) for number in (1, 2))
    (tmp_path / "box").write_text(first + second)
    edges_of(source_of(tmp_path / "box"), tmp_path / "state")
    (tmp_path / "box").rename(tmp_path / "moved")
    (tmp_path / "moved").write_text(second + letter("anna@example.org", "carl@x.net", 3))
    found = edges_of(source_of(tmp_path / "moved"), tmp_path / "state")
    assert found == {("anna@example.org", "carl@x.net"): 1.0}


def test_mailboxes_that_begin_alike_and_ones_that_were_rewritten_shorter_are_read_whole(tmp_path):
    first = letter("anna@example.org", "bob@x.net", 1, more="X: y\n" * 300)
    boxes = [tmp_path / "boxes" / name for name in "ab"]
    boxes[0].parent.mkdir()
    boxes[0].write_text(first + "".join(letter("anna@example.org", f"p{n}@x.net", n + 2) for n in range(20)))
    boxes[1].write_text(first + letter("anna@example.org", "last@x.net", 99))
    found = edges_of(source_of(tmp_path / "boxes"), tmp_path / "state")
    assert len(found) == 22
    boxes[0].write_text(first + letter("anna@example.org", "new@x.net", 100))
    assert edges_of(source_of(tmp_path / "boxes"), tmp_path / "state") == {("anna@example.org", "new@x.net"): 1.0}


def test_a_letter_that_is_being_written_waits_for_its_recipients(tmp_path):
    whole = letter("anna@example.org", "bob@x.net, carl@x.net", 1)
    (tmp_path / "box").write_text(whole[: whole.index(", carl")])
    assert edges_of(source_of(tmp_path / "box"), tmp_path / "state") == {}
    (tmp_path / "box").write_text(whole)
    assert len(edges_of(source_of(tmp_path / "box"), tmp_path / "state")) == 2


def test_a_clock_that_is_years_ahead_is_refused_and_changes_nothing(tmp_path):
    (tmp_path / "box").write_text(letter("anna@example.org", "bob@x.net", 1))
    edges_of(source_of(tmp_path / "box"), tmp_path / "state")
    with pytest.raises(SourceError, match="days ahead of the last import"):
        edges_of(MailSource([tmp_path / "box"], ["example.org"], today=TODAY + 36_500), tmp_path / "state")


@pytest.mark.parametrize("content", [b"\x1f\x8b", b"\x1f\x8b\x08\x00" + b"nonsense" * 40])
def test_a_damaged_packed_file_is_told_in_a_line(tmp_path, content):
    (tmp_path / "box.gz").write_bytes(content)
    with pytest.raises(SourceError, match=r"box\.gz: cannot be read"):
        edges_of(source_of(tmp_path / "box.gz"))


def test_names_of_files_in_any_bytes_are_read(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xff\xfex"))
    path.write_text(letter("anna@example.org", "bob@x.net", 1))
    mailbox.Maildir(Path(os.fsdecode(os.fsencode(tmp_path) + b"/m\xff")))
    assert len(edges_of(source_of(tmp_path))) == 1


def test_a_flood_of_addresses_is_not_kept(tmp_path):
    source = source_of(tmp_path / "box")
    many = ", ".join(f"p{number}@x.net" for number in range(5000))
    (tmp_path / "box").write_text(letter("spam@x.net", many, 1) + letter("anna@example.org", "bob@x.net", 2))
    assert len(edges_of(source)) == 1
    assert len(source.addresses.names) <= 3


def test_weights_fade_between_imports(tmp_path):
    (tmp_path / "box").write_text(letter("anna@example.org", "bob@x.net", 1))
    import_to_file(source_of(tmp_path / "box"), tmp_path / "edges.csv", tmp_path / "state")
    later = MailSource([tmp_path / "box"], ["example.org"], today=TODAY + 180)
    import_to_file(later, tmp_path / "edges.csv", tmp_path / "state")
    assert (tmp_path / "edges.csv").read_text().splitlines()[1] == "anna@example.org,bob@x.net,0.5"
    # a clock that went back
    import_to_file(source_of(tmp_path / "box"), tmp_path / "edges.csv", tmp_path / "state")
    assert (tmp_path / "edges.csv").read_text().splitlines()[1] == "anna@example.org,bob@x.net,0.5"


def test_an_interrupted_import_leaves_nothing_and_can_be_done_again(tmp_path):
    (tmp_path / "box").write_text(letter("anna@example.org", "bob@x.net", 1))

    class Stopped(Exception):
        pass

    class Stops(MailSource):
        def read(self, state):
            yield from super().read(state)
            raise Stopped

    with pytest.raises(Stopped):
        import_to_file(
            Stops([tmp_path / "box"], ["example.org"], today=TODAY), tmp_path / "out.csv", tmp_path / "state"
        )
    assert not (tmp_path / "out.csv").exists()
    assert import_to_file(source_of(tmp_path / "box"), tmp_path / "out.csv", tmp_path / "state") == 1


def test_nothing_of_subjects_bodies_or_hashed_users_is_kept(tmp_path):
    (tmp_path / "box").write_text(letter("anna@example.org", "bob@x.net", 1))
    source = source_of(tmp_path / "box", hash_key=b"k" * 32)
    import_to_file(source, tmp_path / "out.csv", tmp_path / "state")
    kept = (tmp_path / "state").read_bytes() + (tmp_path / "out.csv").read_bytes()
    for word in (b"secret", b"anna", b"bob"):
        assert word not in kept
    assert b"@example.org" in kept
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o600


def test_a_place_without_mail_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(SourceError, match="an mbox or a Maildir, but has neither"):
        edges_of(source_of(tmp_path))
    with pytest.raises(SourceError, match="no such file or folder"):
        edges_of(source_of(tmp_path / "nowhere"))
    for bad in ({"half_life": -1.0}, {"half_life": float("nan")}, {"most_recipients": 0}, {"hash_key": b"short"}):
        with pytest.raises(ParameterError):
            source_of(tmp_path, **bad)


def test_memory_does_not_grow_with_bodies(tmp_path):
    with (tmp_path / "box").open("w") as file:
        for number in range(40):
            file.write(letter("anna@example.org", f"p{number}@x.net", number) + "body\n" * 500_000 + "\n")
    code = (
        "import resource, sys; from pathlib import Path; from manela.sources.mail import MailSource;"
        "from manela.sources.state import ImportState; import manela.sources.source\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "source = MailSource([Path(sys.argv[1])], ['example.org'])\n"
        "with ImportState(None, source.key) as state: print(sum(len(t.own) for t in source.read(state)))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "box")], capture_output=True, text=True, check=True
    )
    edges, kilobytes = map(int, done.stdout.split())
    assert edges == 40
    assert kilobytes < 30_000
