"""Series of exp and log for compiled kernels, and for `host.chacha`, the definition of one of them.
Kernels pass a `polynomial` of their own.
"""

import math

LN2 = math.log(2)
LN2_HIGH = math.floor(LN2 * 2**32) / 2**32  # its product with an integer of 11 bits is exact
LN2_LOW = 1.9082149292705877e-10  # ln 2 - LN2_HIGH, which float64 cannot compute
INVERSE_LN2 = 1 / LN2
EXP = tuple(1 / math.factorial(n) for n in range(2, 14))  # exp r = 1 + r + r^2 (1/2 + r/6 + ...)
# log m = s (2 + 2/3 s^2 + 2/5 s^4 + ...), s = (m - 1) / (m + 1)
LOG = tuple(2 / (2 * n + 1) for n in range(10))
SPLIT = 0x3FE6A09E00000000  # bits of a float64 just below 1/sqrt 2
MAGIC = 1.5 * 2.0**52  # float64 of this size are the integers
LEAST, MOST = -708.0, 710.0  # exp: nearly the least normal float64, more than the largest
SATURATED = -40.0  # tanh: 1 - exp(SATURATED) is 1


def polynomial(coefficients, x):
    """The sum of coefficient_n x^n, by Horner."""
    y = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        y = y * x + coefficient
    return y


def exp_parts(x, polynomial):
    """(t, p): exp x = 2^k (1 + p), the integer k being the last bits of t."""
    t = x * INVERSE_LN2 + MAGIC
    k = t - MAGIC
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    return t, r + (r * r) * polynomial(EXP, r)


def log_of(m, n, polynomial=polynomial):
    """ln(2^n m), m between 1/sqrt 2 and sqrt 2 but for rounding."""
    s = (m - 1) / (m + 1)
    return n * LN2 + s * polynomial(LOG, s * s)
