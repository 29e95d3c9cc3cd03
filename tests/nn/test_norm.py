"""What is special to normalisation: whose numbers are normalised together, and what would erase them."""
import numpy as np
import pytest

from minidp import nn
from minidp.errors import ParameterError, ShapeError


def test_each_group_of_each_example_has_mean_0_and_variance_1(rng):
    x = rng.normal(3, 5, (4, 6, 5, 8))
    y, _ = nn.GroupNorm(8, 4, dtype="float64").forward(x)
    groups = y.reshape((4, 30, 4, 2))
    np.testing.assert_allclose(groups.mean(axis=(1, 3)), 0, atol=1e-12)
    np.testing.assert_allclose(groups.var(axis=(1, 3)), 1, rtol=1e-5)


def test_one_group_on_images_is_layer_norm_of_whole_examples(rng):
    x = rng.standard_normal((3, 4, 5, 2))
    group, layer = nn.GroupNorm(2, 1, dtype="float64"), nn.LayerNorm((4, 5, 2), dtype="float64")
    np.testing.assert_allclose(group.forward(x)[0], layer.forward(x)[0], rtol=1e-12, atol=1e-13)


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


def test_per_example_gradients_sum_over_positions_only(rng):
    layer = nn.LayerNorm(3, dtype="float64")
    x, dy = rng.standard_normal((2, 2, 5, 4, 3))
    y, cache = layer.forward(x)
    grads = layer.param_grads(dy, cache)
    np.testing.assert_allclose(grads["scale"].materialise(), (dy * y).sum(axis=(1, 2)), rtol=1e-12)
    np.testing.assert_allclose(grads["shift"].materialise(), dy.sum(axis=(1, 2)), rtol=1e-12)


def test_wrong_settings_and_shapes_are_refused():
    for make in (lambda: nn.GroupNorm(6, 4), lambda: nn.GroupNorm(6, 0), lambda: nn.LayerNorm(0),
                 lambda: nn.LayerNorm(4, epsilon=0.0), lambda: nn.GroupNorm(4, 2, epsilon=-1.0)):
        with pytest.raises(ParameterError):
            make()
    with pytest.raises(ShapeError, match=r"norm1: expected input of shape \(..., 4\), got \(4, 3\)"):
        nn.GroupNorm(4, 2, name="norm1").forward(np.zeros((2, 4, 3)))
    with pytest.raises(ShapeError, match=r"norm2: expected input of shape \(..., 4, 3\), got \(3,\)"):
        nn.LayerNorm((4, 3), name="norm2").forward(np.zeros((2, 3)))
