"""Flags that several commands share."""

import shlex
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from manela.cli.options import (
    READING,
    Flags,
    Paper,
    Reading,
    Thorough,
    Values,
    default,
    expand_flags,
    flag,
    parse_numbers,
    say_seconds,
    split_columns,
    write_reading,
)
from manela.errors import ParameterError
from manela.settings.parameters import LEARNING, PARAMETERS, PRESETS

NAMES = ("dimensions", "ratios", "window", "negatives", "learning_rate", "exchange", "context", "smooth", "n_jobs")


def make_command():
    """A command with flags, and what it was called with last."""
    called = {}

    @expand_flags
    def command(
        name: str,
        parameters: Annotated[Values, Flags(*NAMES)],
        reading: Annotated[Values, Reading(directed=True)],
        paper: Paper = False,
        thorough: Thorough = False,
    ) -> None:
        called.update(name=name, parameters=parameters, reading=reading)

    application = typer.Typer()
    application.command()(command)
    return application, called


def call(*arguments):
    application, called = make_command()
    result = CliRunner().invoke(application, ["x", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return called


def test_a_command_gets_the_defaults_as_one_dict_for_each_argument():
    called = call()
    assert called["name"] == "x"
    assert called["parameters"] == {name: PARAMETERS[name].default for name in NAMES}
    assert called["reading"] == {
        "directed": False, "unweighted": False, "duplicates": "sum", "columns": None, "matfile_variable": "network",
        "size_limit": 16.0,
    }  # fmt: skip


def test_flags_are_given_by_the_names_of_parameters():
    called = call(
        "--dimensions", "7", "--ratios", "0.7,0.3", "-j", "3", "--context", "--no-smooth", "--directed", "--columns",
        "a, b,w", "--size-limit", "2.5", "--exchange", "walks",
    )  # fmt: skip
    found = called["parameters"]
    assert (found["dimensions"], found["ratios"], found["n_jobs"]) == (7, (0.7, 0.3), 3)
    assert (found["context"], found["smooth"], found["exchange"]) == (True, False, "walks")
    assert (called["reading"]["directed"], called["reading"]["columns"]) == (True, ["a", "b", "w"])
    assert called["reading"]["size_limit"] == 2.5


def test_a_preset_gives_what_the_user_has_not_given():
    paper = PRESETS["paper"]
    found = call("--paper")["parameters"]
    assert {name: found[name] for name in NAMES if name in paper} == {
        name: paper[name] for name in NAMES if name in paper
    }
    assert found["exchange"] == "walks"
    assert call("--paper", "--exchange", "messages")["parameters"]["exchange"] == "messages"
    # a flag counts even where it says the default
    usual = PARAMETERS["learning_rate"].default
    assert call("--paper", "--learning-rate", str(usual))["parameters"]["learning_rate"] == usual


def test_two_presets_are_refused():
    with pytest.raises(ParameterError, match="at most one of --paper and --thorough"):
        call("--paper", "--thorough")


def test_numbers_that_are_none_are_told_by_the_name_of_their_flag():
    with pytest.raises(ParameterError, match="ratios must be numbers separated by commas, got '0.5;0.5'"):
        call("--ratios", "0.5;0.5")
    assert parse_numbers("ratios", "1") == (1.0,)
    assert parse_numbers("ratios", " .5, 5e-1") == (0.5, 0.5)
    for text in ("", "1,", "a"):
        with pytest.raises(ParameterError):
            parse_numbers("ratios", text)


def test_help_has_a_flag_for_every_parameter_with_its_words():
    application, _ = make_command()
    output = CliRunner().invoke(application, ["--help"], env={"COLUMNS": "300", "TERM": "dumb"}).output
    for name in ("--dimensions", "--ratios", "--jobs", "--context", "--no-smooth", "--size-limit", "R1,R2,"):
        assert name in output
    assert PARAMETERS["dimensions"].help in output
    assert "--no-context" not in output  # it is off by default


@pytest.mark.parametrize("name", LEARNING)
def test_every_parameter_of_learning_has_a_flag_and_a_default(name):
    assert flag(name).help == PARAMETERS[name].help
    value = default(name)
    assert not isinstance(value, tuple)
    if isinstance(PARAMETERS[name].default, tuple):
        assert parse_numbers(name, value) == PARAMETERS[name].default


def test_only_a_command_that_follows_arcs_has_the_flag_for_it():
    assert "directed" not in Reading().flags
    assert list(Reading(directed=True).flags) == list(READING)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5.0, "0 s"), (0.0, "0 s"), (7.4, "7 s"), (119.0, "119 s"), (120.0, "2 min"), (7199.0, "120 min"),
        (7200.0, "2 h"), (90_000.0, "25 h"),
    ],
)  # fmt: skip
def test_times_are_said_as_people_say_them(seconds, words):
    assert say_seconds(seconds) == words


@pytest.mark.parametrize(
    ("text", "found"), [("", None), ("a,b", ["a", "b"]), (" a , b c ", ["a", "b c"]), (",", ["", ""])]
)
def test_columns_are_separated_by_commas(text, found):
    assert split_columns(text) == found


def test_how_a_network_was_read_is_written_as_a_shell_takes_it():
    usual = {name: value for name, (_, value) in READING.items()} | {"columns": None}
    assert write_reading(usual) == []
    given = {
        "directed": True, "unweighted": True, "duplicates": "first", "columns": ["payer", "it's"],
        "matfile_variable": "net work", "size_limit": 2.5,
    }  # fmt: skip
    written = write_reading(given)
    assert written[0] == "--directed"
    again = call(*shlex.split(" ".join(written)))["reading"]
    assert again == given
