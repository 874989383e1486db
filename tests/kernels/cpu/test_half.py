"""Half precision."""

import numpy as np

from manela.kernels.cpu.half import from_half, to_half


@np.errstate(all="ignore")
def test_every_half_survives_and_floats_round_as_numpy_does():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = halves[~np.isnan(halves)]
    np.testing.assert_array_equal(from_half(finite).view(np.uint32), finite.astype(np.float32).view(np.uint32))
    np.testing.assert_array_equal(to_half(from_half(finite)).view(np.uint16), finite.view(np.uint16))
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**32, 200_003, dtype=np.uint64).astype(np.uint32)
    values = np.concatenate((bits.view(np.float32), random.normal(size=1_001).astype(np.float32), [7e4, -7e4, 1e-8]))
    values = values[~np.isnan(values)].astype(np.float32)
    np.testing.assert_array_equal(to_half(values).view(np.uint16), values.astype(np.float16).view(np.uint16))
    assert np.isnan(to_half(np.full(20, np.nan, np.float32))).all()
    assert np.isnan(from_half(np.full(20, np.nan, np.float16))).all()


def test_shapes_stay():
    rows = np.random.default_rng(1).normal(size=(5, 2, 7)).astype(np.float32)
    assert to_half(rows).shape == from_half(to_half(rows)).shape == (5, 2, 7)
    assert to_half(np.zeros((0, 1, 8), np.float32)).shape == (0, 1, 8)
