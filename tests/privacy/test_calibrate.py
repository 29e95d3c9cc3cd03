"""Calibration ends on the safe side, and close to the target."""
import math

import pytest

from minidp.errors import BudgetExceededError, ParameterError
from minidp.privacy import (Gaussian, LossDistributionAccountant, MomentsAccountant, PoissonSampled, RenyiAccountant,
                            noise_multiplier_for, sampling_probability_for)
from tests.support.accountants import ledger_of


def steps_at(noise_multiplier, q=0.01, steps=10000):
    return ledger_of((PoissonSampled(q, Gaussian(noise_multiplier)), steps))


@pytest.mark.parametrize("accountant", [MomentsAccountant(), RenyiAccountant(), LossDistributionAccountant()],
                         ids=lambda accountant: accountant.name)
@pytest.mark.parametrize("target", [0.001, 0.5, 2.0, 8.0, 500.0])
def test_noise_multiplier_is_safe_and_close(accountant, target):
    if accountant.name != "loss_distribution" and target == 0.001:
        target = 0.05           # orders to 1024 cannot go below about ln(1/delta) / 1024, except to 0
    noise = noise_multiplier_for(accountant, steps_at, target, 1e-5)
    assert 0.999 * target <= accountant.epsilon(steps_at(noise), 1e-5).upper <= target


def test_sampling_probability_is_safe_and_close():
    accountant = RenyiAccountant()
    q = sampling_probability_for(accountant, lambda q: steps_at(4.0, q), 1.0, 1e-5)
    assert 0.999 <= accountant.epsilon(steps_at(4.0, q), 1e-5).upper <= 1.0
    assert sampling_probability_for(accountant, lambda q: steps_at(1e4, q), 5.0, 1e-5) == 1.0


def test_targets_that_nothing_reaches_are_refused():
    with pytest.raises(ParameterError, match="already keeps"):
        noise_multiplier_for(MomentsAccountant(), lambda noise: ledger_of((Gaussian(1e6), 1)), 1.0, 1e-5)
    with pytest.raises(BudgetExceededError, match="no sampling probability"):
        sampling_probability_for(MomentsAccountant(), lambda q: ledger_of((Gaussian(4.0), 1)), 1.0, 1e-5)


def test_what_no_noise_can_reach_is_refused_at_once():
    """PCA alone at sigma 7 costs about 0.50; calibrating the steps beside it to 0.1 cannot succeed."""
    asked = []

    def with_pca(noise):
        asked.append(noise)
        return ledger_of((Gaussian(7.0), 1), (PoissonSampled(0.01, Gaussian(noise)), 10_331))

    with pytest.raises(BudgetExceededError, match="beside the steps"):
        noise_multiplier_for(LossDistributionAccountant(), with_pca, 0.1, 1e-5)
    assert asked == [math.inf, 1e7]
