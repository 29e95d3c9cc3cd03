"""Group privacy."""
import math

import pytest

from minidp.errors import ParameterError
from minidp.privacy import (FixedSizeSampled, Gaussian, GaussianAccountant, Laplace, LossDistributionAccountant,
                            MomentsAccountant, PoissonSampled, RenyiAccountant, group_epsilon)
from minidp.privacy.group_privacy import GroupAccountant
from tests.support.accountants import REPLACE_ONE, ledger_of

STEP = PoissonSampled(0.01, Gaussian(4.0))


def test_group_of_one_is_the_accountant_itself():
    ledger = ledger_of((STEP, 100))
    assert group_epsilon(MomentsAccountant(), ledger, 1e-5, 1) == MomentsAccountant().epsilon(ledger, 1e-5)


def test_unsampled_group_is_a_larger_sensitivity():
    found = group_epsilon(GaussianAccountant(), ledger_of((Gaussian(8.0), 4)), 1e-5, 4)
    exact = GaussianAccountant().epsilon(ledger_of((Gaussian(2.0), 4)), 1e-5)
    assert found.upper == exact.upper and found.lower == exact.lower
    laplace = group_epsilon(RenyiAccountant(), ledger_of((Laplace(4.0), 1)), 1e-5, 2)
    assert laplace.upper == RenyiAccountant().epsilon(ledger_of((Laplace(2.0), 1)), 1e-5).upper


def test_sampled_group_lies_between_one_example_and_the_generic_rule():
    accountant = LossDistributionAccountant()
    ledger = ledger_of((STEP, 2000))
    single = accountant.epsilon(ledger, 1e-5)
    grouped = group_epsilon(accountant, ledger, 1e-5, 3)
    bigger = accountant.epsilon(ledger_of((PoissonSampled(1 - 0.99 ** 3, Gaussian(4.0 / 3)), 2000)), 1e-5)
    assert single.lower <= grouped.lower <= single.upper < grouped.upper <= bigger.upper * (1 + 1e-9)


def test_generic_rule_by_hand():
    # no sampling theorem for groups under REPLACE_ONE: only (k eps, k e^((k-1) eps) d) remains
    accountant = RenyiAccountant(REPLACE_ONE)
    ledger = ledger_of((FixedSizeSampled(1000, 10, Gaussian(4.0)), 100), relation=REPLACE_ONE)
    found = group_epsilon(accountant, ledger, 1e-5, 2).upper
    d = accountant.delta(ledger, found / 2).upper
    assert 2 * math.exp(found / 2) * d == pytest.approx(1e-5, rel=1e-2)


def test_groups_cost_more_the_larger_they_are():
    ledger = ledger_of((Gaussian(20.0), 1), (STEP, 500))
    costs = [group_epsilon(RenyiAccountant(), ledger, 1e-5, k).upper for k in (1, 2, 3, 5)]
    assert costs == sorted(costs) and costs[0] < costs[-1]
    assert GroupAccountant(RenyiAccountant(), 3).epsilon(ledger, 1e-5).upper == costs[2]


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_group_size_is_checked(size):
    with pytest.raises(ParameterError, match="group_size"):
        group_epsilon(MomentsAccountant(), ledger_of((STEP, 1)), 1e-5, size)
