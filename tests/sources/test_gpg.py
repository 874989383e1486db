"""Key rings: what gpg prints, real and hostile."""

import shutil

import pytest
from key_ring import fill_key_ring, open_key_ring

from manela.errors import ParameterError, SourceError
from manela.sources import gpg
from manela.sources.gpg import GnupgSource
from manela.sources.state import ImportState

needs_gpg = pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")


def edges(source):
    with ImportState(None, source.key) as state:
        return {
            edge for batch in source.read(state) for edge in zip(batch.own, batch.other, batch.weights, strict=True)
        }


@pytest.fixture(scope="module")
def ring():
    with open_key_ring() as made:
        made.edges = fill_key_ring(made)
        yield made


@needs_gpg
@pytest.mark.parametrize("verify", [False, True])
def test_certifications_count_by_their_level_and_those_without_force_do_not(ring, verify):
    source = GnupgSource(ring.folder, verify=verify)
    assert edges(source) == ring.edges
    assert source.describe().startswith("5 keys that can be used, 6 edges; 1 certifications by keys")


@needs_gpg
def test_keys_can_be_called_by_their_fingerprints(ring):
    found = edges(GnupgSource(ring.folder, names="key"))
    assert (ring.fingerprints["Ann"], ring.fingerprints["Bob"], 1.0) in found
    assert len(found) == len(ring.edges)


@needs_gpg
def test_the_usual_folder_is_that_of_gpg_itself(ring, monkeypatch):
    monkeypatch.setenv("GNUPGHOME", str(ring.folder))
    assert edges(GnupgSource()) == ring.edges


@needs_gpg
def test_an_expiry_is_judged_by_the_clock(ring):
    early = edges(GnupgSource(ring.folder, clock=lambda: 1577840400.0))  # an hour into 2020
    assert early - ring.edges == {("ann@example.org", "dan@example.org", 3.0)}


@needs_gpg
def test_gpg_that_does_not_end_is_stopped(tmp_path, monkeypatch):
    (tmp_path / "pubring.kbx").touch()
    slow = tmp_path / "gpg"
    slow.write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(SourceError, match=r"within 0.05 s"):
        edges(GnupgSource(tmp_path, deadline=0.05))


def test_gpg_that_is_missing_or_fails_is_told_in_a_line(tmp_path, monkeypatch):
    (tmp_path / "pubring.kbx").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match="apt install gnupg"):
        edges(GnupgSource(tmp_path))
    with pytest.raises(SourceError, match="apt install gnupg"):
        edges(GnupgSource())
    (tmp_path / "gpg").write_text("#!/bin/sh\necho 'gpg: \033[31mno' >&2\nexit 2\n")
    (tmp_path / "gpg").chmod(0o755)
    with pytest.raises(SourceError, match=r"status 2: gpg: \?\[31mno$"):
        edges(GnupgSource(tmp_path))
    with pytest.raises(ParameterError, match="email or key"):
        edges(GnupgSource(tmp_path, names="face"))


def listing(*keys):
    """What gpg would print; each key is its number, its user id and its signatures, each a line."""
    lines = []
    for number, user_id, signatures in keys:
        lines += [f"pub:u:255:22:{number:016X}:1::::::cC:", f"fpr:::::::::{number:040X}:", f"uid:u::::::::{user_id}:"]
        lines += signatures
    return [(line.split(":") + [""] * 13)[: max(13, line.count(":") + 1)] for line in lines]


def sign(number, time=5, level="10x", kind="sig", validity="", depth=""):
    return f"{kind}:{validity}::22:{number:016X}:{time}::{depth}:::{level}::{number:040X}:"


def read_listing(monkeypatch, tmp_path, lines):
    monkeypatch.setattr(GnupgSource, "_run", lambda self, command: iter(lines))
    return edges(GnupgSource(tmp_path))


@pytest.mark.parametrize(
    ("signatures", "weight"),
    [
        ([sign(1)], 1.0),
        ([sign(1, 5), sign(1, 6, "30x", "rev")], None),
        ([sign(1, 6, "30x", "rev"), sign(1, 5)], None),
        ([sign(1, 5), sign(1, 6, "30x", "rev"), sign(1, 7, "13x")], 3.0),
        ([sign(1, 5), sign(1, 6, "30x", "rev", "-")], 1.0),
        ([sign(1, validity="-")], None),
        ([sign(1, validity="!")], 1.0),
        ([sign(1, depth="255 120")], 4.0),
        ([sign(1, depth="x y")], 1.0),
        ([sign(1, level="1fx")], None),
        ([sign(9)], None),
        ([sign(1), "uid:r::::::::Second <b2@x>:", sign(1, 9, "13x")], 1.0),
        ([sign(1), "uid:u::::::::Second <b2@x>:", sign(1, 9, "13x")], 3.0),
        ([sign(1), "sub:u::::::::::", sign(1, 9, "13x")], 1.0),
    ],
)
def test_the_last_word_of_a_signer_counts(monkeypatch, tmp_path, signatures, weight):
    lines = listing((1, "A <a@x>", [sign(1, level="13x")]), (2, "B <b@x>", signatures))
    assert read_listing(monkeypatch, tmp_path, lines) == (set() if weight is None else {("a@x", "b@x", weight)})


@pytest.mark.parametrize(
    ("user_id", "name"),
    [
        ("Bob (home) <Bob@Example.ORG>", "bob@example.org"),
        ("bob@example.org", "bob@example.org"),
        ("Bob\\x3a <b@x>", "b@x"),
        ("Bob", f"{2:040X}"),
        ("<b@x\\x0aevil>", f"{2:040X}"),
        ("<@>", f"{2:040X}"),
        ("<a@b@c>", f"{2:040X}"),
        ("\\x1b[31m <b@x> <script>", f"{2:040X}"),
        ("", f"{2:040X}"),
    ],
)
def test_a_user_id_is_an_address_or_the_key_is_its_fingerprint(monkeypatch, tmp_path, user_id, name):
    lines = listing((1, "A <a@x>", []), (2, user_id, [sign(1)]))
    assert read_listing(monkeypatch, tmp_path, lines) == {("a@x", name, 1.0)}


def test_two_keys_of_one_person_are_one_node(monkeypatch, tmp_path):
    lines = listing((1, "A <a@x>", []), (2, "A <a@x>", [sign(1)]), (3, "B <b@x>", [sign(1), sign(2, 5, "13x")]))
    assert read_listing(monkeypatch, tmp_path, lines) == {("a@x", "b@x", 1.0), ("a@x", "b@x", 3.0)}


def test_lines_that_are_no_records_and_overlong_ones_are_passed_over(monkeypatch, tmp_path):
    import io

    data = b"\xff\xfe\n" + b"x" * 200_000 + b"\n" + b":\nsig\npub\nfpr\nuid:u\n" + b"tru::1\npub:u"
    lines = list(gpg.read_lines(io.BytesIO(data)))
    assert all(len(line) >= 13 for line in lines)
    assert read_listing(monkeypatch, tmp_path, lines) == set()
