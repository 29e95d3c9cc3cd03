"""What is special to normalisation: whose numbers are normalised together, and what would erase them."""
import numpy as np
import pytest

from minidp import nn
from minidp.backend import to_host
from minidp.errors import ShapeError


def test_equal_numbers_become_the_shift(rng):
    layer = nn.GroupNorm(4, 2, dtype="float64")
    layer.params["shift"][:] = rng.standard_normal(4)
    y, cache = layer.forward(np.full((2, 3, 4), 7.0))
    np.testing.assert_array_equal(y, np.broadcast_to(layer.params["shift"], y.shape))
    assert np.isfinite(layer.backward(np.ones(y.shape), cache)).all()


def test_a_group_of_one_number_is_refused():
    with pytest.raises(ShapeError, match="expected two or more numbers to normalise together"):
        nn.GroupNorm(4, 4).forward(np.zeros((2, 4)))
    with pytest.raises(ShapeError, match="expected two or more numbers"):
        nn.Sequential([nn.GroupNorm(4, 4)], (1, 1, 4))
    with pytest.raises(ShapeError, match="expected two or more numbers"):
        nn.LayerNorm(1).forward(np.zeros((2, 5, 1)))
    assert nn.GroupNorm(4, 4).forward(np.zeros((2, 3, 4)))[0].shape == (2, 3, 4)  # three positions are enough


@pytest.mark.parametrize("size", [1e30, 1.0, 1e-30])
def test_rows_of_any_size_get_unit_length_and_rows_of_zeros_stay(size, backend):
    x = np.array([[3, 4], [0, 0], [-6, 8]], np.float32) * np.float32(size)
    layer, dy = nn.UnitNorm(), np.array([[4, -3], [1, 1], [-6, 8]], np.float32)
    y, cache = layer.forward(backend.asarray(x))
    np.testing.assert_allclose(to_host(y), [[0.6, 0.8], [0, 0], [-0.6, 0.8]], rtol=1e-6)
    dx = to_host(layer.backward(backend.asarray(dy), cache)) * np.float32(size)
    np.testing.assert_allclose(dx, [[0.8, -0.6], [0, 0], [0, 0]], atol=1e-6)  # across, zero, along
