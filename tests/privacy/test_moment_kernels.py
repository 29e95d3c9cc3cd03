"""The log-moment kernels against 50 digits, against each other, and compiled against plain Python."""
import math

import mpmath
import numpy as np
import pytest

from minidp.privacy import moment_kernels as kernels
from tests.support.accountants import exact_log_moment, integrated_log_moment

GRID = [(q, sigma, order) for q in (1e-7, 1e-4, 0.01, 0.3, 0.999) for sigma in (0.1, 0.5, 1.0, 4.0, 100.0)
        for order in (1, 2, 19, 64, 256)]
# fractional orders, and negative powers (E1): (q, sigma, n)
REAL_POWERS = [(1e-3, 0.5, 1.3), (0.02, 4.0, 2.5), (0.5, 1.0, 17.25), (1e-6, 0.2, 1.05), (0.9, 3.0, 6.7),
               (0.01, 4.0, -5.0), (0.3, 1.0, -2.5), (0.9, 0.7, -9.0)]


def one(kernel, q, sigma, power):
    value, error = kernel(q, sigma, np.array([float(power)]))
    return value[0], error[0]


def test_integration_and_closed_form_against_fifty_digits():
    checked = 0
    for q, sigma, order in GRID:
        exact = exact_log_moment(q, sigma, order + 1)
        integrated = one(kernels.log_moments, q, sigma, order + 1)
        closed = one(kernels.log_moments_closed_form, q, sigma, order)
        for value, error in (integrated, closed):
            assert abs(value - exact) <= error, (q, sigma, order)       # the reported bound holds
            if exact > 1e-12:
                assert error <= 1e-9 * exact, (q, sigma, order)
                checked += 1
        assert integrated[0] == pytest.approx(closed[0], rel=1e-9)
    assert checked > 150


@pytest.mark.parametrize("q, sigma, n", REAL_POWERS)
def test_real_powers_against_fifty_digits(q, sigma, n):
    exact = integrated_log_moment(q, sigma, n)
    value, error = one(kernels.log_moments, q, sigma, n)
    assert abs(value - exact) <= error <= 1e-9 * exact


def test_small_excess_keeps_every_digit():
    for s, n in [(1e-9, 2.0), (-1e-6, 40.5), (3e-4, 900.0), (0.2, 7.5), (-0.3, 3.3), (0.05, -4.0)]:
        value, scale = kernels.excess(s, n)
        with mpmath.workdps(50):
            s50, n50 = mpmath.mpf(s), mpmath.mpf(n)
            exact = (1 + s50) ** n50 - 1 - n50 * s50
        assert value * math.exp(scale) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("q, sigma, n", [(1e-8, 0.1, 1025.0), (1e-8, 1000.0, 2.0), (1.0 - 1e-12, 0.1, 1025.0),
                                         (1e-100, 1e9, 2.0), (0.5, 1e-3, 1025.0), (0.5, 1000.0, 1025.0)])
def test_corners_stay_finite_and_below_the_unsampled_moment(q, sigma, n):
    value, error = one(kernels.log_moments, q, sigma, n)
    assert 0 <= value + error < math.inf
    assert value - error <= n * (n - 1) / (2 * sigma ** 2)
