import numpy as np
import pytest

from manela.reproduction.pictures import explain, fit_power_law


def test_an_exponent_is_found_again():
    drawn = 5 * (np.random.default_rng(1).pareto(1.2, 50_000) + 1)
    law = fit_power_law(drawn, 5.0)
    assert law.exponent == pytest.approx(2.2, abs=5 * law.error)
    assert law.error == pytest.approx(1.2 / 50_000**0.5, rel=0.05)
    assert law.above == 50_000


def test_where_the_law_begins_is_found_too():
    rng = np.random.default_rng(2)
    body, tail = rng.uniform(1, 10, 3000), 10 * (rng.pareto(1.5, 7000) + 1)
    law = fit_power_law(np.concatenate([body, tail]))
    assert law.exponent == pytest.approx(2.5, abs=0.15)
    assert law.smallest >= 8


def test_the_share_explained_is_the_squared_correlation():
    x = np.arange(10)
    assert explain(x, 3 * x + 1) == pytest.approx(1.0)
    assert explain(x, np.tile([0, 1], 5)) == pytest.approx(np.corrcoef(x, np.tile([0, 1], 5))[0, 1] ** 2)
