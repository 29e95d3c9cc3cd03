"""Numba kernels for the log moments of the sampled Gaussian; float64 in, float64 out, no objects.

Notation: m = 1/sigma, noise measured in its own standard deviation, so that Q = N(0, 1) and the
other measure is P = (1-q) N(0, 1) + q N(m, 1). With s(x) = dP/dQ - 1 = q expm1(m x - m^2/2), whose
mean under Q is 0, every moment is

    E_Q[(dP/dQ)^n] - 1 = integral of phi(x) [ (1+s)^n - 1 - n s ] dx,

an integrand that is never negative for n >= 1 or n <= 0: full relative precision however small the
moment. n = lambda + 1 gives E2 of Abadi et al. 2016, Section 3.2.
"""

import math

import numpy as np

from ..host.jit import CACHED, njit

TAIL = 11.0  # integration leaves out a tail of Phi(-11) = 2e-28, relative, on each side
MOST_POINTS = 2**15  # of one integral: a millisecond
RELATIVE_ERROR = (
    1e-12  # trapezoidal rule (<= 1e-14), tails, and rounding of a sum of positive terms
)


@njit(cache=CACHED)
def excess(s, n):
    """(1+s)^n - 1 - n s as (value, log scale): value * exp(log scale); s > -1."""
    if abs(s) * n < 0.3:
        term = total = 0.5 * n * (n - 1.0) * s * s
        k = 2.0
        while abs(term) > 1e-18 * abs(total):
            term *= (n - k) / (k + 1.0) * s
            total += term
            k += 1.0
        return total, 0.0
    t = n * math.log1p(s)
    if t <= 600.0:
        return math.expm1(t) - n * s, 0.0
    return 1.0 - (1.0 + n * s) * math.exp(-t), t


@njit(cache=CACHED)
def trapezoid_step(m, n):
    """A step for which the trapezoidal rule errs by less than 1e-14 of the integral.

    On the line x + i a the Gaussian grows by exp(a^2/2) and |s| by at most the factor in `growth`,
    so the rule errs by at most exp(growth - 2 pi a / step) (Trefethen, Weideman 2014, Theorem 5.1).
    Powers that are no integers have their branch point at a m = pi.
    """
    if n == math.floor(n) and n >= 2.0:
        a = 8.0
    elif n >= 2.0:
        a = min(8.0, 3.0 / m)
    else:
        a = min(8.0, min(1.2, 3.0 / math.sqrt(2.0 + n)) / m)
    growth = 0.5 * a * a + math.log(4.0 * (1.0 + 4.0 * a * a))
    if n < 2.0:
        growth += (2.0 + n) * -math.log(math.cos(a * m))
    return 2.0 * math.pi * a / (33.0 + growth)


@njit(cache=CACHED)
def integration_range(q, m, n):
    """An interval outside of which the integrand holds less than 1e-24 of the integral.

    phi r^n with r = 1 + s is stationary where x = n m w(x); w = q e^u / r rises from 0 to 1. Each
    iterate of x -> n m w(x) from above bounds the last stationary point. If n s is small, the
    integrand is close to phi s^2, a Gaussian around at most 2 m.
    """
    peak = n * m
    for _ in range(50):
        u = m * peak - 0.5 * m * m
        weight = 1.0 / (1.0 + (1.0 - q) / q * math.exp(-u)) if u > -700.0 else 0.0
        if n * m * weight > peak - 1.0:
            break
        peak = n * m * weight
    return -TAIL, max(peak, 2.0 * m) + TAIL + 1.0


@njit(cache=CACHED)
def log_excess_moment(q, sigma, n):
    """log (E_Q[(dP/dQ)^n] - 1) by the trapezoidal rule, for 0 < q <= 1 and n > 1; NaN for too many
    points.
    """
    m = 1.0 / sigma
    step = trapezoid_step(m, n)
    low, high = integration_range(q, m, n)
    if not high - low < MOST_POINTS * step:
        return math.nan
    points = int(math.ceil((high - low) / step)) + 1
    scale, total = -1e300, 0.0
    for i in range(points):
        x = low + i * step
        u = m * x - 0.5 * m * m
        if u < 700.0:
            value, log_scale = excess(q * math.expm1(u), n)
        else:  # r = q e^u, in logs
            value, log_scale = 1.0, n * (math.log(q) + u)
        log_scale -= 0.5 * x * x
        if value <= 0.0:
            continue
        if log_scale > scale + 30.0:  # a new peak: rescale the sum so far
            total *= math.exp(max(scale - log_scale, -745.0))
            scale = log_scale
        total += value * math.exp(log_scale - scale)
    return math.log(total) + scale + math.log(step / math.sqrt(2.0 * math.pi))


@njit(cache=CACHED)
def binomial_sum(q, sigma, n):
    """(value, error) of log E_Q[(dP/dQ)^n] at an integer n >= 2.

    exp(value) - 1 = sum_{k>=2} C(n, k) (1-q)^(n-k) q^k expm1(k(k-1) / (2 sigma^2)): positive terms
    only.
    """
    scale, total, largest = -1e300, 0.0, 0.0
    for k in range(2, n + 1):
        x = 0.5 * k * (k - 1) / (sigma * sigma)
        binomial = math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)
        log_term = binomial + (n - k) * math.log1p(-q) + k * math.log(q) + x
        if x < 1e-300:
            log_term += -1e300 if x == 0.0 else math.log(x)
        else:
            log_term += math.log(-math.expm1(-x))
        if log_term > scale:
            total *= math.exp(max(scale - log_term, -745.0))
            scale = log_term
            largest = abs(x) + abs(k * math.log(q)) + math.lgamma(n + 1.0)
        total += math.exp(log_term - scale)
    value = np.logaddexp(0.0, math.log(total) + scale)
    return value, (1e-14 * n + 2e-15 * largest) * -math.expm1(-value) + 4e-16 * value


@njit(cache=CACHED)
def log_moments(q, sigma, exponents):
    """(value, error), both (len(exponents),): log E_Q[(dP/dQ)^n] of each n by integration is at
    most value + error.

    It is also at least value - error, unless integrals take too many points (q n / sigma far above
    1). Then the value lies on the chord between the binomial sums of the two nearest integers,
    which is an upper bound because the logarithm of a moment is convex in n.
    """
    value, error = np.empty(len(exponents)), np.empty(len(exponents))
    for i in range(len(exponents)):
        n = exponents[i]
        log_excess = log_excess_moment(q, sigma, n)
        if math.isnan(log_excess):
            below = math.floor(n)
            low, low_error = binomial_sum(q, sigma, int(below)) if below > 1.0 else (0.0, 0.0)
            high, high_error = binomial_sum(q, sigma, int(below) + 1)
            value[i] = low + (n - below) * (high - low)
            error[i] = max(low_error, high_error)
            continue
        value[i] = np.logaddexp(0.0, log_excess)
        reach = n / sigma + TAIL  # exponents as large as reach^2 are rounded on the way
        relative = RELATIVE_ERROR + 2e-15 * reach * reach
        error[i] = relative * -math.expm1(-value[i]) + 4e-16 * value[i]
    return value, error
