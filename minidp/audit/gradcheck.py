"""Do the hand-written gradients differentiate the forward pass? Measured, not believed.

Every function returns the largest relative error it saw, in float64, for a *random* upstream
gradient: with ones, a wrong softmax backward agrees to 4e-16. The reference is the complex step Im
f(x + ihv) / h, which knows no cancellation and so is right to about 1e-15. Complex numbers are
compared by their real parts first, so that the largest of some, and the sign of one, differentiate
as they should.
"""

import math

import numpy as np

from ..backend import to_host
from ..errors import ShapeError
from ..train.trial import direction

STEP = 1e-200


def relative_error(measured, expected, scale=0.0):
    """Largest |measured - expected| over the largest of their sizes and `scale`, the size typical
    of such numbers.

    Infinity where one is not finite: NaN is larger than nothing and would pass for agreement.
    """
    measured, expected = np.asarray(measured), np.asarray(expected)
    if not (np.isfinite(measured).all() and np.isfinite(expected).all()):
        return math.inf
    size = max(np.abs(measured).max(initial=0), np.abs(expected).max(initial=0), scale)
    return float(np.abs(measured - expected).max(initial=0) / size) if size else 0.0


def directional_error(function, gradient, x, rng, directions=3):
    """Error of `gradient` of a scalar function of a host array x. Raises ShapeError if it has
    another shape than x.
    """
    _same_shape(gradient, x.shape)
    scale, largest = float(np.sqrt((gradient**2).sum())), 0.0
    for _ in range(directions):
        v = direction(rng, x.shape)  # no coordinate's error can hide
        slope = np.imag(function(x + 1j * STEP * v)) / STEP
        largest = max(largest, relative_error(slope, (gradient * v).sum(), scale))
    return largest


def layer_input_error(layer, x, rng, asarray=np.asarray):
    """Error of layer.backward at x (B, ...), a host array; asarray moves arrays to where the
    parameters are.
    """
    y, cache = layer.forward(asarray(x))
    dy = rng.uniform(-1, 1, y.shape)
    dx = to_host(layer.backward(asarray(dy), cache))
    return directional_error(
        lambda at: (to_host(layer.forward(asarray(at))[0]) * dy).sum(), dx, x, rng
    )


def layer_param_errors(layer, x, rng, asarray=np.asarray):
    """{parameter: error} of the per-example gradients, one parameter entry and example at a time.

    Meant for tiny shapes: the work is entries times examples. The arguments are those of
    layer_input_error.
    """
    y, cache = layer.forward(asarray(x))
    dy, errors = rng.uniform(-1, 1, y.shape), {}
    for name, grad in layer.param_grads(asarray(dy), cache).items():
        kept = layer.params[name]
        per_example, host = to_host(grad.materialise()), to_host(kept)
        _same_shape(per_example, (len(x), *host.shape))
        slopes = np.empty_like(per_example)
        for index in np.ndindex(host.shape):
            moved = host.astype(complex)
            moved[index] += 1j * STEP
            layer.params[name] = asarray(moved)
            y = to_host(layer.forward(asarray(x.astype(complex)))[0])
            slopes[(slice(None), *index)] = (
                np.imag((y * dy).sum(axis=tuple(range(1, dy.ndim)))) / STEP
            )
        layer.params[name] = kept
        errors[name] = relative_error(per_example, slopes)
    return errors


def loss_error(loss, z, target, rng, asarray=np.asarray):
    """Error of a loss's gradient, for random weights of the examples."""
    target = asarray(target)
    losses, dz = loss(asarray(z), target)
    weights = rng.uniform(-1, 1, losses.shape)
    return directional_error(
        lambda at: (to_host(loss(asarray(at), target)[0]) * weights).sum(),
        to_host(dz) * weights[:, None],
        z,
        rng,
    )


def _same_shape(gradient, shape):
    """A gradient of another shape would broadcast, and a sum over examples could look right."""
    if tuple(gradient.shape) != tuple(shape):
        raise ShapeError(
            f"gradient check: expected a gradient of shape {tuple(shape)}, got "
            f"{tuple(gradient.shape)}"
        )
