"""Composition, groups and searches."""

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
    RenyiAccountant,
    group_epsilon,
)
from minidp.privacy.composition import amplified
from minidp.privacy.group_privacy import GroupAccountant, group_delta
from tests.support.accountants import ledger_of

STEP = PoissonSampled(0.01, Gaussian(4.0))


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
    truth = GaussianAccountant().epsilon(ledger_of((Gaussian(0.1), 1)), 0.1)
    assert group_epsilon(accountant, ledger, 0.1, 100).upper >= truth.lower > 60


def test_group_size_is_checked():
    with pytest.raises(ParameterError, match="group_size"):
        group_epsilon(MomentsAccountant(), ledger_of((STEP, 1)), 1e-5, 0)


@pytest.mark.parametrize(
    "accountant", [MomentsAccountant(), RenyiAccountant(), LossDistributionAccountant()]
)
def test_delta_of_a_group_falls_with_epsilon_grows_with_the_group_and_agrees_with_its_epsilon(
    accountant,
):
    ledger = ledger_of((Gaussian(20.0), 1), (STEP, 500))
    assert group_delta(accountant, ledger, 1.0) == accountant.delta(ledger, 1.0)
    assert group_epsilon(accountant, ledger, 1e-5) == accountant.epsilon(ledger, 1e-5)
    by_size = [GroupAccountant(accountant, k).delta(ledger, 1.5).upper for k in (1, 2, 3, 40)]
    assert by_size == sorted({*by_size}) and by_size[-1] <= 1
    by_epsilon = [group_delta(accountant, ledger, e, 3).upper for e in (0.0, 0.5, 1.0, 3.0)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    epsilon = group_epsilon(accountant, ledger, 1e-5, 3).upper
    assert 0.95e-5 < group_delta(accountant, ledger, epsilon, 3).upper < 1.001e-5


@pytest.mark.parametrize(
    "q, sigma, steps, k, delta, theirs",
    [
        (0.01, 4.0, 10000, 2, 1e-5, 2.0385804508),
        (0.01, 4.0, 10000, 3, 1e-5, 3.2202860446),
        (0.0064, 2.0, 782, 2, 1e-6, 0.8288225776),
        (0.02, 1.1, 1000, 2, 1e-6, 8.1506538041),
        (0.1, 2.0, 100, 5, 1e-6, 17.5357896137),
        (1e-3, 0.7, 2000, 8, 1e-7, 8.4269059258),
        (0.3, 1.0, 3, 4, 1e-5, 22.6992177635),
    ],
)
def test_a_group_costs_the_smaller_of_both_rules_and_no_less_than_the_mixture(
    q, sigma, steps, k, delta, theirs
):
    # MixtureOfGaussiansDpEvent of dp_accounting 0.6.0
    accountant = LossDistributionAccountant()
    ledger = ledger_of((PoissonSampled(q, Gaussian(sigma)), steps))
    bound = group_epsilon(accountant, ledger, delta, k)
    mixed = group_epsilon(accountant, ledger, delta, k, mixed=True)
    any_member = ledger_of(
        (PoissonSampled(-math.expm1(k * math.log1p(-q)), Gaussian(sigma / k)), steps)
    )
    assert theirs * (1 - 1e-3) <= bound.upper
    assert bound.upper == pytest.approx(
        min(mixed.upper, accountant.epsilon(any_member, delta).upper), rel=1e-6
    )
    assert mixed.lower == bound.lower


class Counting(LossDistributionAccountant):
    calls = 0

    def epsilon(self, ledger, delta):
        self.calls += 1
        return super().epsilon(ledger, delta)


def test_the_search_of_the_rule_for_any_mechanism_asks_for_few_epsilons():
    accountant = Counting()
    group_epsilon(
        accountant, ledger_of((STEP, 1000), (Gaussian(9.0), 2), (Laplace(20.0), 1)), 1e-5, 100
    )
    assert accountant.calls <= 12


@pytest.mark.parametrize("sigma, steps, k", [(0.005, 1, 10), (0.05, 1000, 10), (0.5, 10**15, 3)])
def test_a_group_that_settles_on_no_grid_costs_as_much_as_all_of_its_members(sigma, steps, k):
    ledger = ledger_of((PoissonSampled(0.99, Gaussian(sigma)), steps))
    members = GaussianAccountant().epsilon(ledger_of((Gaussian(sigma / k), steps)), 1e-5)
    bound = group_epsilon(LossDistributionAccountant(), ledger, 1e-5, k)
    assert bound.upper >= 0.98 * members.lower


def test_any_change_of_k_examples_costs_the_sum_along_a_chain():
    accountant, ledger = LossDistributionAccountant(), ledger_of((STEP, 10000))
    # 3.436 and 2.107 by k e^((k-1) epsilon) delta, which bounds the sum
    for k, epsilon in ((2, 2.0585), (3, 3.3006)):
        mixed = group_epsilon(accountant, ledger, 1e-5, k, mixed=True).upper
        assert epsilon - 1e-3 < mixed <= epsilon
        assert group_delta(accountant, ledger, mixed, k, mixed=True).upper <= 1.001e-5
    whole = group_epsilon(accountant, ledger_of((Gaussian(20.0), 3)), 1e-5, 4, mixed=True)
    alone = accountant.epsilon(ledger_of((Gaussian(5.0), 3)), 1e-5)
    assert (whole.lower, whole.upper) == (alone.lower, alone.upper)


def test_delta_of_a_group_without_noise_or_without_a_release():
    assert group_delta(RenyiAccountant(), ledger_of((Gaussian(0.0), 1)), 1.0, 3).upper == 1
    assert group_delta(RenyiAccountant(), ledger_of(), 1.0, 3).upper == 0
