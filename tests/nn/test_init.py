"""Initial values: their distribution, and that they repeat with the seed."""
import math

import numpy as np
import pytest
from scipy import stats

from minidp.nn import init

FALSE_ALARM = 1e-6  # chance that a right implementation fails such a test with another seed
SHAPE = (5, 8, 5, 50)  # a kernel: fan-in 5 8 5 = 200
EXPECTED = {
    "truncated_normal": (init.truncated_normal, stats.truncnorm(-2, 2, scale=1 / math.sqrt(200))),
    "he_normal": (init.he_normal, stats.norm(scale=math.sqrt(2 / 200))),
}
drawn = pytest.mark.parametrize("initialiser, distribution", EXPECTED.values(), ids=EXPECTED)


@drawn
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_follow_the_distribution(initialiser, distribution, dtype, rng):
    values = initialiser(rng, SHAPE, dtype)
    assert values.shape == SHAPE and values.dtype == np.dtype(dtype)
    assert stats.kstest(values.ravel().astype("float64"), distribution.cdf).pvalue > FALSE_ALARM
