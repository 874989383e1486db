"""Where passwords may come from, and where not."""

import pytest

from manela.errors import AgentError, FormatError, SourceError
from manela.sources.secret import hide_secret, read_or_make_key, read_secret, refuse_password


def write(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_file_of_its_owner_alone_counts_before_the_environment(tmp_path):
    assert read_secret(write(tmp_path / "secret", "xyzzy\nmore\n"), "from elsewhere") == "xyzzy"
    assert read_secret(None, "from elsewhere") == "from elsewhere"
    assert read_secret(None, None) is None
    assert read_secret(None, "") is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(tmp_path, mode):
    with pytest.raises(SourceError, match="chmod 600"):
        read_secret(write(tmp_path / "secret", "xyzzy", mode), None)


@pytest.mark.parametrize("text", ["", "\n\n", "  \nxyzzy", "x" * 70_000])
def test_a_file_without_a_secret_is_refused(tmp_path, text):
    with pytest.raises(SourceError, match="first line"):
        read_secret(write(tmp_path / "secret", text), None)


def test_a_missing_file_and_one_that_is_no_text_are_told_in_a_line(tmp_path):
    with pytest.raises(SourceError, match="No such file"):
        read_secret(tmp_path / "none", None)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "binary").chmod(0o600)
    with pytest.raises(SourceError, match="UTF-8"):
        read_secret(tmp_path / "binary", None)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:xyzzy@db/social",
        "postgresql+psycopg://ann:@db/social",
        "postgresql://db/social?user=ann&password=xyzzy",
        "neo4j+s://neo4j:xyzzy@db.example.org",
    ],
)
def test_a_password_in_a_url_is_refused_without_repeating_it(url):
    with pytest.raises(SourceError, match="MANELA_SECRET") as caught:
        refuse_password(url)
    assert "xyzzy" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://ann@db/social", "sqlite:///a.db", "postgresql://a@/b?host=/run/pg"])
def test_a_url_without_a_password_is_fine(url):
    refuse_password(url)


def test_words_from_elsewhere_become_one_line_without_the_secret():
    assert hide_secret("\nlogin with xyzzy failed\x1b\nmore", "xyzzy") == "login with … failed?"


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path):
    made = read_or_make_key(tmp_path / "key")
    assert len(made) == 32
    assert read_or_make_key(tmp_path / "key") == made
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert read_or_make_key(tmp_path / "other") != made


def test_a_key_that_others_can_read_or_that_is_none_is_refused(tmp_path):
    read_or_make_key(tmp_path / "key")
    (tmp_path / "key").chmod(0o644)
    with pytest.raises(AgentError, match="others can read it"):
        read_or_make_key(tmp_path / "key")
    for text in ("not hexadecimal", "abcd", "\xff"):
        (tmp_path / "bad").unlink(missing_ok=True)
        (tmp_path / "bad").write_text(text)
        (tmp_path / "bad").chmod(0o600)
        with pytest.raises(FormatError):
            read_or_make_key(tmp_path / "bad")
