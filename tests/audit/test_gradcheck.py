"""The checker is checked: it passes right gradients and fails every wrong one."""
import math

import numpy as np
import pytest

from minidp import nn
from minidp.audit import gradcheck
from minidp.audit.gradcheck import KinkError
from minidp.errors import ShapeError

TOLERANCE = 1e-6


def cubic(x):
    return (x**3).sum()


class Changed(nn.Tanh):
    """Tanh whose input gradient goes through a change."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def _gradient(self, dy, y, xp):
        return self.change(super()._gradient(dy, y, xp))


class ScaledSoftmax(nn.Softmax):
    """Wrong by a factor of 3; its gradient vanishes when the upstream gradient is constant."""

    def _gradient(self, dy, y, xp):
        return 3 * super()._gradient(dy, y, xp)


class ChangedDense(nn.Dense):
    """Dense whose per-example gradient of W goes through a change."""

    change = staticmethod(lambda a: a)

    def param_grads(self, dy, cache):
        grads = super().param_grads(dy, cache)
        grads["W"].a = self.change(grads["W"].a)
        return grads


def swap_first_two(g):
    g = g.copy()
    g[[0, 1]] = g[[1, 0]]
    return g


def change_one(factor):
    def change(g):
        g = g.copy()
        g.flat[0] *= factor
        return g

    return change


WRONG = {
    "factor": lambda g: 1.001 * g, "sign": lambda g: -g, "zero": np.zeros_like, "one entry": change_one(1.001),
    "examples swapped": swap_first_two, "not a number": lambda g: g * np.nan, "infinite": change_one(np.inf),
}
wrong = pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
checks = pytest.mark.parametrize("complex_step", [False, True], ids=["differences", "complex step"])


def test_right_gradients_pass(rng):
    x = rng.uniform(-1, 1, (4, 3))
    assert gradcheck.directional_error(cubic, 3 * x**2, x, rng) < 1e-9
    assert gradcheck.complex_step_error(cubic, 3 * x**2, x, rng) < 1e-14
    assert gradcheck.layer_input_error(nn.Tanh(), x, rng) < 1e-9
    errors = gradcheck.layer_param_errors(ChangedDense(3, 2, rng=rng, dtype="float64"), x, rng)
    assert errors.keys() == {"W", "b"} and max(errors.values()) < 1e-9


@checks
@wrong
def test_wrong_input_gradients_fail(change, complex_step, rng):
    assert gradcheck.layer_input_error(Changed(change), rng.uniform(-1, 1, (4, 3)), rng, complex_step) > 10 * TOLERANCE


@wrong
def test_wrong_parameter_gradients_fail(change, rng):
    layer = ChangedDense(3, 2, rng=rng, dtype="float64")
    layer.change = change
    errors = gradcheck.layer_param_errors(layer, rng.uniform(-1, 1, (4, 3)), rng)
    assert errors["W"] > 10 * TOLERANCE and errors["b"] < TOLERANCE


@checks
@pytest.mark.parametrize("factor", [1.001, -1, 0, np.nan])
def test_wrong_loss_gradients_fail(factor, complex_step, rng):
    class Wrong(nn.SoftmaxCrossEntropy):
        def __call__(self, z, target):
            losses, dz = super().__call__(z, target)
            return losses, factor * dz

    z, target = rng.uniform(-1, 1, (4, 3)), rng.integers(0, 3, 4)
    assert gradcheck.loss_error(Wrong(), z, target, rng, complex_step) > 10 * TOLERANCE
    assert gradcheck.loss_error(nn.SoftmaxCrossEntropy(), z, target, rng, complex_step) < TOLERANCE


def test_a_gradient_of_ones_would_miss_what_a_random_one_finds(rng):
    x = rng.uniform(-1, 1, (4, 3))
    layer = ScaledSoftmax()
    y, cache = layer.forward(x)
    ones = np.ones_like(y)
    trap = gradcheck.relative_error(float(layer.backward(ones, cache).sum()), 0.0, scale=1.0)
    assert trap < 1e-12  # so agrees, though it is wrong by a factor of 3
    assert gradcheck.layer_input_error(layer, x, rng) > 0.1


@pytest.mark.parametrize("function, gradient, kink", [
    (lambda x: np.maximum(x, 0).sum(), lambda x: (x > 0) * 1.0, [0.0, 1.0]),
    (lambda x: np.abs(x).sum(), np.sign, [0.0, 1.0]),
    (lambda x: np.maximum(x[0], x[1]), lambda x: np.array([1.0, 0.0]), [1.0, 1.0])],
    ids=["relu", "absolute", "maximum"])
@pytest.mark.parametrize("offset", [0.0, 1e-7, 1.7e-6, 3.3e-6, 4.9e-6])
def test_kinks_within_a_step_are_noticed(function, gradient, kink, offset, rng):
    x = np.array(kink) + [offset, 0]
    for _ in range(30):
        with pytest.raises(KinkError, match="kink"):
            gradcheck.directional_error(function, gradient(x), x, rng)


@pytest.mark.parametrize("place", [0.01, 0.2, 1 / 3, 0.5, 2 / 3, 0.97])
@pytest.mark.parametrize("side", [-1, 1])
def test_no_place_within_the_step_hides_a_kink(place, side):
    # at a third of the step the bends agree by chance, and only the slopes tell
    v = gradcheck.random_direction((1,), np.random.default_rng(4))
    x = side * place * gradcheck.STEP * np.abs(v)
    with pytest.raises(KinkError):
        gradcheck.directional_error(lambda at: np.maximum(at, 0).sum(), (x > 0) * 1.0, x, np.random.default_rng(4), 1)


def test_relu_at_zero_is_noticed_among_other_coordinates(rng):
    x = rng.uniform(0.1, 1, (20, 10))
    assert gradcheck.layer_input_error(nn.ReLU(), x, rng) < TOLERANCE
    x[3, 4] = 0
    with pytest.raises(KinkError):
        gradcheck.layer_input_error(nn.ReLU(), x, rng)


def test_a_smooth_function_with_much_curvature_is_no_kink(rng):
    x = rng.uniform(-0.01, 0.01, 5)  # its slope is close to 0 and its curvature is not
    assert gradcheck.directional_error(lambda x: np.cosh(3 * x).sum(), 3 * np.sinh(3 * x), x, rng) < 1e-7


def test_away_from_kinks_tries_other_points_and_gives_up():
    points, tried = iter(range(10)), []

    def attempt(point, until=3):
        tried.append(point)
        if point < until:
            raise KinkError("here")
        return point

    assert gradcheck.away_from_kinks(lambda: next(points), attempt) == 3 and tried == [0, 1, 2, 3]
    with pytest.raises(KinkError, match="no point without a kink in 5 tries"):
        gradcheck.away_from_kinks(lambda: -1, attempt, tries=5)
    assert len(tried) == 9
    with pytest.raises(ZeroDivisionError):
        gradcheck.away_from_kinks(lambda: 0, lambda point: 1 / point)


@checks
def test_a_gradient_of_another_shape_is_refused(complex_step, rng):
    # summed over examples, it would broadcast
    summed = Changed(lambda g: g.sum(axis=0, keepdims=True))
    with pytest.raises(ShapeError, match=r"expected a gradient of shape \(4, 3\), got \(1, 3\)"):
        gradcheck.layer_input_error(summed, rng.uniform(-1, 1, (4, 3)), rng, complex_step)


def test_layers_that_draw_get_the_same_draw_each_time(rng):
    class Mask(nn.Tanh):
        def forward(self, x, *, rng=None):
            y, cache = super().forward(x)
            return y * rng.integers(0, 2, x.shape), cache

    x = rng.uniform(-1, 1, (4, 3))
    with pytest.raises(KinkError):  # a new mask at every evaluation looks like a jump
        gradcheck.layer_input_error(Mask(), x, rng, forward_rng=lambda: rng)
    fixed = gradcheck.layer_input_error(Mask(), x, rng, forward_rng=lambda: np.random.default_rng(3))
    assert 0.01 < fixed < math.inf  # the mask is missing from this backward, and that is seen


@pytest.mark.parametrize("measured, expected, scale, error", [
    (1.0, 1.0, 0, 0), (0.0, 0.0, 0, 0), (1.0, 2.0, 0, 0.5), (1.0, 2.0, 10.0, 0.1), (math.nan, 1.0, 1, math.inf),
    (1.0, math.nan, 1, math.inf), (math.inf, math.inf, 1, math.inf)])
def test_relative_error(measured, expected, scale, error):
    assert gradcheck.relative_error(measured, expected, scale) == error


def test_an_empty_batch_has_no_error(rng):
    assert gradcheck.layer_input_error(nn.Tanh(), np.zeros((0, 3)), rng) == 0
    assert gradcheck.layer_param_errors(ChangedDense(3, 2, rng=rng, dtype="float64"), np.zeros((0, 3)), rng) == {
        "W": 0, "b": 0}
