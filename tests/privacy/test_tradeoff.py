"""Trade-off curves, and pictures and CSV files of curves."""
import csv
import math

import numpy as np
import pytest

from minidp.errors import ParameterError
from minidp.privacy import Bound, Gaussian, GaussianAccountant, LossDistributionAccountant, PoissonSampled
from minidp.privacy.plots import save_epsilon_curves
from minidp.privacy.tradeoff import accountant_curve, gaussian_curve, sampled_curve, symmetrised, true_positive_rate
from tests.support.accountants import ledger_of

ALPHAS = np.linspace(0.0, 1.0, 401)


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
    assert true_positive_rate(ALPHAS, betas, 1e-4) >= 1 - gaussian_curve([1e-4], 1.0)[0]
    with pytest.raises(ParameterError):
        true_positive_rate(ALPHAS, betas, 1.5)
    with pytest.raises(ParameterError):
        true_positive_rate(ALPHAS, betas[:-1], 0.5)


def test_epsilon_curves(tmp_path, drawn):
    curves = {"a": [Bound(0.1, 0.15, 0.2), Bound(0.3, 0.35, 0.4)],
              "b": [Bound(None, None, None), Bound(None, 1.0, math.inf)]}
    save_epsilon_curves(tmp_path / "e", [1, 2], curves, 1e-5, "title " * 30, [(1, 0.2, "printed")], notice="notice " * 30)
    rows = list(csv.reader((tmp_path / "e.csv").read_text().splitlines()))
    assert rows[0] == ["epochs", "a_lower", "a_estimate", "a_upper", "b_lower", "b_estimate", "b_upper"]
    assert rows[1] == ["1", "0.1", "0.15", "0.2", "", "", ""] and rows[2][-1] == "inf"
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")
