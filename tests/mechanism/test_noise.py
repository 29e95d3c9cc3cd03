"""The noise of one release."""
import numpy as np
import pytest

from minidp.errors import ParameterError
from minidp.mechanism import add_gaussian


def test_no_noise_draws_nothing(rng):
    before = rng.bit_generator.state
    raw = np.ones(3)
    assert add_gaussian(raw, 0, rng) is raw
    np.testing.assert_array_equal(raw, np.ones(3))
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("noise_std", [-1.0, float("nan"), float("inf")])
def test_bad_noise_is_refused(noise_std, rng):
    with pytest.raises(ParameterError, match="noise_std"):
        add_gaussian(np.zeros(3), noise_std, rng)
