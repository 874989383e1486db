"""Errors and warnings: one tree, and what they say."""

import pickle
import re

import pytest

from manela import errors
from manela.errors import (
    REFUSALS,
    FormatError,
    GraphError,
    ManelaError,
    ManelaWarning,
    MissingExtraError,
    Option,
    OutputError,
    ParameterError,
    RefusedError,
    UnknownNodeError,
    import_extra,
    write_message,
)

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ManelaError)]


def test_the_tree_at_the_top_of_the_file_names_every_error_with_its_other_base():
    drawn = dict(re.findall(r"(\w+(?:Error|Warning))(?: \((\w+)\))? ", errors.__doc__))
    assert set(drawn) == {kind.__name__ for kind in [*KINDS, ManelaWarning]}
    for name, base in drawn.items():
        if base:
            assert base in {kind.__name__ for kind in getattr(errors, name).__mro__}, name


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (ParameterError, ValueError), (GraphError, ValueError), (FormatError, ValueError), (UnknownNodeError, KeyError),
        (OutputError, OSError), (MissingExtraError, ImportError), (ManelaWarning, UserWarning),
    ],
)  # fmt: skip
def test_errors_can_be_caught_as_what_python_calls_them(kind, builtin):
    assert issubclass(kind, builtin)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_says_what_it_was_given(kind):
    assert str(kind("no node has the id 'x'")) == "no node has the id 'x'"


def test_a_parameter_is_written_as_each_edge_wants_it():
    error = ParameterError("pass ", Option("resume", True), " or ", Option("size_limit"), f" for {'x=True'}")
    assert str(error) == "pass resume=True or size_limit for x=True"
    assert write_message(error, lambda option: f"--{option.name}") == "pass --resume or --size_limit for x=True"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_error_of_a_parameter_carries_its_name_rule_and_value():
    error = pickle.loads(pickle.dumps(ParameterError.of("window", "must be above 0", -3)))
    assert (error.parameter, error.rule, error.value) == ("window", "must be above 0", -3)
    assert str(error) == "window must be above 0, got -3"
    assert write_message(error, lambda option: f"--{option.name}") == "--window must be above 0, got -3"


def test_every_refusal_has_a_separate_reason():
    assert len(REFUSALS) == len(RefusedError.__subclasses__()) == 12
    assert all(REFUSALS[kind.reason] is kind for kind in RefusedError.__subclasses__())
    assert RefusedError.reason not in REFUSALS
    assert [kind.__name__ for kind in REFUSALS.values() if kind.expected] == ["SessionError"]


def test_a_refusal_quotes_a_peer_briefly_and_printably():
    text = str(RefusedError("evil \x1b[2J\n\u202e" + "x" * 10_000))
    assert text.startswith("evil ?[2J??xxx")
    assert len(text) == 300


def test_a_refusal_says_how_often_it_happened_and_who_refuses():
    assert (RefusedError("x").times, RefusedError("x").remote) == (1, False)
    refusal = RefusedError("x", times=7, remote=True)
    assert (refusal.times, refusal.remote) == (7, True)


def test_an_extra_that_is_there_is_imported():
    assert import_extra("os.path", "io", "something").join("a", "b") == "a/b"


def test_an_extra_that_is_missing_names_its_install_command():
    with pytest.raises(MissingExtraError) as caught:
        import_extra("nothing_like_it.at.all", "gpu", "a card")
    assert str(caught.value) == "a card needs nothing_like_it, which is not installed: pip install 'manela[gpu]'"
    assert isinstance(caught.value.__cause__, ImportError)
