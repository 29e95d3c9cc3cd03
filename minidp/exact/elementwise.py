"""exp, log and tanh with the same bits on every device, at every place of an array of any size.

Libraries differ, and NumPy may treat the end of an array differently from its body, so an example's
bits would depend on other examples. These functions use float64 operations that every device rounds
correctly, none fused, and round once to the array's dtype, float32 or float64. Complex arrays are
for derivatives by the complex step.
"""

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of
from ..host.series import LEAST, MOST, SATURATED, SPLIT, exp_parts, log_of
from ..kernels import by_twin


def exp(x: NDArray) -> NDArray:
    r"""The exponential of each coordinate.

    Forward
        [F1]  y = 2^k (1 + p) where x >= -708, else 0
        [M1]  k = rint(x / ln 2), p = sum_(n=1..13) r^n / n!, r = x - k ln 2    p is exp(r) - 1

    Source
        [F1]  own derivation: exp(x) = 2^k exp(r); below -708 float64 would lose digits
        [M1]  own derivation: |r| <= 0.3466, so that the first term left out is below 5e-18; ln 2 in
              two parts as in fdlibm's e_exp.c: 33 bits, whose product with k is exact, and the rest

    Guarantees
        Relative error in float64 below 5e-16. float32 is that, rounded once. NaN stays; overflow is
        infinity.
    """
    if (y := by_twin("exp", x)) is not None:
        return y
    wide, xp = _wide(x), namespace_of(x)
    p, half = _parts(xp.minimum(xp.maximum(wide, LEAST), MOST))
    return xp.where(wide.real < LEAST, 0, (2 + 2 * p) * half).astype(x.dtype)  # [F1]


def log(x: NDArray) -> NDArray:
    r"""The natural logarithm of each coordinate.

    Forward
        [F1]  y = n ln 2 + log m, m = x / 2^n, n = floor(log2 x + 1/2)    1/sqrt 2 <= m < sqrt
              2, but for rounding
        [M2]  log m = s sum_(i=0..9) 2 s^(2 i) / (2 i + 1), s = (m - 1) / (m + 1)

    Source
        [F1]  own derivation: log(2^n m)
        [M2]  own derivation: |s| <= 0.1716, so that the first term left out is below 3e-17 of log m

    Guarantees
        Relative error in float64 below 1e-15. float32 is that, rounded once. log 0 is -infinity, of
        less or of NaN NaN.
    """
    if (y := by_twin("log", x)) is not None:
        return y
    wide, xp = _wide(x), namespace_of(x)
    usual = (wide.real > 0) & (wide.real < np.inf)
    v = xp.where(usual, wide, 1)
    small = v.real < 1
    # so that 2^-n is no subnormal number, and x none after this
    v = v * xp.where(small, 2.0**54, 2.0**-54)
    n = (v.real.view(np.int64) - SPLIT) >> 52
    m = v * ((1023 - n) << 52).view(np.float64)
    n = (n + xp.where(small, -54, 54)).astype(np.float64)
    y = log_of(m, n)  # [F1] [M2]
    return xp.where(
        usual, y, xp.where(wide == 0, -np.inf, xp.where(wide.real > 0, wide, np.nan))
    ).astype(x.dtype)


def tanh(x: NDArray) -> NDArray:
    r"""The hyperbolic tangent of each coordinate.

    Forward
        [F1]  y = sign(x) (1 - e) / (1 + e), e = exp(-2 |x|), w (1 + p) = e,
              (1 - w) - w p = 1 - e    p as in exp, w = 2^k

    Source
        [F1]  own derivation: near 0, w = 1 and nothing cancels

    Guarantees
        Relative error in float64 below 1e-15. float32 is that, rounded once. tanh 0 is 0, NaN
        stays.
    """
    if (y := by_twin("tanh", x)) is not None:
        return y
    wide, xp = _wide(x), namespace_of(x)
    sign = xp.where(wide.real < 0, -1.0, 1.0)
    p, half = _parts(xp.maximum((sign * wide) * -2, SATURATED))
    w = 2 * half
    return (sign * (((1 - w) - w * p) / ((1 + w) + w * p))).astype(x.dtype)  # [F1]


def _parts(x):
    """(p, 2^(k - 1)) of exp [M1]: the sum with MAGIC rounds to an integer, which is the last bits
    of the sum.
    """
    t, p = exp_parts(x)  # [M1]
    return p, ((t.view(np.int64) + 1022) << 52).view(np.float64)


def _wide(x):
    return x.astype(np.result_type(x.dtype, np.float64))
