import pytest

from manela.errors import AgentError, FormatError
from manela.sources.secret import read_or_make_key


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
