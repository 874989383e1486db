"""Files that nobody else may read, and links that are not followed."""

import pytest

from manela.errors import AgentError, OutputError
from manela.system.files import check_private, make_private_folder, open_private


def test_a_folder_that_others_could_look_into_is_closed(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    make_private_folder(tmp_path / "open")
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o700


def test_what_others_can_read_is_refused(tmp_path):
    file = tmp_path / "key.pem"
    file.write_text("x")
    file.chmod(0o640)
    with pytest.raises(AgentError, match=r"mode 0640.*chmod 600"):
        check_private(file)
    file.chmod(0o600)
    check_private(file)
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(AgentError, match="symbolic link"):
        check_private(tmp_path / "link")


def test_a_link_is_not_followed_when_writing(tmp_path):
    (tmp_path / "target").write_text("mine")
    (tmp_path / "trace.jsonl").symlink_to(tmp_path / "target")
    with pytest.raises(OutputError):
        open_private(tmp_path / "trace.jsonl", "a")
    assert (tmp_path / "target").read_text() == "mine"
