"""Parameters checked one by one and together."""

import dataclasses

import pytest

from manela.errors import ParameterError
from manela.settings.parameters import PARAMETERS
from manela.settings.settings import check_all, check_netmf, check_prone, check_walks


def test_what_is_not_given_has_its_default():
    given = {name: parameter.default for name, parameter in PARAMETERS.items()} | {"random_state": 0}
    assert check_all({"random_state": 0}) == check_all(given)
    settings = check_all({})
    assert (settings.dimensions, settings.window, settings.ratios) == (128, 10, (0.5, 0.5))
    assert settings.threads >= 1


def test_settings_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        check_all({}).dimensions = 3


@pytest.mark.parametrize(
    ("window", "ratios", "targets"),
    [
        (10, (0.7, 0.3), (14, 6)), (10, (1.0,), (20,)), (1, (0.5, 0.5), (1, 1)), (1, (0.75, 0.25), (2, 1)),
        (3, (0.0, 1.0), (0, 6)), (10, (0.0, 0.0, 1.0), (0, 0, 20)),
    ],
)  # fmt: skip
def test_targets_by_hop_are_shares_of_twice_the_window_rounded_to_the_nearest(window, ratios, targets):
    assert check_all({"window": window, "ratios": ratios}).targets_by_hop == targets


@pytest.mark.parametrize("ratios", [(0.7, 0.7), (0.5,), (0.0, 0.0), (0.5, 0.49999)])
def test_ratios_that_do_not_sum_to_1_are_told_with_their_sum(ratios):
    with pytest.raises(ParameterError) as caught:
        check_all({"ratios": ratios})
    assert str(caught.value).startswith("ratios must sum to 1, got (")
    assert str(caught.value).endswith(f"which sums to {sum(ratios):.6g}")


def test_ratios_may_sum_to_1_but_for_rounding():
    assert check_all({"ratios": [1 / 3] * 3}).ratios == (1 / 3,) * 3
    assert check_all({"ratios": [0.1] * 10}).targets_by_hop == (2,) * 10


def test_ratios_by_default_leave_out_the_second_hop_where_messages_have_context_vectors():
    assert check_all({"context": True, "exchange": "messages"}).ratios == (1.0,)
    assert check_all({"context": True, "exchange": "walks"}).ratios == (0.5, 0.5)
    assert check_all({"context": True, "exchange": "messages", "ratios": (0.5, 0.5)}).ratios == (0.5, 0.5)


@pytest.mark.parametrize(
    "budgets", [{"pairs": 10, "updates": 1.0}, {"updates": 1.0, "max_seconds": 3.0}, {"pairs": 9, "max_seconds": 3.0}]
)
def test_two_budgets_are_refused_with_both(budgets):
    with pytest.raises(ParameterError) as caught:
        check_all(budgets)
    given = " and ".join(f"{name}={value}" for name, value in budgets.items())
    assert str(caught.value) == f"give at most one of pairs, updates and max_seconds, got {given}"


def test_one_budget_is_enough_and_none_is_one_too():
    assert check_all({"pairs": 10, "updates": None}).pairs == 10
    assert check_all({"max_seconds": 3}).max_seconds == 3.0


def test_shares_that_all_round_to_nothing_are_refused():
    with pytest.raises(ParameterError, match="must give at least one target, got window 1"):
        check_all({"window": 1, "ratios": [0.1] * 10})


def test_negatives_window_and_dimensions_have_a_limit_together_by_messages_alone():
    at_most = {"exchange": "messages", "dimensions": 2**16, "window": 8, "ratios": (1.0,), "negatives": 8}
    assert check_all(at_most).dimensions == 2**16
    with pytest.raises(ParameterError, match="must be at most 8,388,608, got 9,437,184"):
        check_all({**at_most, "negatives": 9})
    assert check_all({**at_most, "negatives": 9, "exchange": "walks"}).negatives == 9


@pytest.mark.parametrize("context", [False, True])
def test_context_vectors_neither_start_by_sweeps_nor_are_smoothed(context):
    settings = check_all({"context": context})
    assert settings.starts_by_sweeps is settings.smooths is not context
    off = check_all({"start": "random", "smooth": False})
    assert not off.starts_by_sweeps
    assert not off.smooths


def test_what_a_run_is_does_not_depend_on_threads_but_on_the_seed_that_was_drawn():
    one, two = check_all({"random_state": None}), check_all({"random_state": None})
    assert one.identity() != two.identity()
    assert one.identity()["random_state"] == one.seed
    again = check_all({"random_state": one.seed, "n_jobs": 1})
    assert again.identity() == one.identity()


def test_parameters_make_the_same_settings_again():
    settings = check_all({"ratios": (0.7, 0.3), "random_state": 5, "dimensions": 3, "rounds": 7})
    parameters = settings.parameters()
    assert parameters["ratios"] == [0.7, 0.3]
    assert check_all(parameters).identity() == settings.identity()


@pytest.mark.parametrize("check", [check_all, check_walks, check_prone, check_netmf])
def test_every_estimator_checks_each_parameter(check):
    assert check({}).dimensions == 128
    assert check({"dimensions": 7, "n_jobs": 1}).threads == 1
    for wrong in (0, 1.5, True, "8", None):
        with pytest.raises(ParameterError, match="dimensions must be a whole number from 1 to 65536"):
            check({"dimensions": wrong})


def test_netmf_divides_by_the_number_of_negatives():
    assert check_netmf({"negatives": 1}).negatives == 1
    with pytest.raises(ParameterError, match="negatives must be at least 1 for NetMF, got 0"):
        check_netmf({"negatives": 0})
    assert check_walks({"negatives": 0}).negatives == 0


@pytest.mark.parametrize("given", [{"pairs": 10}, {"updates": 1.0}, {"rounds": 3}, {"exchange": "walks"}])
def test_the_spectral_view_alone_takes_nothing_that_is_of_rounds(given):
    with pytest.raises(ParameterError, match=f"views='spectral' has no rounds, so {next(iter(given))} cannot be"):
        check_all({"views": "spectral", **given})
