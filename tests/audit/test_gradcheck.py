"""The checker is checked: it fails every wrong gradient; that it passes right ones, every layer shows."""
import math

import numpy as np
import pytest

from minidp import nn
from minidp.audit import gradcheck
from minidp.errors import ShapeError

TOLERANCE = 1e-13


class Changed(nn.Tanh):
    """Tanh whose input gradient goes through a change."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def _gradient(self, dy, y, xp):
        return self.change(super()._gradient(dy, y, xp))


class ChangedDense(nn.Dense):
    """Dense whose per-example gradient of W goes through a change."""

    change = staticmethod(lambda a: a)

    def param_grads(self, dy, cache):
        grads = super().param_grads(dy, cache)
        grads["W"].a = self.change(grads["W"].a)
        return grads


def change_one(factor):
    def change(g):
        g = g.copy()
        g.flat[0] *= factor
        return g

    return change


WRONG = {
    "factor": lambda g: (1 + 1e-9) * g, "sign": lambda g: -g, "zero": np.zeros_like, "one entry": change_one(1 + 1e-9),
    "examples swapped": lambda g: g[[1, 0, 2, 3]], "not a number": lambda g: g * np.nan, "infinite": change_one(np.inf),
}


@pytest.mark.parametrize("layer", [nn.ReLU(), nn.MaxPool2D(2, 1)], ids=["relu", "max pool"])
def test_what_is_piecewise_linear_is_differentiated_next_to_a_kink(layer, rng):
    x = 1e-12 * rng.uniform(-1, 1, (4, 3, 3, 2))
    assert gradcheck.layer_input_error(layer, x, rng) < TOLERANCE
    assert gradcheck.directional_error(
        lambda at: layer.forward(at)[0].sum(), np.ones_like(x), x, rng) > 0.1  # neither is the identity there


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_wrong_gradients_fail(change, rng):
    x, layer = rng.uniform(-1, 1, (4, 3)), ChangedDense(3, 2, rng=rng, dtype="float64")
    layer.change = change
    errors = gradcheck.layer_param_errors(layer, x, rng)
    assert gradcheck.layer_input_error(Changed(change), x, rng) > 10 * TOLERANCE
    assert errors["W"] > 10 * TOLERANCE and errors["b"] < TOLERANCE


def test_a_gradient_of_another_shape_is_refused(rng):
    # summed over examples, it would broadcast
    summed = Changed(lambda g: g.sum(axis=0, keepdims=True))
    with pytest.raises(ShapeError, match=r"expected a gradient of shape \(4, 3\), got \(1, 3\)"):
        gradcheck.layer_input_error(summed, rng.uniform(-1, 1, (4, 3)), rng)


@pytest.mark.parametrize("measured, expected, scale, error", [
    (1.0, 1.0, 0, 0), (0.0, 0.0, 0, 0), (1.0, 2.0, 0, 0.5), (1.0, 2.0, 10.0, 0.1), (math.nan, 1.0, 1, math.inf),
    (1.0, math.nan, 1, math.inf), (math.inf, math.inf, 1, math.inf), ([1.0, 4.0], [1.0, 2.0], 0, 0.5)])
def test_relative_error(measured, expected, scale, error):
    assert gradcheck.relative_error(measured, expected, scale) == error
