import gzip
import io
import mailbox
import random
from email.message import EmailMessage

import pytest

from manela.errors import SourceError
from manela.sources.letters import Mbox, find_mailboxes, list_maildir, open_letters, read_header


def write_with_the_standard_library(path, count):
    box, random_words = mailbox.mbox(path), random.Random(1)
    for number in range(count):
        message = EmailMessage()
        message["From"], message["To"] = f"a{number}@example.org", "b@example.org"
        message["Subject"] = f"number {number}"
        message.set_content("From here on\n\nFrom: it is body\n" * random_words.randrange(1, 300))
        box.add(message)
    box.close()


@pytest.mark.parametrize("block", [1 << 20, 777, 64])
def test_an_mbox_has_the_letters_that_the_standard_library_wrote(tmp_path, block):
    write_with_the_standard_library(tmp_path / "box", 60)
    with open_letters(tmp_path / "box") as file:
        found = [letter.header for letter in Mbox(file, block)]
    assert len(found) == 60
    assert [header.split(b"\n")[0] for header in found] == [b"From: a%d@example.org" % n for n in range(60)]


def test_line_ends_of_windows_are_read():
    text = b"From a Mon\r\nFrom: a@x\r\nTo: b@x\r\n\r\nhello\r\n\r\nFrom b Tue\r\nFrom: b@x\r\n\r\nbody\r\n"
    assert [letter.header.split()[1] for letter in Mbox(io.BytesIO(text))] == [b"a@x", b"b@x"]


def test_a_line_of_a_body_is_no_letter():
    text = b"From a Mon\nFrom: a@x\n\nhello\n\nFrom here: it goes on\nno header\n\nFrom b Tue\nFrom: b@x\n\n"
    assert [letter.header for letter in Mbox(io.BytesIO(text))] == [b"From: a@x", b"From: b@x"]


def test_an_endless_header_is_skipped_and_the_rest_is_read():
    text = b"From a Mon\n" + b"X: " + b"y" * 3_000_000 + b"\n\nbody\n\nFrom b Tue\nFrom: b@x\n\nbody\n"
    assert [letter.header for letter in Mbox(io.BytesIO(text))] == [b"From: b@x"]


def test_packed_files_are_unpacked(tmp_path):
    (tmp_path / "box.gz").write_bytes(gzip.compress(b"From a Mon\nFrom: a@x\n\nhello\n"))
    with open_letters(tmp_path / "box.gz") as file:
        assert [letter.header for letter in Mbox(file)] == [b"From: a@x"]


def test_mailboxes_are_found_below_a_folder(tmp_path):
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "anna").write_text("From a Mon\nFrom: a@x\n\nhello\n")
    box = mailbox.Maildir(tmp_path / "spool" / "bob")
    box.add_folder("Sent")
    assert [(path.name, kind) for path, kind in find_mailboxes(tmp_path)] == [
        ("anna", False), ("bob", True), (".Sent", True), ("maildirfolder", False),
    ]  # fmt: skip
    with pytest.raises(SourceError, match="no such file or folder"):
        list(find_mailboxes(tmp_path / "nowhere"))


def test_letters_of_a_maildir_are_listed_and_their_headers_read(tmp_path):
    box = mailbox.Maildir(tmp_path / "box")
    for number in range(3):
        box.add(f"From: a{number}@x.org\n\n" + "body\n" * 10_000)
    found = [read_header(path) for path in list_maildir(tmp_path / "box", 0.0)]
    assert sorted(letter.header for letter in found) == [b"From: a%d@x.org" % number for number in range(3)]
    latest = max(path.stat().st_ctime for path in (tmp_path / "box" / "new").iterdir())
    assert list(list_maildir(tmp_path / "box", latest + 1)) == []
    assert read_header(tmp_path / "gone") is None
