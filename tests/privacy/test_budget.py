"""Odometer, filter and the largest number of steps."""
import math

import pytest

from minidp.errors import BudgetExceededError, ParameterError
from minidp.privacy import (Filter, Gaussian, JointGaussian, Ledger, LossDistributionAccountant, MomentsAccountant,
                            NeighbouringRelation, Odometer, PoissonSampled, RenyiAccountant, max_steps)
from tests.support.accountants import ledger_of

STEP = PoissonSampled(0.01, JointGaussian((4.0, 4.0)))


@pytest.mark.parametrize("accountant", [MomentsAccountant(), LossDistributionAccountant()], ids=["moments", "pld"])
def test_max_steps_is_exact(accountant):
    prefix = ledger_of((Gaussian(7.0), 1))
    for target in (0.72, 1.0, 3.3):
        steps = max_steps(accountant, prefix, STEP, target, 1e-5)
        assert accountant.epsilon(ledger_of((Gaussian(7.0), 1), (STEP, steps)), 1e-5).upper <= target
        assert accountant.epsilon(ledger_of((Gaussian(7.0), 1), (STEP, steps + 1)), 1e-5).upper > target
    assert prefix == ledger_of((Gaussian(7.0), 1))


def test_a_target_that_zero_steps_exceed_is_refused():
    with pytest.raises(BudgetExceededError, match="1.231 at delta=1e-05 before the first step"):
        max_steps(MomentsAccountant(), ledger_of((Gaussian(4.0), 1)), STEP, 1.2, 1e-5)


def test_a_step_that_costs_nothing_has_no_largest_number():
    with pytest.raises(ParameterError, match="set the number of steps"):
        max_steps(MomentsAccountant(), Ledger(), Gaussian(math.inf), 1.0, 1e-5)


def test_a_step_without_noise_allows_none():
    assert max_steps(MomentsAccountant(), Ledger(), Gaussian(0.0), 1.0, 1e-5) == 0


def test_odometer_reads_the_ledger_as_it_grows():
    ledger = Ledger()
    odometer = Odometer(MomentsAccountant(), ledger)
    assert odometer.read(1e-5).upper == 0.0
    ledger.append(STEP, 10)
    first = odometer.read(1e-5).upper
    ledger.append(STEP, 10)
    assert 0 < first < odometer.read(1e-5).upper


def test_filter_refuses_the_step_that_would_exceed_and_records_nothing():
    steps = max_steps(MomentsAccountant(), Ledger(), STEP, 1.0, 1e-5)
    budget = Filter(MomentsAccountant(), 1.0, 1e-5)
    budget.charge(STEP, steps - 1)
    budget.charge(STEP)
    with pytest.raises(BudgetExceededError, match="above the budget of 1; nothing was released"):
        budget.charge(STEP)
    assert budget.ledger == ledger_of((STEP, steps))
    with pytest.raises(BudgetExceededError):
        budget.charge(Gaussian(0.0))


@pytest.mark.parametrize("epsilon, delta", [(-1.0, 1e-5), (1.0, 0.0), (math.nan, 1e-5), (1.0, 1.0)])
def test_filter_checks_its_budget(epsilon, delta):
    with pytest.raises(ParameterError):
        Filter(MomentsAccountant(), epsilon, delta)


def test_an_accountant_by_its_name():
    relation = NeighbouringRelation.REPLACE_ONE
    assert type(Filter("renyi", 1.0, 1e-5).accountant) is RenyiAccountant
    assert Filter("moments", 1.0, 1e-5, Ledger(relation)).accountant.relation is relation
    with pytest.raises(ParameterError, match="accountant='momens' to be one of moments"):
        Filter("momens", 1.0, 1e-5)
    with pytest.raises(ParameterError, match="expected accountant=7 to be an accountant, such as MomentsAccountant"):
        Filter(7, 1.0, 1e-5)
