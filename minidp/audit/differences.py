"""Compare gradients with differences of their functions, at random numbers.

Gradients are compared along a random direction, example by example. With central differences an
example passes if one of several steps agrees, so that a kink on the way does not matter.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..train.tried import direction


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
    """A comparison of a gradient with differences, one number per example. best: the smallest error
    of all steps; the other fields belong to the last step.
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
    floor = np.maximum(floor, 1e-5 * norms[np.isfinite(norms)].max(initial=1e-30))
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


def per_example(array):
    """(B,) sums over everything but the examples."""
    return array.sum(axis=tuple(range(1, array.ndim)))
