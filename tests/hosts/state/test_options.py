"""Options of a host: what a configuration may say."""

import math
import tomllib
from dataclasses import asdict, fields

import pytest

from manela.errors import AgentError
from manela.hosts.state.terms import PeerOptions, RateLimits, read_table, show, write_line, write_table


@pytest.mark.parametrize("table", [PeerOptions, RateLimits])
def test_nothing_said_is_the_defaults_and_every_default_keeps_its_own_rule(table):
    assert read_table(table, {}, "x") == table()
    assert read_table(table, asdict(table()), "x") == table()


@pytest.mark.parametrize(
    "table",
    [PeerOptions(), PeerOptions(half=False, noise=0.25, every=7), RateLimits(), RateLimits(requests=0.5, at_once=1)],
)
def test_what_is_written_is_toml_that_says_the_same(table):
    lines = write_table(table)
    assert len(lines) == len(fields(table))
    assert all("  # " in line for line in lines)
    assert read_table(type(table), tomllib.loads("\n".join(lines)), "x") == table


@pytest.mark.parametrize("table", [PeerOptions, RateLimits])
def test_both_ends_of_a_range_belong_to_it_and_what_lies_beyond_does_not(table):
    for one in fields(table):
        if isinstance(one.default, bool):
            continue
        low, high = one.metadata["low"], one.metadata["high"]
        assert low < high
        for value in (low, high):
            value = int(value) if isinstance(one.default, int) else value
            assert getattr(read_table(table, {one.name: value}, "x"), one.name) == value
        for value in (low - 1, high + high, math.nan, math.inf, -math.inf):
            with pytest.raises(AgentError, match=f"x.{one.name} must be a"):
                read_table(table, {one.name: value}, "x")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"half": 1}, "peers.half must be true or false, got 1"),
        ({"half": "true"}, "peers.half must be true or false, got 'true'"),
        ({"noise": True}, "peers.noise must be a number from 0 to 100, got True"),
        ({"noise": "1"}, "peers.noise must be a number from 0 to 100, got '1'"),
        ({"every": 2.0}, "peers.every must be a whole number from 1 to 1000, got 2.0"),
        ({"every": True}, "peers.every must be a whole number"),
        ({"every": None}, "peers.every must be a whole number"),
        ({"wait": [1.0]}, "peers.wait must be a number"),
        ({"nosie": 1.0}, "peers.nosie is unknown; known are peers.half, peers.noise,"),
    ],
)
def test_other_values_are_refused_with_the_rule_and_the_value(values, words):
    with pytest.raises(AgentError) as caught:
        read_table(PeerOptions, values, "peers")
    assert str(caught.value).startswith(words)


def test_a_whole_number_where_a_number_may_be_becomes_one():
    found = read_table(PeerOptions, {"noise": 2, "every": 3}, "peers")
    assert type(found.noise) is float
    assert type(found.every) is int


def test_values_are_shown_as_toml_has_them():
    for value in (True, False, 3, 0.5, 1e15, "text", [0.5, 0.25], [True, "a"], []):
        assert tomllib.loads(f"x = {show(value)}")["x"] == value
    assert tomllib.loads(f"x = {show((1, 2))}")["x"] == [1, 2]


def test_a_line_that_is_not_given_is_a_comment():
    assert tomllib.loads(write_line("a", 1, "why")) == {"a": 1}
    assert tomllib.loads(write_line("a", 1, "why", given=False)) == {}


@pytest.mark.parametrize("text", ['a"b', "back\\slash", "line\nbreak", "ä"])
def test_any_text_is_shown_as_toml_reads_it(text):
    assert tomllib.loads(f"x = {show(text)}") == {"x": text}
