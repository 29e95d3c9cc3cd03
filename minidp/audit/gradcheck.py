"""Do the hand-written gradients differentiate the forward pass? Measured, not believed.

Every function returns the largest relative error it saw, in float64, for a *random* upstream gradient: with
ones, a wrong softmax backward agrees to 4e-16. The reference is a central difference along a random direction
(about 1e-9 for smooth functions), a complex step (about 1e-15, where the layer takes complex numbers), or
differences of one parameter at a time. Points near a kink are refused, since nothing is proved there.
"""
import math

import numpy as np

from ..backend import to_host
from ..errors import MinidpError, ShapeError

STEP = 1e-5
COMPLEX_STEP = 1e-200
KINK_TOLERANCE = 1e-4


class KinkError(MinidpError):
    """The function is not differentiable near the point of the check; choose another point."""


def random_direction(shape, rng):
    """A direction none of whose components is small, so that no coordinate's error can hide."""
    return rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape)


def relative_error(measured, expected, scale=0.0):
    """|measured - expected| over the larger of their sizes and `scale`, the size typical of such numbers.

    Infinity where one is not finite: NaN is larger than nothing and would pass for agreement.
    """
    if not (math.isfinite(measured) and math.isfinite(expected)):
        return math.inf
    size = max(abs(measured), abs(expected), scale)
    return 0.0 if size == 0 else abs(measured - expected) / size


def directional_error(function, gradient, x, rng, directions=3):
    """Error of `gradient` (of x's shape) of a scalar function at x, by central differences.

    Raises KinkError where the slopes on the two sides of x differ, ShapeError if the shapes do.
    """
    return _error_along(lambda v, scale: _slope(function, x, v, scale), gradient, x, rng, directions)


def complex_step_error(function, gradient, x, rng, directions=3):
    """Error of `gradient` of a scalar, analytic function at x, by Im f(x + ihv) / h: no cancellation."""
    return _error_along(lambda v, scale: float(np.imag(function(x + 1j * COMPLEX_STEP * v)) / COMPLEX_STEP),
                        gradient, x, rng, directions)


def _error_along(slope, gradient, x, rng, directions):
    _same_shape(gradient, x.shape)
    scale, worst = float(np.sqrt((gradient**2).sum())), 0.0
    for _ in range(directions):
        v = random_direction(x.shape, rng)
        worst = max(worst, relative_error(slope(v, scale), float((gradient * v).sum()), scale))
    return worst


def _slope(function, x, v, scale):
    below, near_below, here, near_above, above = (function(x + k * STEP * v) for k in (-1, -0.5, 0, 0.5, 1))
    wide, narrow = (above - below) / (2 * STEP), (near_above - near_below) / STEP
    bend, near_bend = (above - 2 * here + below) / STEP, 2 * (near_above - 2 * here + near_below) / STEP
    size = max(abs(above - here) / STEP, abs(here - below) / STEP, scale)
    # The bend of a smooth function halves with the step and its slope settles; at a kink one of them does not.
    if size and max(abs(bend - 2 * near_bend), abs(wide - narrow)) > KINK_TOLERANCE * size + 1e-9:
        raise KinkError("the function has a kink near this point")
    return (4 * narrow - wide) / 3  # Richardson: the error in STEP^2 cancels


def layer_input_error(layer, x, rng, complex_step=False, forward_rng=None, asarray=np.asarray):
    """Error of layer.backward at x (B, ...), a host array, for a random upstream gradient.

    forward_rng  () -> generator, for layers that draw: the same draw at every evaluation
    asarray      moves arrays to the device that holds the layer's parameters
    """
    def forward(at):
        y, cache = layer.forward(asarray(at), rng=forward_rng and forward_rng())
        return to_host(y), cache

    y, cache = forward(x)
    dy = rng.uniform(-1, 1, y.shape)
    dx = to_host(layer.backward(asarray(dy), cache))
    check = complex_step_error if complex_step else directional_error
    return check(lambda at: (forward(at)[0] * dy).sum(), dx, x, rng)


def layer_param_errors(layer, x, rng, forward_rng=None, asarray=np.asarray):
    """{parameter: error} of the per-example gradients, one parameter entry and example at a time.

    Meant for tiny shapes: the work is entries times examples. The arguments are those of layer_input_error.
    """
    def forward():
        y, cache = layer.forward(asarray(x), rng=forward_rng and forward_rng())
        return to_host(y), cache

    y, cache = forward()
    dy = rng.uniform(-1, 1, y.shape)
    axes, errors = tuple(range(1, dy.ndim)), {}
    for name, grad in layer.param_grads(asarray(dy), cache).items():
        kept = layer.params[name]
        per_example, host = to_host(grad.materialise()), to_host(kept)
        _same_shape(per_example, (len(x), *host.shape))
        numeric = np.empty_like(per_example)
        for index in np.ndindex(host.shape):
            values = []
            for k in (-1, -0.5, 0.5, 1):
                moved = host.copy()
                moved[index] += k * STEP
                layer.params[name] = asarray(moved)
                values.append((forward()[0] * dy).sum(axis=axes))
            below, near_below, near_above, above = values
            numeric[(slice(None), *index)] = (4 * (near_above - near_below) / STEP - (above - below) / (2 * STEP)) / 3
        layer.params[name] = kept
        scale = float(np.abs(numeric).max(initial=0))
        worst = float(np.abs(per_example - numeric).max(initial=0))
        errors[name] = (worst / scale if scale else worst) if math.isfinite(worst) else math.inf
    return errors


def _same_shape(gradient, shape):
    """A gradient of another shape would broadcast, and a sum over examples could look right."""
    if tuple(gradient.shape) != tuple(shape):
        raise ShapeError(f"gradient check: expected a gradient of shape {tuple(shape)}, got {tuple(gradient.shape)}")


def loss_error(loss, z, target, rng, complex_step=False, asarray=np.asarray):
    """Error of a loss's gradient, for random weights of the examples."""
    target = asarray(target)
    losses, dz = loss(asarray(z), target)
    weights = rng.uniform(-1, 1, losses.shape)
    gradient = to_host(dz) * weights[:, None]
    check = complex_step_error if complex_step else directional_error
    return check(lambda at: (to_host(loss(asarray(at), target)[0]) * weights).sum(), gradient, z, rng)


def away_from_kinks(make, attempt, tries=20):
    """attempt(make()) with fresh points until none lies near a kink; raises KinkError after `tries`."""
    for _ in range(tries):
        try:
            return attempt(make())
        except KinkError:
            continue
    raise KinkError(f"no point without a kink in {tries} tries")
