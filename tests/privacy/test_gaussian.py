"""Gaussian differential privacy: exact values, golden CLT figures, stable at the edges."""
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from minidp.privacy import FixedSizeSampled, Gaussian, GaussianAccountant, PoissonSampled
from minidp.privacy.gaussian import gaussian_delta, gaussian_epsilon, mu_of
from tests.support.accountants import REPLACE_ONE, gaussian_delta as exact_delta, ledger_of


@pytest.mark.parametrize("mu", [1e-4, 0.01, 0.5, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0, 3.0, 8.0])
def test_delta_against_fifty_digits(mu, ratio):
    epsilon = mu * mu / 2 + ratio * mu
    assert gaussian_delta(epsilon, mu) == pytest.approx(exact_delta(epsilon, mu), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("epsilon, mu", [(0.0, 0.0), (1e5, 1.0), (1e5, 400.0), (5e8, 3e4), (0.0, math.inf), (0.0, 1e4)])
def test_delta_stays_in_range_at_the_edges(epsilon, mu):
    assert 0 <= gaussian_delta(epsilon, mu) <= 1


@pytest.mark.parametrize("steps, epsilon, mu", [(10000, 0.9424, 0.2540), (20000, 1.3802, 0.3592),
                                                (40000, 2.0284, 0.5079)])
def test_golden_values(steps, epsilon, mu):
    accountant = GaussianAccountant()
    ledger = ledger_of((PoissonSampled(0.01, Gaussian(4.0)), steps))
    bound = accountant.epsilon(ledger, 1e-5)
    assert bound.estimate == pytest.approx(epsilon, abs=5e-5) and bound.lower is None
    squared = steps * accountant.cost_curve(PoissonSampled(0.01, Gaussian(4.0)), False)[0]
    assert math.sqrt(squared) == pytest.approx(mu, abs=5e-5)


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


def test_uniform_sampling_form():
    # the formula of Bu et al. 2020 as it stands, where it does not cancel
    sigma, q = 0.8, 0.01
    term = math.exp(sigma ** -2) * ndtr(1.5 / sigma) + 3 * ndtr(-0.5 / sigma) - 2
    found = GaussianAccountant(REPLACE_ONE).cost_curve(FixedSizeSampled(100, 1, Gaussian(sigma)), False)[0]
    assert found == pytest.approx(2 * q * q * term, rel=1e-12)


def test_exact_without_sampling():
    accountant = GaussianAccountant()
    bound = accountant.epsilon(ledger_of((Gaussian(4.0), 9), (Gaussian(2.0), 1)), 1e-6)
    mu = math.sqrt(9 / 16 + 1 / 4)
    assert bound.lower <= bound.estimate <= bound.upper
    assert exact_delta(bound.upper, mu) <= 1e-6 <= exact_delta(bound.lower, mu)
    assert bound.upper - bound.lower < 1e-8


@given(st.floats(1e-3, 20.0), st.floats(-300.0, -0.01))
@settings(max_examples=60, deadline=None)
def test_epsilon_inverts_delta(mu, log10_delta):
    delta = 10 ** log10_delta
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(epsilon, mu) <= delta * (1 + 1e-9)
    if epsilon > 0:
        assert gaussian_delta(epsilon * (1 - 1e-6) - 1e-9, mu) >= delta * (1 - 1e-9)


@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-5), (0.1, 1e-9), (20.0, 1e-3), (0.0, 0.1)])
def test_mu_inverts_epsilon(epsilon, delta):
    mu = mu_of(epsilon, delta)
    assert gaussian_epsilon(mu, delta) <= epsilon + 1e-9
    assert gaussian_epsilon(mu * 1.0001, delta) > epsilon


def test_noise_too_small_for_the_limit_is_infinite():
    assert GaussianAccountant().epsilon(ledger_of((PoissonSampled(0.1, Gaussian(0.03)), 1)), 1e-5).upper == math.inf
