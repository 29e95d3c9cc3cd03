"""Series of exp and log, for the definitions (`elementwise`, `host.chacha`) and their compiled
twins.
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
