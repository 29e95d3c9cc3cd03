"""What compiled kernels share, inlined where it is called: series, and the bits of a float64."""

import numpy as np

from . import series
from .jit import njit

inlined = njit(inline="always", error_model="numpy")


@inlined
def horner(coefficients, x):
    """`series.polynomial` in a kernel, of a constant tuple."""
    y = coefficients[-1]
    for n in range(len(coefficients) - 2, -1, -1):
        y = y * x + coefficients[n]
    return y


exp_parts = inlined(series.exp_parts)
log_of = inlined(series.log_of)


@inlined
def half(t):
    """2^(k - 1), the integer k being the last bits of t, as `series.exp_parts` gives it."""
    return np.int64((np.float64(t).view(np.int64) + 1022) << 52).view(np.float64)


@inlined
def split(x):
    """(m, n): x = 2^n m, m as `log_of` takes it; x a positive number, and not subnormal."""
    bits = np.float64(x).view(np.int64) - series.SPLIT
    return np.int64((bits & (2**52 - 1)) + series.SPLIT).view(np.float64), np.float64(bits >> 52)
