"""Attacks on the machine's numbers: the lattice of float32 noise, and roundings that line up."""

from itertools import product

import numpy as np

from minidp.backend import to_host
from minidp.grads import Outer
from minidp.mechanism import Sanitizer, flat_group
from minidp.mechanism.rounding import DOUBLE, products

KEY = ("layer", "W")
LARGE = 1 - 2**-10  # a contribution just below the clip norm


def box_muller(rng, size, sigma):
    """Draw Box and Muller's noise in float32: sigma r cos t of every pair, then sigma r sin t."""
    u, v = rng.random((2, size // 2), np.float32)
    r = np.sqrt(-2 * np.log1p(-u))
    t = np.float32(2 * np.pi) * v
    return np.concatenate([r * np.cos(t), r * np.sin(t)]) * np.float32(sigma)


def on_lattice(x, y, sigma):
    """Tell which (x, y) are sigma r cos t and sigma r sin t of float32 numbers r and t."""
    x, y = x.astype("float64"), y.astype("float64")
    near_r = (np.hypot(x, y) / sigma).astype("float32")
    near_t = (np.arctan2(y, x) % (2 * np.pi)).astype("float32")
    found = np.zeros(len(x), bool)
    for r in _neighbours(near_r):
        for t in _neighbours(near_t):
            same_x = r * np.cos(t) * np.float32(sigma) == x
            found |= same_x & (r * np.sin(t) * np.float32(sigma) == y)
    return found


def _neighbours(v):
    """The float32 numbers v, and the three on each side of them."""
    yield v
    for towards in (np.inf, -np.inf):
        moved = v
        for _ in range(3):
            moved = np.nextafter(moved, np.float32(towards))
            yield moved


def aligned(n, value, extra, half_ulps):
    """Give n numbers whose roundings in float32 line up.

    The first are `value`, until their sum is about a power of two, `extra` more or fewer; the
    others are just over half an ulp. With the first number the sum crosses the power of two, and
    every small number is rounded up; without it none is.
    """
    power = int(np.log2(n * 0.66))
    large = int(2**power / value) + extra
    return np.array([value] * large + [half_ulps * 2.0 ** (power - 24)] * (n - large), "float32")


def worst_neighbours(arithmetic, n, asarray, strategy="factored", batches=(1,)):
    """(the largest |S(D) - S(D')| / C found, what is charged) in lots of n examples.

    D' lacks the first example of D. asarray: moves the gradients to where they are summed; batches:
    the numbers of parts that a lot is summed in.
    """
    sanitizer = Sanitizer(flat_group([KEY], 1.0, 1.0), strategy, arithmetic)
    how = DOUBLE if sanitizer.exact else products(n, strategy)

    def total(v, parts):
        raw_sum = {}
        for d in np.array_split(v[:, None], min(parts, len(v))):
            grad = Outer(asarray(np.ones((len(d), 1), "float32")), asarray(d))
            sanitizer.add_clipped({KEY: grad}, raw_sum, products=how.for_lot(len(v)))
        return float(to_host(raw_sum[KEY])[0, 0]) / (2.0**32 if sanitizer.exact else 1.0)

    reached = 0.0
    for extra, ulps, parts in product((-1, 0, 1), (0.51, 1.01, 1.25, 2.51), batches):
        v = aligned(n, LARGE, extra, ulps)
        reached = max(reached, abs(total(v, parts) - total(v[1:], parts)))
    return reached, how.factor
