"""The series of the logarithm, for `host.chacha` and for compiled kernels, which pass a
`polynomial` of their own.
"""

import math

LN2 = math.log(2)
# log m = s (2 + 2/3 s^2 + 2/5 s^4 + ...), s = (m - 1) / (m + 1)
LOG = tuple(2 / (2 * n + 1) for n in range(10))
SPLIT = 0x3FE6A09E00000000  # bits of a float64 just below 1/sqrt 2


def polynomial(coefficients, x):
    """The sum of coefficient_n x^n, by Horner."""
    y = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        y = y * x + coefficient
    return y


def log_of(m, n, polynomial=polynomial):
    """ln(2^n m), with m between 1/sqrt 2 and sqrt 2, up to rounding."""
    s = (m - 1) / (m + 1)
    return n * LN2 + s * polynomial(LOG, s * s)
