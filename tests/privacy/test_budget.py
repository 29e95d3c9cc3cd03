"""Odometer, filter, the largest number of steps, and calibration: on the safe side, and close to
the target.
"""

import math
import threading
import time

import pytest

from minidp.errors import BudgetExceededError
from minidp.privacy import (
    Filter,
    Gaussian,
    JointGaussian,
    Ledger,
    LossDistributionAccountant,
    MomentsAccountant,
    Odometer,
    PoissonSampled,
    RenyiAccountant,
    max_steps,
    noise_multiplier_for,
)
from tests.support.accountants import ledger_of, spent

STEP = PoissonSampled(0.01, JointGaussian((4.0, 4.0)))


def test_max_steps_is_exact():
    accountant, pca = LossDistributionAccountant(), (Gaussian(7.0), 1)
    for target in (0.72, 1.0, 3.3):
        steps = max_steps(accountant, ledger_of(pca), STEP, target, 1e-5)
        within, above = (spent(accountant, pca, (STEP, n)).upper for n in (steps, steps + 1))
        assert within <= target < above


def test_no_step_is_taken_where_one_has_no_noise():
    assert max_steps(MomentsAccountant(), Ledger(), Gaussian(0.0), 1.0, 1e-5) == 0


def test_filter_refuses_the_step_that_would_exceed_and_records_nothing():
    steps = max_steps(MomentsAccountant(), Ledger(), STEP, 1.0, 1e-5)
    budget = Filter(MomentsAccountant(), 1.0, 1e-5)
    odometer = Odometer(MomentsAccountant(), budget.ledger)
    assert odometer.read(1e-5).upper == 0
    budget.charge(STEP, steps - 1)
    first = odometer.read(1e-5).upper
    budget.charge(STEP)
    assert 0 < first < odometer.read(1e-5).upper <= 1
    with pytest.raises(BudgetExceededError, match="above the budget of 1; nothing was released"):
        budget.charge(STEP)
    assert budget.ledger == ledger_of((STEP, steps))


def steps_at(noise_multiplier, q=0.01, steps=10000):
    return ledger_of((PoissonSampled(q, Gaussian(noise_multiplier)), steps))


@pytest.mark.parametrize(
    "accountant, target",
    [
        *((LossDistributionAccountant(), target) for target in (0.001, 2.0, 500.0)),
        *((RenyiAccountant(), target) for target in (0.05, 8.0)),
    ],
)
def test_noise_multiplier_is_safe_and_close(accountant, target):
    noise = noise_multiplier_for(accountant, steps_at, target, 1e-5)
    assert 0.999 * target <= accountant.epsilon(steps_at(noise), 1e-5).upper <= target


def test_what_no_noise_can_reach_is_refused_at_once():
    """PCA alone at sigma 7 costs about 0.50; calibrating the steps beside it to 0.1 cannot
    succeed.
    """
    asked = []

    def with_pca(noise):
        asked.append(noise)
        return ledger_of((Gaussian(7.0), 1), (PoissonSampled(0.01, Gaussian(noise)), 10_331))

    with pytest.raises(BudgetExceededError, match="beside the steps"):
        noise_multiplier_for(LossDistributionAccountant(), with_pca, 0.1, 1e-5)
    assert asked == [math.inf, 1e7]


def test_threads_that_charge_one_filter_stay_within_its_budget():
    accountant = MomentsAccountant()
    right = accountant.epsilon

    def slow(ledger, delta):
        found = right(ledger, delta)
        time.sleep(0.01)  # others run between the look at the budget and the charge
        return found

    accountant.epsilon = slow
    budget = Filter(accountant, 1.0, 1e-5)

    def charge():
        for _ in range(5):
            try:
                budget.charge(PoissonSampled(0.01, Gaussian(4.0)), 1000)
            except BudgetExceededError:
                return

    threads = [threading.Thread(target=charge) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < right(budget.ledger, 1e-5).upper <= 1.0
