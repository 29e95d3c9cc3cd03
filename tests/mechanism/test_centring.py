"""The noisy mean of rows: what it costs, what it is without noise, and that noise alone gives nothing to subtract."""
import numpy as np
import pytest
from minidp.errors import ParameterError
from minidp.mechanism import mean_sanitizer, noisy_mean
from minidp.streams import Streams


def test_without_noise_it_is_the_mean_of_the_clipped_rows(rng):
    x = rng.normal(size=(5000, 6)).astype("float32")
    x[3] = np.nan
    clipped = np.delete(x, 3, 0) / np.maximum(1, np.linalg.norm(np.delete(x, 3, 0), axis=1, keepdims=True))
    np.testing.assert_allclose(noisy_mean(x, mean_sanitizer(0.0), 5000, rng), clipped.sum(0) / 5000, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("rows", [np.zeros((0, 4), "float32"), np.full((3, 4), np.inf, "float32")])
def test_rows_without_a_mean_give_noise_of_the_public_size(rows, rng):
    assert noisy_mean(rows, mean_sanitizer(1.0), 10, Streams(1).noise("mean")).shape == (4,)


def test_the_size_is_public_and_positive(rng):
    with pytest.raises(ParameterError, match="size"):
        noisy_mean(np.zeros((3, 2), "float32"), mean_sanitizer(1.0), 0, rng)
