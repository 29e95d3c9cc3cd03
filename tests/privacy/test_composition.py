"""Composition and groups."""

import math

import pytest

from minidp.errors import ParameterError
from minidp.privacy import (
    BasicAccountant,
    Gaussian,
    GaussianAccountant,
    Laplace,
    LossDistributionAccountant,
    MomentsAccountant,
    PoissonSampled,
    PureDP,
    RenyiAccountant,
    group_epsilon,
)
from minidp.privacy.events.sampled import amplified
from minidp.privacy.group_privacy import GroupAccountant, group_delta
from tests.support.accountants import ledger_of, spent

STEP = PoissonSampled(0.01, Gaussian(4.0))
ACCOUNTANT = LossDistributionAccountant()


def test_amplification_does_not_overflow():
    assert (
        amplified(1000.0, 0.5) == pytest.approx(1000 + math.log(0.5))
        and amplified(1000.0, 1.0) == 1000.0
    )


@pytest.mark.parametrize(
    "accountant", [RenyiAccountant(), LossDistributionAccountant(), BasicAccountant()]
)
def test_where_delta_covers_one_example_it_need_not_cover_a_hundred(accountant):
    ledger = ledger_of((Gaussian(10.0), 1))
    assert accountant.epsilon(ledger, 0.1).upper == 0
    truth = spent(GaussianAccountant(), (Gaussian(0.1), 1), delta=0.1)
    assert group_epsilon(accountant, ledger, 0.1, 100).upper >= truth.lower > 60


@pytest.mark.parametrize(
    "accountant", [MomentsAccountant(), RenyiAccountant(), LossDistributionAccountant()]
)
def test_delta_of_a_group_grows_with_the_group_and_agrees_with_its_epsilon(accountant):
    ledger = ledger_of((Gaussian(20.0), 1), (STEP, 500))
    by_size = [GroupAccountant(accountant, k).delta(ledger, 1.5).upper for k in (1, 2, 3, 40)]
    assert by_size == sorted({*by_size}) and by_size[-1] <= 1
    epsilon = group_epsilon(accountant, ledger, 1e-5, 3).upper
    assert 0.95e-5 < group_delta(accountant, ledger, epsilon, 3).upper < 1.001e-5


@pytest.mark.parametrize(
    "q, sigma, steps, k, delta, theirs, most",
    [
        # the rule for any mechanism is the smaller one, then that for the group's events
        (0.01, 4.0, 10000, 3, 1e-5, 3.2202860446, 3.3006),
        (0.3, 1.0, 3, 4, 1e-5, 22.6992177635, 50.656),
        (1e-3, 0.7, 2000, 8, 1e-7, 8.4269059258, 2475.5),
    ],
)
def test_a_group_costs_the_smaller_of_both_rules_and_no_less_than_the_mixture(
    q, sigma, steps, k, delta, theirs, most
):
    # MixtureOfGaussiansDpEvent of dp_accounting 0.6.0
    ledger = ledger_of((PoissonSampled(q, Gaussian(sigma)), steps))
    assert theirs <= group_epsilon(ACCOUNTANT, ledger, delta, k).upper <= most


@pytest.mark.parametrize("sigma, steps, k", [(0.005, 1, 10), (0.05, 1000, 10), (0.5, 10**15, 3)])
def test_a_group_that_settles_on_no_grid_costs_as_much_as_all_of_its_members(sigma, steps, k):
    ledger = ledger_of((PoissonSampled(0.99, Gaussian(sigma)), steps))
    members = spent(GaussianAccountant(), (Gaussian(sigma / k), steps))
    bound = group_epsilon(ACCOUNTANT, ledger, 1e-5, k)
    assert bound.upper >= 0.98 * members.lower


def test_delta_of_a_group_without_noise_or_without_a_release():
    assert group_delta(RenyiAccountant(), ledger_of((Gaussian(0.0), 1)), 1.0, 3).upper == 1
    assert group_delta(RenyiAccountant(), ledger_of(), 1.0, 3).upper == 0


def test_delta_0_is_answered_where_every_event_is_pure():
    ledger = ledger_of((Laplace(2.0), 3), (PureDP(0.25), 2))
    for accountant in (MomentsAccountant(), BasicAccountant(), ACCOUNTANT, RenyiAccountant()):
        assert accountant.epsilon(ledger, 0).upper == pytest.approx(2.0, rel=1e-13)
        assert GroupAccountant(accountant, 3).epsilon(ledger, 0).upper == pytest.approx(6.0)
    with pytest.raises(ParameterError, match="only a ledger of pure events"):
        ACCOUNTANT.epsilon(ledger_of((Laplace(2.0), 3), (Gaussian(9.0), 1)), 0)
