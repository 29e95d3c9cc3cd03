"""Attacks on the machine's numbers: roundings that line up."""

from itertools import product

import numpy as np

from minidp.backend import to_host
from minidp.grads import Outer
from minidp.mechanism import Sanitizer, flat_group
from minidp.mechanism.rounding import DOUBLE, products

KEY = ("layer", "W")
LARGE = 1 - 2**-10  # a contribution just below the clip norm


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
