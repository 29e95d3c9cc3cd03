"""Trade-off curves."""
import math

import numpy as np
import pytest

from minidp.errors import ParameterError
from minidp.privacy import Gaussian, GaussianAccountant, LossDistributionAccountant, PoissonSampled
from minidp.privacy.gaussian import gaussian_delta
from minidp.privacy.tradeoff import (accountant_curve, double_conjugate, epsilon_delta_curve,
                                     gaussian_curve, inverse_curve, sampled_curve, symmetrised, true_positive_rate)
from tests.support.accountants import ledger_of

ALPHAS = np.linspace(0.0, 1.0, 401)


def test_epsilon_delta_curve_at_its_ends():
    assert np.all(epsilon_delta_curve(ALPHAS, math.inf, 0.0) == 0)
    assert np.allclose(epsilon_delta_curve(ALPHAS, 0.0, 0.0), 1 - ALPHAS)


def test_gaussian_curve_is_its_own_inverse():
    betas = gaussian_curve(ALPHAS, 1.3)
    assert np.allclose(gaussian_curve(betas, 1.3), ALPHAS, atol=1e-12)
    assert np.allclose(gaussian_curve(ALPHAS, 0.0), 1 - ALPHAS)
    assert np.allclose(inverse_curve(ALPHAS, betas), betas, atol=2e-3)


def test_gaussian_curve_is_the_envelope_of_its_epsilons_and_deltas():
    mu = 0.8
    lines = [epsilon_delta_curve(ALPHAS, e, gaussian_delta(e, mu)) for e in np.linspace(0, 6, 200)]
    assert np.allclose(np.max(lines, axis=0), gaussian_curve(ALPHAS, mu), atol=1e-3)


def test_double_conjugate_is_the_convex_hull():
    bumpy = 1 - ALPHAS + 0.1 * np.sin(9 * ALPHAS) ** 2
    hull = double_conjugate(ALPHAS, bumpy)
    assert np.all(hull <= bumpy + 1e-15) and np.all(np.diff(hull, 2) >= -1e-12)
    slopes = np.linspace(-3.0, 1.0, 4001)
    again = np.max(np.multiply.outer(ALPHAS, slopes) - np.max(np.multiply.outer(slopes, ALPHAS) - bumpy, axis=1), axis=1)
    assert np.allclose(again, hull, atol=1e-3)


def test_sampled_gaussian_against_the_loss_distribution():
    one_way = sampled_curve(ALPHAS, gaussian_curve(ALPHAS, 1.0), 0.2)
    certified = accountant_curve(LossDistributionAccountant(), ledger_of((PoissonSampled(0.2, Gaussian(1.0)), 1)), ALPHAS,
                                 np.linspace(0.0, 1.2, 60))
    assert np.allclose(certified, symmetrised(ALPHAS, one_way), atol=3e-3)


def test_curve_of_an_accountant_lies_below_the_truth():
    found = accountant_curve(GaussianAccountant(), ledger_of((Gaussian(1.0), 1)), ALPHAS)
    exact = gaussian_curve(ALPHAS, 1.0)
    assert np.all(found <= exact + 1e-9) and np.max(exact - found) < 0.02


def test_true_positive_rate():
    betas = gaussian_curve(ALPHAS, 1.0)
    assert true_positive_rate(ALPHAS, betas, 0.1) == pytest.approx(1 - gaussian_curve([0.1], 1.0)[0], abs=1e-4)
    with pytest.raises(ParameterError):
        true_positive_rate(ALPHAS, betas, 1.5)
    with pytest.raises(ParameterError):
        true_positive_rate(ALPHAS, betas[:-1], 0.5)
