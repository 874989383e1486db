import math
from dataclasses import fields
from typing import get_args, get_type_hints

import numpy as np
import pytest

from manela import Manela
from manela.errors import ParameterError
from manela.settings.parameters import (
    LEARNING,
    PAIRS_PER_NODE,
    PAPER,
    PARAMETERS,
    PRESETS,
    READING,
    RUNNING,
)
from manela.settings.settings import Settings, check_all, check_walks

DEFAULTS = {name: parameter.default for name, parameter in PARAMETERS.items()}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dimensions", 0),
        ("dimensions", 1.5),
        ("dimensions", True),
        ("window", 0),
        ("ratios", "0.5,0.5"),
        ("ratios", ()),
        ("ratios", (-0.5, 1.5)),
        ("ratios", (math.nan, 1.0)),
        ("ratios", 1.0),
        ("negatives", -1),
        ("learning_rate", math.nan),
        ("learning_rate", math.inf),
        ("learning_rate", 0.0),
        ("context", 1),
        ("pairs", 0),
        ("updates", -1.0),
        ("max_seconds", 0),
        ("rounds", 0),
        ("random_state", -1),
        ("random_state", "seed"),
        ("n_jobs", 0),
        ("engine", "abacus"),
        ("exchange", "letters"),
        ("negative_source", "stars"),
        ("frequency", -0.1),
        ("frequency", math.nan),
        ("start", "zero"),
        ("smooth", 1),
        ("patience", 0.0),
        ("patience", math.inf),
    ],
)
def test_a_value_that_breaks_its_rule_is_refused_with_name_rule_and_value(name, value):
    with pytest.raises(ParameterError, match=f"^{name} must be ") as caught:
        check_all({**DEFAULTS, name: value})
    assert repr(value) in str(caught.value)
    assert PARAMETERS[name].rule in str(caught.value)


def test_ratios_that_do_not_sum_to_one_are_refused_with_their_sum():
    with pytest.raises(ParameterError, match=r"ratios must sum to 1, got \(0.7, 0.7\) which sums to 1.4"):
        check_all({**DEFAULTS, "ratios": (0.7, 0.7)})


def test_two_budgets_are_refused():
    with pytest.raises(ParameterError, match="at most one of pairs, updates and max_seconds"):
        check_all({**DEFAULTS, "pairs": 5, "max_seconds": 1.0})


def test_ratios_of_which_all_round_to_nothing_are_refused():
    with pytest.raises(ParameterError, match="at least one target"):
        check_all({**DEFAULTS, "window": 1, "ratios": (0.2,) * 5})


def test_common_negatives_that_would_fill_the_memory_are_refused():
    check_all({"dimensions": 65536})
    check_all({"window": 10_000, "negatives": 1000, "exchange": "walks"})
    with pytest.raises(ParameterError, match=r"at most 8,388,608, got 2,560,000,000"):
        check_all({"window": 10_000, "negatives": 1000})


def test_targets_by_hop_are_rounded_to_the_nearest():
    assert check_all({**DEFAULTS, "ratios": (0.33, 0.33, 0.34)}).targets_by_hop == (7, 7, 7)
    assert check_all({**DEFAULTS, "ratios": (1.0,)}).targets_by_hop == (20,)
    assert check_all({**DEFAULTS, "ratios": np.array([0.7, 0.3])}).targets_by_hop == (14, 6)


def test_by_default_targets_are_one_and_two_hops_away_and_by_messages_with_contexts_one():
    assert check_all({}).ratios == (0.5, 0.5)
    assert check_all({"context": True}).ratios == (1.0,)
    assert check_all({**PAPER, "context": True}).ratios == (0.5, 0.5)
    assert check_all({"context": True, "ratios": (0.7, 0.3)}).ratios == (0.7, 0.3)


def test_vectors_with_contexts_are_never_smoothed():
    assert check_all({}).smooths
    assert not check_all({"smooth": False}).smooths
    assert not check_all({"context": True}).smooths
    assert not check_all(PAPER).smooths


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_settings_with_a_name_are_an_estimator_of_that_name(name):
    preset = PRESETS[name]
    model = getattr(Manela, name)(dimensions=7)
    assert model.get_params() == {**Manela().get_params(), **preset, "dimensions": 7}
    assert check_all({**DEFAULTS, **preset}) != check_all(DEFAULTS)


def test_identity_leaves_out_what_the_vectors_do_not_depend_on():
    one, other = (check_all({**DEFAULTS, "n_jobs": jobs}).identity() for jobs in (1, 3))
    assert one == other
    assert one != check_all({**DEFAULTS, "random_state": 1}).identity()


def test_every_parameter_has_one_setting_and_is_an_argument_of_the_estimator():
    names = [parameter.setting or name for name, parameter in (LEARNING | RUNNING).items()]
    assert sorted([*names, "threads"]) == sorted(field.name for field in fields(Settings))
    assert sorted(LEARNING | RUNNING | READING) == sorted(Manela().get_params())


@pytest.mark.parametrize("name", [name for name, parameter in PARAMETERS.items() if parameter.choices])
def test_the_type_of_an_argument_lists_its_choices(name):
    assert get_args(get_type_hints(Manela)[name]) == PARAMETERS[name].choices


@pytest.mark.parametrize(
    ("name", "value", "setting"),
    [
        ("dimensions", np.int16(7), 7),
        ("learning_rate", 1, 1.0),
        ("ratios", np.array([0.25, 0.75]), (0.25, 0.75)),
        ("context", np.True_, True),
        ("pairs", np.uint8(9), 9),
        ("updates", 2, 2.0),
        ("rounds", None, None),
        ("random_state", np.int64(5), 5),
        ("n_jobs", 3, 3),
        ("n_jobs", None, None),
    ],
)
def test_a_setting_has_the_type_that_the_table_says(name, value, setting):
    found = getattr(check_all({name: value}), PARAMETERS[name].setting or name)
    assert found == setting
    assert type(found) is type(setting)


def test_what_is_not_given_has_its_default():
    assert check_all({}) == check_all(DEFAULTS)
    assert check_walks({}) == check_walks(DEFAULTS)


def test_the_default_budget_is_the_pairs_of_places_in_ten_walks_of_80_nodes():
    near = [(i, j) for i in range(80) for j in range(i) if i - j <= 10]
    assert 10 * len(near) == PAIRS_PER_NODE
