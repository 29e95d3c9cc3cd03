"""Gaussian differential privacy: exact values, golden CLT figures, stable at the edges."""
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidp.privacy import FixedSizeSampled, Gaussian, GaussianAccountant, PoissonSampled
from minidp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from tests.support.accountants import ledger_of


@pytest.mark.parametrize("epsilon, mu", [(0.0, 0.0), (1e5, 1.0), (1e5, 400.0), (5e8, 3e4), (0.0, math.inf), (0.0, 1e4)])
def test_delta_stays_in_range_at_the_edges(epsilon, mu):
    assert 0 <= gaussian_delta(epsilon, mu) <= 1


@pytest.mark.parametrize("sigma, epochs, epsilon, uniform", [
    (1.3, 15, 0.834, 1.068), (1.1, 60, 2.324, 3.087), (0.7, 45, 5.066, 7.355), (0.6, 62, 9.98, None),
    (0.55, 68, 14.98, None), (0.5, 100, 31.12, None)])
def test_published_mnist_settings(sigma, epochs, epsilon, uniform):
    # Bu et al. 2020: N = 60,000, lots of 256; T = epochs * 60000 / 256 unrounded
    steps, q = epochs * 60000 / 256, 256 / 60000
    accountant = GaussianAccountant()
    mu = math.sqrt(steps * accountant.cost_curve(PoissonSampled(q, Gaussian(sigma)), False)[0])
    assert gaussian_epsilon(mu, 1e-5) == pytest.approx(epsilon, abs=0.6 * 10 ** -(3 if epsilon < 9 else 2))
    if uniform is not None:
        mu = math.sqrt(steps * accountant.cost_curve(FixedSizeSampled(60000, 256, Gaussian(sigma)), False)[0])
        assert gaussian_epsilon(mu, 1e-5) == pytest.approx(uniform, abs=6e-4)


@given(st.floats(1e-3, 20.0), st.floats(-300.0, -0.01))
@settings(max_examples=60, deadline=None)
def test_epsilon_inverts_delta(mu, log10_delta):
    delta = 10 ** log10_delta
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(epsilon, mu) <= delta * (1 + 1e-9)
    if epsilon > 0:
        assert gaussian_delta(epsilon * (1 - 1e-6) - 1e-9, mu) >= delta * (1 - 1e-9)


def test_noise_too_small_for_the_limit_is_infinite():
    assert GaussianAccountant().epsilon(ledger_of((PoissonSampled(0.1, Gaussian(0.03)), 1)), 1e-5).upper == math.inf
