"""The noise of one release."""
import numpy as np
import pytest
from scipy import stats

from minidp.backend import to_host
from minidp.errors import ParameterError
from minidp.mechanism import add_gaussian

FALSE_ALARM = 1e-6  # chance that a right implementation fails such a test with another seed


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_noise_has_the_claimed_standard_deviation(dtype, backend, rng):
    raw = backend.asarray(np.full((200, 100), 3.0, dtype=dtype))
    noise = to_host(add_gaussian(raw, 2.5, rng)).astype(float).ravel() - 3
    assert stats.kstest(noise / 2.5, "norm").pvalue > FALSE_ALARM
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], noise.size)
    assert low < ((noise / 2.5) ** 2).sum() < high
    assert raw.dtype == np.dtype(dtype)


def test_no_noise_draws_nothing(rng):
    before = rng.bit_generator.state
    raw = np.ones(3)
    assert add_gaussian(raw, 0, rng) is raw
    np.testing.assert_array_equal(raw, np.ones(3))
    assert rng.bit_generator.state == before


def test_two_releases_differ(rng):
    assert (add_gaussian(np.zeros(100), 1.0, rng) != add_gaussian(np.zeros(100), 1.0, rng)).all()


@pytest.mark.parametrize("noise_std", [-1.0, float("nan"), float("inf")])
def test_bad_noise_is_refused(noise_std, rng):
    with pytest.raises(ParameterError, match="noise_std"):
        add_gaussian(np.zeros(3), noise_std, rng)
