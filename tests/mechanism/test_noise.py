"""The noise of one release."""
import numpy as np
import pytest

from minidp.backend import to_host
from minidp.mechanism import add_gaussian
from minidp.mechanism.noise import noise_grid
from minidp.streams import Streams


def test_no_noise_draws_nothing():
    raw, draws = np.ones(3), Streams(1).noise(0)
    assert add_gaussian(raw, 0, draws) is raw
    np.testing.assert_array_equal(raw, np.ones(3))
    assert draws.random() == Streams(1).noise(0).random()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("noise_std", [0.3, 1.0, 5.0])
def test_what_is_released_lies_on_the_grid(noise_std, dtype):
    raw = np.random.default_rng(0).uniform(-1, 1, (70, 9)).astype(dtype)[:, ::2]  # in pieces
    cells = add_gaussian(raw, noise_std, Streams(1).noise(0)).astype("float64") / noise_grid(noise_std)
    # float32 has 24 bits: fewer than the grid beyond 16 times the noise, which none of these is
    assert (cells == np.round(cells)).all() and (cells % 2 == 1).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_noise_is_the_same_on_every_backend(dtype, backend):
    raw = np.random.default_rng(0).uniform(-1, 1, (40, 50)).astype(dtype)
    there = backend.asarray(raw.copy())
    assert add_gaussian(there, 2.0, Streams(1).noise(0)) is there and there.dtype == raw.dtype
    np.testing.assert_array_equal(to_host(there), add_gaussian(raw, 2.0, Streams(1).noise(0)))
