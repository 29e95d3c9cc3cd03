"""Initial values: their distribution, and that they repeat with the seed."""
import math

import numpy as np
import pytest
from scipy import stats

from minidp.nn import init

FALSE_ALARM = 1e-6  # chance that a right implementation fails such a test with another seed
SHAPE = (5, 8, 5, 50)  # a kernel: fan-in 5 8 5 = 200, fan-out 5 8 50 = 2000
EXPECTED = {
    "truncated_normal": (init.truncated_normal, stats.truncnorm(-2, 2, scale=1 / math.sqrt(200))),
    "glorot_uniform": (init.glorot_uniform, stats.uniform(-math.sqrt(6 / 2200), 2 * math.sqrt(6 / 2200))),
    "he_normal": (init.he_normal, stats.norm(scale=math.sqrt(2 / 200))),
}
drawn = pytest.mark.parametrize("initialiser, distribution", EXPECTED.values(), ids=EXPECTED)


@drawn
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_follow_the_distribution(initialiser, distribution, dtype, rng):
    values = initialiser(rng, SHAPE, dtype)
    assert values.shape == SHAPE and values.dtype == np.dtype(dtype)
    assert stats.kstest(values.ravel().astype("float64"), distribution.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("shape, fans", [((3, 4), 3 + 4), ((8, 8, 1, 16), 64 + 1024), ((4, 4, 16, 32), 256 + 512),
                                         ((1, 1, 6, 2), 6 + 2), ((7,), 1 + 7)], ids=str)
def test_glorot_counts_the_receptive_field_in_both_fans(shape, fans):
    """By hand from Keras' definition: a dense weight as before, a kernel kh kw C + kh kw O."""
    draw = np.random.default_rng(0).uniform(-1, 1, shape)
    values = init.glorot_uniform(np.random.default_rng(0), shape, "float64")
    np.testing.assert_allclose(values, draw * math.sqrt(6 / fans), rtol=1e-13, atol=1e-15)
