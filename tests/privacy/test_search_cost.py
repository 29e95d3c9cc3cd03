"""The cost of a hyper-parameter search."""
import math

import numpy as np
import pytest

from minidp.errors import ParameterError
from minidp.privacy import (Gaussian, MomentsAccountant, PoissonSampled, RandomlyStopped, RenyiAccountant, Repeated,
                            poisson_stopped_epsilon, theorem_d1)
from tests.support.accountants import ledger_of

STEP = PoissonSampled(0.01, Gaussian(4.0))


@pytest.mark.parametrize("args", [(1.0, 0.6, 0.05, 0.1), (1.0, 0.0, 0.05, 0.1), (1.0, 0.5, 0.0, 0.1),
                                  (1.0, 0.5, 0.05, 0.0), (-1.0, 0.5, 0.05, 0.1)])
def test_theorem_d1_checks_its_conditions(args):
    with pytest.raises(ParameterError):
        theorem_d1(*args)


@pytest.mark.parametrize("eta, gamma, mean", [(1.0, 0.1, 10.0), (1.0, 1.0, 1.0), (0.0, 0.1, 9 / math.log(10)),
                                              (0.5, 0.01, None), (-0.5, 0.01, None)])
def test_expected_runs(eta, gamma, mean):
    if mean is None:
        # the distribution itself: P(K = k) proportional to (1-gamma)^k prod_(l < k) (l + eta) / (l + 1)
        k = np.arange(1, 20000)
        weights = np.exp(k * math.log1p(-gamma) + np.cumsum(np.log(np.abs((k - 1 + eta) / k))))
        mean = float(np.sum(k * weights) / np.sum(weights))
    assert RandomlyStopped(STEP, eta, gamma).expected_runs == pytest.approx(mean, rel=1e-6)


def test_one_run_for_certain_still_costs_at_least_that_run():
    accountant, run = RenyiAccountant(), Repeated(STEP, 1000)
    single = accountant.epsilon(ledger_of((run, 1)), 1e-5).upper
    searched = accountant.epsilon(ledger_of((RandomlyStopped(run, 1.0, 0.02), 1)), 1e-5).upper
    assert single < searched < 4 * single


def test_poisson_stopping_needs_renyi_divergences():
    with pytest.raises(ParameterError, match="RenyiAccountant"):
        poisson_stopped_epsilon(MomentsAccountant(), ledger_of((STEP, 1000)), 1e-5, 5.0)
