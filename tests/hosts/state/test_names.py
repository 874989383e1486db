"""Names of hosts and nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.errors import AgentError, MalformedError
from manela.hosts.state.names import LONGEST_NAME, check_host_name, is_name, number_of, parse_node


def test_a_node_is_a_name_and_the_host_behind_the_last_at():
    assert parse_node("alice@example.org") == ("alice", "example.org")
    assert parse_node("alice@home@example.org") == ("alice@home", "example.org")
    assert parse_node("ÿ y@a") == ("ÿ y", "a")


@pytest.mark.parametrize(
    "text", ["", "@", "alice", "alice@", "@host", "a@Host", "a@-host", "a@host-", "a@host\n", "a\n@host", "a@ho st"]
)
def test_what_is_no_node_is_refused(text):
    with pytest.raises(MalformedError, match="must be written name@host"):
        parse_node(text)


def test_a_name_has_1_to_256_printable_bytes():
    assert is_name("a")
    assert is_name("a" * LONGEST_NAME)
    assert not is_name("a" * (LONGEST_NAME + 1))
    assert is_name("ü" * (LONGEST_NAME // 2))
    assert not is_name("ü" * (LONGEST_NAME // 2) + "a")
    assert not is_name("")
    assert not is_name("a\0")
    assert not is_name("a\u200b")  # a space of no width could make two names look alike
    assert not is_name("\udcff")


@pytest.mark.parametrize("name", ["a", "0", "a-b.c", "a" * 63, "unknown1"])
def test_names_of_hosts_are_like_those_of_machines(name):
    assert check_host_name(name) == name


@pytest.mark.parametrize("name", ["", "A", "a_b", ".a", "a.", "a-", "a" * 64, "ü", "a\n", "a@b"])
def test_other_names_of_hosts_are_refused(name):
    with pytest.raises(AgentError, match="must be 1 to 63 of"):
        check_host_name(name)


def test_the_name_by_which_strangers_are_counted_is_refused():
    with pytest.raises(AgentError, match="must not be 'unknown'"):
        check_host_name("unknown")


@given(st.text(max_size=20).filter(is_name), st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True))
def test_every_name_of_every_host_comes_back(name, host):
    assert parse_node(f"{name}@{host}") == (name, host)


def test_numbers_go_by_the_name_alone_and_fit_into_a_signed_word():
    numbers = [number_of(f"node{i}") for i in range(1000)]
    assert len(set(numbers)) == 1000
    assert all(0 <= number < 2**63 for number in numbers)
    assert max(numbers) > 2**61
    # the draws of a host must be the same after an update
    assert number_of("alice") == 0x2BD806C97F0E00AF >> 1
