"""Trade-off curves."""
import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from minidp.errors import ParameterError
from minidp.privacy import Gaussian, GaussianAccountant
from minidp.privacy.tradeoff import accountant_curve, true_positive_rate
from tests.support.accountants import ledger_of

ALPHAS = np.linspace(0.0, 1.0, 401)
EXACT = ndtr(-ndtri(ALPHAS) - 1)  # of telling N(0, 1) from N(1, 1): Dong, Roth, Su 2022, Definition 5


def test_curve_of_an_accountant_lies_below_the_truth():
    found = accountant_curve(GaussianAccountant(), ledger_of((Gaussian(1.0), 1)), ALPHAS)
    assert np.all(found <= EXACT + 1e-9) and np.max(EXACT - found) < 0.02


def test_true_positive_rate():
    assert true_positive_rate(ALPHAS, EXACT, 0.1) == pytest.approx(ndtr(ndtri(0.1) + 1), abs=1e-4)
    for betas, rate in ((EXACT, 1.5), (EXACT[:-1], 0.5)):
        with pytest.raises(ParameterError):
            true_positive_rate(ALPHAS, betas, rate)
