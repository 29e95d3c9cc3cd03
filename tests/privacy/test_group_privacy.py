"""Group privacy."""
import pytest

from minidp.errors import ParameterError
from minidp.privacy import (BasicAccountant, Gaussian, GaussianAccountant, LossDistributionAccountant,
                            MomentsAccountant, PoissonSampled, RenyiAccountant, group_epsilon)
from minidp.privacy.group_privacy import GroupAccountant, group_delta
from tests.support.accountants import ledger_of

STEP = PoissonSampled(0.01, Gaussian(4.0))


def test_group_of_one_is_the_accountant_itself():
    ledger = ledger_of((STEP, 100))
    assert group_epsilon(MomentsAccountant(), ledger, 1e-5, 1) == MomentsAccountant().epsilon(ledger, 1e-5)


@pytest.mark.parametrize("accountant", [RenyiAccountant(), LossDistributionAccountant(), BasicAccountant()])
def test_where_delta_covers_one_example_it_need_not_cover_a_hundred(accountant):
    ledger = ledger_of((Gaussian(10.0), 1))
    assert accountant.epsilon(ledger, 0.1).upper == 0
    truth = GaussianAccountant().epsilon(ledger_of((Gaussian(0.1), 1)), 0.1)
    assert group_epsilon(accountant, ledger, 0.1, 100).upper >= truth.lower > 60


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_group_size_is_checked(size):
    with pytest.raises(ParameterError, match="group_size"):
        group_epsilon(MomentsAccountant(), ledger_of((STEP, 1)), 1e-5, size)


@pytest.mark.parametrize("accountant", [MomentsAccountant(), RenyiAccountant(), LossDistributionAccountant()])
def test_delta_of_a_group_falls_with_epsilon_grows_with_the_group_and_agrees_with_its_epsilon(accountant):
    ledger = ledger_of((Gaussian(20.0), 1), (STEP, 500))
    assert group_delta(accountant, ledger, 1.0, 1) == accountant.delta(ledger, 1.0)
    by_size = [GroupAccountant(accountant, k).delta(ledger, 1.5).upper for k in (1, 2, 3, 40)]
    assert by_size == sorted(by_size) and by_size[0] < by_size[1] < by_size[2] < by_size[3] <= 1
    by_epsilon = [group_delta(accountant, ledger, epsilon, 3).upper for epsilon in (0.0, 0.5, 1.0, 3.0)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    epsilon = group_epsilon(accountant, ledger, 1e-5, 3).upper
    assert 0.95e-5 < group_delta(accountant, ledger, epsilon, 3).upper < 1.001e-5


def test_delta_of_a_group_without_noise_or_without_a_release():
    assert group_delta(RenyiAccountant(), ledger_of((Gaussian(0.0), 1)), 1.0, 3).upper == 1
    assert group_delta(RenyiAccountant(), ledger_of(), 1.0, 3).upper == 0
