"""The slow truths against numbers worked out by hand, and against what NumPy and SciPy say."""
import math

import numpy as np
import pytest
from scipy import special

from minidp import nn
from minidp.audit import reference
from minidp.mechanism import ClipGroup


def test_dense_and_project_by_hand():
    x, W = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]])
    np.testing.assert_array_equal(reference.dense(x, {"W": W, "b": np.array([10.0, 20.0, 30.0])}), [[25, 38, 51]])
    np.testing.assert_array_equal(reference.project(x, {"P": W}), [[15, 18, 21]])


@pytest.mark.parametrize("name, expected", [
    ("relu", lambda x: x.clip(0)), ("tanh", np.tanh), ("sigmoid", special.expit),
    ("softmax", lambda x: special.softmax(x, axis=-1))])
def test_activations_equal_scipy(name, expected, rng):
    x = rng.uniform(-3, 3, (4, 2, 3))
    np.testing.assert_allclose(getattr(reference, name)(x, {}), expected(x), rtol=1e-14)


def test_flatten_and_standardise_by_hand():
    x = np.arange(12.0).reshape(2, 3, 2)
    np.testing.assert_array_equal(reference.flatten(x, {}), [range(6), range(6, 12)])
    assert reference.flatten(x[:0], {}).shape == (0, 6)
    constants = {"mean": np.array([1.0, 2.0]), "scale": np.array([[1.0], [2.0], [4.0]])}
    np.testing.assert_array_equal(reference.standardise(x, constants)[0], [[-1, -1], [0.5, 0.5], [0.75, 0.75]])


def test_losses_by_hand():
    z = np.log([[1.0, 2.0, 5.0], [1.0, 1.0, 2.0]])
    np.testing.assert_allclose(reference.cross_entropy(z, [2, 0]), [math.log(8 / 5), math.log(4)], rtol=1e-15)
    np.testing.assert_array_equal(reference.squared_error(np.array([[1.0, 2.0]]), np.array([[4.0, -2.0]])), [12.5])


def test_single_example_gradients_by_hand():
    # z = w x, loss (z - y)^2 / 2, so the gradient of example b is (w x_b - y_b) x_b
    network = nn.Sequential([nn.Dense(1, 1, rng=np.random.default_rng(0), bias=False, dtype="float64")], (1,))
    network.params["dense1", "W"][...] = 3.0
    x, y = np.array([[1.0], [2.0], [0.0]]), np.array([[1.0], [10.0], [5.0]])
    grads = reference.single_example_grads(network, nn.SquaredError(), x, y)
    np.testing.assert_array_equal(grads["dense1", "W"], [[[2.0]], [[-8.0]], [[0.0]]])


def test_single_example_gradients_see_one_example_at_a_time(rng):
    class Loss(nn.SquaredError):
        sizes = []

        def __call__(self, z, target):
            self.sizes.append(len(z))
            return super().__call__(z, target)

    network = nn.Sequential([nn.Dense(2, 2, rng=rng, dtype="float64")], (2,))
    reference.single_example_grads(network, Loss(), rng.uniform(size=(3, 2)), rng.uniform(size=(3, 2)))
    assert Loss.sizes == [1, 1, 1]


def test_clipped_sum_by_hand():
    # per layer: a has norms 5 and 1, clipped to 2; b has norms 12 and 0, clipped to 3
    keys = [("a", "W"), ("b", "W")]
    grads = {keys[0]: np.array([[3.0, 4.0], [0.0, 1.0]]), keys[1]: np.array([[12.0], [0.0]])}
    layers = [ClipGroup("a", keys[:1], 2.0, 0.0), ClipGroup("b", keys[1:], 3.0, 0.0)]
    got = reference.clipped_sum(grads, layers)
    np.testing.assert_allclose(got[keys[0]], [1.2, 2.6], rtol=1e-15)
    np.testing.assert_allclose(got[keys[1]], [3.0], rtol=1e-15)
    flat = reference.clipped_sum(grads, [ClipGroup("all", keys, 6.5, 0.0)])  # norms 13 and 1
    np.testing.assert_allclose(flat[keys[0]], [1.5, 3.0], rtol=1e-15)
    np.testing.assert_allclose(flat[keys[1]], [6.0], rtol=1e-15)
