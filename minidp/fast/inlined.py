"""What compiled kernels share, inlined where it is called: series, and the bits of a float64."""

import math

import numpy as np

from ..host.jit import njit
from ..host.series import LN2, SPLIT
from ..host.series import log_of as series_of_log

LN2_HIGH = math.floor(LN2 * 2**32) / 2**32  # its product with an integer of 11 bits is exact
LN2_LOW = 1.9082149292705877e-10  # ln 2 - LN2_HIGH, which float64 cannot compute
INVERSE_LN2 = 1 / LN2
EXP = tuple(1 / math.factorial(n) for n in range(2, 14))  # exp r = 1 + r + r^2 (1/2 + r/6 + ...)
MAGIC = 1.5 * 2.0**52  # float64 of this size are the integers

inlined = njit(inline="always", error_model="numpy")


@inlined
def horner(coefficients, x):
    """`series.polynomial` in a kernel, of a constant tuple."""
    y = coefficients[-1]
    for n in range(len(coefficients) - 2, -1, -1):
        y = y * x + coefficients[n]
    return y


@inlined
def horner_on(y, coefficients, x):
    """y x^k + the sum of the k coefficients' terms: `horner` of a longer tuple whose end gave y."""
    for n in range(len(coefficients) - 1, -1, -1):
        y = y * x + coefficients[n]
    return y


log_of = inlined(series_of_log)


@inlined
def exp_parts(x):
    """(t, p): exp x = 2^k (1 + p), the integer k being the last bits of t."""
    t = x * INVERSE_LN2 + MAGIC
    k = t - MAGIC
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    return t, r + (r * r) * horner(EXP, r)


@inlined
def half(t):
    """2^(k - 1), the integer k being the last bits of t, as `exp_parts` gives it."""
    return np.int64((np.float64(t).view(np.int64) + 1022) << 52).view(np.float64)


@inlined
def split(x):
    """(m, n): x = 2^n m, m as `log_of` takes it; x a positive number, and not subnormal."""
    bits = np.float64(x).view(np.int64) - SPLIT
    return np.int64((bits & (2**52 - 1)) + SPLIT).view(np.float64), np.float64(bits >> 52)
