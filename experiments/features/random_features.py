"""Random Fourier features: a Gaussian kernel as an inner product, with directions drawn from a
public seed.
"""

import math

import numpy as np

from minidp.backend import namespace_of
from minidp.host.chacha import COS
from minidp.host.series import polynomial

SEED = 0  # public


class RandomFeatures:
    r"""Cosines along random directions; a linear model of them is one of a Gaussian kernel, but for
    their number.

    Shapes
        x (B, I)   directions (I, D)   phases (D,)   z (B, D), of x's dtype

    Forward
        [F1]  z_bd = sqrt(2 / D) cos(sum_i x_bi w_id + p_d), w_id ~ N(0, 1 / width^2), p_d uniform
              in [0, 2 pi)
        [F2]  E z_b . z_c = exp(-|x_b - x_c|^2 / (2 width^2)), with a standard deviation of at most
              1 / sqrt(D)

    Source
        [F1]  Rahimi and Recht 2007, "Random features for large-scale kernel machines", Algorithm 1
        [F2]  Rahimi and Recht 2007, section 3; the deviation is ours: with d = w . (x_b - x_c) and
              s the sum's phase, 2 cos cos = cos d + cos s, whose variance is at most 1/2 + 1/2

    Guarantees
        Nothing depends on the data but z, and example b of z on example b of x only: no privacy is
        spent. |z_b|^2 is at most 2, and 1 on average over the directions.
    """

    def __init__(self, inputs, features, width):
        """inputs I, features D, width of the kernel in units of x."""
        rng = np.random.default_rng(SEED)
        self.features = features
        self._directions = rng.standard_normal((inputs, features), dtype=np.float32) / np.float32(
            width
        )
        self._phases = rng.uniform(0, 2 * math.pi, features)

    def __call__(self, x):
        """z (B, D)."""
        xp = namespace_of(x)
        directions, phases = (
            xp.asarray(a, dtype=x.dtype) for a in (self._directions, self._phases)
        )
        z = cosines(x @ directions + phases)
        return z * x.dtype.type(math.sqrt(2 / self.features))  # [F1] [F2]


def cosines(x):
    """cos x, the same bits at every place of an array and on every device; in float64 off by up to
    2^-51 (1 + |x|).
    """
    xp = namespace_of(x)
    turns = x.astype(xp.float64) * (1 / math.pi)  # half ones
    whole = xp.rint(turns)
    f = turns - whole
    odd = whole - 2 * xp.floor(whole / 2)
    return ((1 - 2 * odd) * polynomial(COS, f * f)).astype(x.dtype)
