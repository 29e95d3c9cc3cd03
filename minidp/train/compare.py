"""Gradients beside differences of what they are the gradients of, at random numbers.

Gradients are compared along a random direction, example by example. With central differences an
example passes if one of several steps agrees, so that a kink on the way does not matter.
"""

import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..backend import to_host
from ..errors import TrialError

JITTER = 0.1  # moves numbers away from the ties and kinks that exact zeros sit on


class Differences(NamedTuple):
    """How gradients are compared: the steps, the largest relative error of a derivative that
    passes, and the largest relative difference that passes for rounding.
    """

    steps: tuple
    tolerance: float
    apart: float = 1e-6


# 1e-8 is small beside the distance to kinks, 1e-2 large for what is float32 inside
CENTRAL = (1e-8, 1e-5, 1e-2, 1e-5)
QUICK = Differences(CENTRAL, 1e-3)


class Compared(NamedTuple):
    """A gradient beside differences, a number for each example; best: the smallest error of all
    steps, the others are those of the last one.
    """

    best: NDArray
    slopes: NDArray
    expected: NDArray
    error: NDArray


def compare(how, rng, shape, moved, y, dy, gradient):
    """Compare a gradient (B, *shape of the array) with differences of sum y dy (B,) along random
    directions of an array's shape; moved(by) is y where the array is moved.
    """
    norms, floor = np.sqrt(per_example(gradient**2)), 1e-5 * np.abs(per_example(y * dy))
    best = np.where(np.isfinite(floor), np.inf, 0)
    for step in how.steps:
        v = direction(rng, shape)
        slopes = np.real(per_example((moved(step * v) - moved(-step * v)) * dy) / (2 * step))
        expected = per_example(gradient * v)
        scale = np.maximum.reduce([np.abs(slopes), np.abs(expected), norms, floor])
        error = np.abs(slopes - expected) / np.where(scale > 0, scale, 1)
        best = np.fmin(best, error)
        if best.max(initial=0) <= how.tolerance:
            break
    return Compared(best, slopes, expected, error)


def host_copy(network, dtype="float64", asarray=np.asarray):
    """A copy whose arrays, in layers, their attributes, lists and dictionaries, are on the host,
    floats in `dtype`, or where `asarray` moves them.
    """
    moved, seen, todo = {}, set(), [network]
    for value in todo:  # which grows
        inner = vars(value) if hasattr(value, "params") else value
        inner = list(inner.values()) if isinstance(inner, dict) else inner
        if isinstance(inner, (list, tuple)):
            todo += [each for each in inner if id(each) not in seen]
            seen.update(map(id, inner))
        elif hasattr(value, "dtype") and isinstance(getattr(value, "shape", None), tuple):
            host = to_host(value)
            kind = dtype if host.dtype.kind == "f" else host.dtype
            moved[id(value)] = asarray(np.array(host, dtype=kind))
    try:
        return copy.deepcopy(network, moved)
    except (TypeError, copy.Error, RecursionError) as error:
        raise TrialError(
            f"the network cannot be copied to be tried ({error}); give its layers __deepcopy__"
        ) from error


def arrays_of(part):
    """{name: bytes} of the arrays of a layer, or of a network's layers, and {name: length} of its
    lists.
    """
    found = {}
    for layer in getattr(part, "layers", [part]):
        held = {**vars(layer), **layer.params, **layer.constants}
        for name, value in held.items():
            if isinstance(getattr(value, "shape", None), tuple):
                found[f"{layer.where}.{name}"] = to_host(value).tobytes()
            elif isinstance(value, list):
                found[f"{layer.where}.{name}"] = len(value)
    return found


def targets(y, z, rng):
    """Random targets for z (B, K), with the dtype of y and the shape of its rows: classes, the
    first two the same, or numbers in (0, 1).
    """
    shape, kind = (len(z), *y.shape[1:]), y.dtype.kind
    if kind == "f":
        return rng.uniform(0, 1, shape).astype(y.dtype.name)
    if kind not in "iub":
        return np.zeros(shape, y.dtype)
    classes = max(z.shape[-1], 2) if len(shape) == z.ndim - 1 and kind in "iu" else 2
    found = rng.integers(0, classes, shape).astype(y.dtype.name)
    found[1:2] = found[:1]
    return found


def direction(rng, shape):
    """Numbers of either sign, none near 0."""
    return rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape)


def per_example(array):
    """(B,) sums over everything but the examples."""
    return array.sum(axis=tuple(range(1, array.ndim)))
