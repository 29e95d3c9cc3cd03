"""Transforms of masses: right within the bound that they report."""
import mpmath
import numpy as np
import pytest

from minidp.privacy.pld.fourier import spectrum_of


@pytest.mark.parametrize("main", [0.2, 0.999999])
def test_error_bound_holds_in_thirty_digits(main):
    rng = np.random.default_rng(1)
    knots = np.arange(-20, 44)
    mass = rng.random(len(knots))
    mass *= (1 - main) / mass.sum()
    mass[30] += main
    found, error = spectrum_of(mass, knots, 48)
    with mpmath.workdps(30):
        for frequency in range(25):
            exact = sum(mpmath.mpf(float(m)) * mpmath.expjpi(mpmath.mpf(-2 * int(k) * frequency) / 48)
                        for m, k in zip(mass, knots))
            assert abs(mpmath.mpc(complex(found[frequency])) - exact) <= error
    assert error < 1e-12
