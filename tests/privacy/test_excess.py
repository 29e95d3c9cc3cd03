"""A kernel of the moments beside fifty digits."""

import math

import mpmath
import pytest

from minidp.privacy import moment_kernels as kernels


def test_small_excess_keeps_every_digit():
    for s, n in [(1e-9, 2.0), (-1e-6, 40.5), (0.2, 7.5), (-0.3, 3.3)]:
        value, scale = kernels.excess(s, n)
        with mpmath.workdps(50):
            s50, n50 = mpmath.mpf(s), mpmath.mpf(n)
            exact = (1 + s50) ** n50 - 1 - n50 * s50
        assert value * math.exp(scale) == pytest.approx(float(exact), rel=1e-13)
