"""The line by which a host is made known."""

import pytest

from manela.errors import AgentError
from manela.hosts.folder.identity import Invitation, read_invitation

PRINT = "AB:" * 31 + "AB"


def test_a_line_comes_back():
    line = str(Invitation("beta", "beta.example.org:7446", PRINT))
    assert line == "manela:beta@beta.example.org:7446#" + "AB" * 32
    assert read_invitation(f"  {line}\n") == ("beta", "beta.example.org:7446", "AB" * 32)
    assert read_invitation(str(Invitation("beta", "[::1]:7446", PRINT))).address == "[::1]:7446"
    assert read_invitation(line.lower().replace("manela:beta@", "manela:beta@")).print_ == "AB" * 32


@pytest.mark.parametrize(
    "line",
    ["", "beta", "manela:beta", "manela:beta@x:1", "manela:beta@x:1#AB", "manela:Not a host@x:1#" + "AB" * 32,
     "manela:beta@x#" + "AB" * 32, "manela:beta@x:99999#" + "AB" * 32, "other:beta@x:1#" + "AB" * 32],
)  # fmt: skip
def test_what_is_no_invitation_says_so(line):
    with pytest.raises(AgentError):
        read_invitation(line)
