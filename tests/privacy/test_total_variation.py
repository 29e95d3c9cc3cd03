"""TotalVariation: what it adds, that it adds nothing where there is none, and that whatever cannot
take it refuses.
"""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minidp.errors import BudgetExceededError, UnsupportedEventError
from minidp.privacy import (
    Composed,
    Filter,
    Gaussian,
    Ledger,
    PoissonSampled,
    RenyiAccountant,
    Repeated,
    TotalVariation,
    group_epsilon,
    max_steps,
    total_variation,
)
from minidp.privacy.bound import Bound, Within
from minidp.run.result import unamplified
from tests.support.accountants import ROWS, ledger_of, spent

STEP = PoissonSampled(0.01, Gaussian(4.0))
TINY = TotalVariation(2.0**-64, 24_000)
RENYI = RenyiAccountant()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_every_accountant_adds_it_to_delta_and_proves_its_epsilon(row):
    accountant, event = row.accountant, row.events[0]

    def ledger(*more):
        return ledger_of((event, 2), *more, relation=row.relation)

    varied, tau = ledger((TotalVariation(1e-9, 2), 5)), 10 * 1e-9
    plain, near = (accountant.epsilon(found, 1e-5) for found in (ledger(), varied))
    assert plain.upper < near.upper and (near.lower is None or near.lower <= plain.lower)
    assert accountant.epsilon(ledger((TotalVariation(0.0, 9), 9), (TINY, 0)), 1e-5) == plain
    added = accountant.delta(varied, 3.0).upper - accountant.delta(ledger(), 3.0).upper
    assert added == pytest.approx((1 + math.exp(3.0)) * tau, rel=1e-6)
    assert accountant.epsilon(ledger((Repeated(TotalVariation(1e-9, 1), 10), 1)), 1e-5) == near
    assert accountant.epsilon(ledger((TotalVariation(1e-5, 1), 1)), 1e-5).upper == math.inf


@given(st.floats(0, 700), st.floats(5e-324, 1))
def test_what_is_added_is_rounded_up(epsilon, variation):
    with mpmath.workdps(40):
        assert Within(variation).added(epsilon) >= (1 + mpmath.exp(epsilon)) * mpmath.mpf(variation)


def test_alone_it_is_paid_from_delta_and_a_sum_is_rounded_up():
    ledger = ledger_of((TotalVariation(0.1, 1), 2), (Composed((TotalVariation(0.1, 1),)), 1))
    assert 3 * Fraction(0.1) < total_variation(ledger) < 0.3 + 2e-16
    assert total_variation(ledger_of((STEP, 3))) == 0
    assert RENYI.epsilon(ledger, 0.61) == Bound(0.0, 0.0, 0.0)
    assert RENYI.epsilon(ledger, 0.59).upper == math.inf
    assert RENYI.delta(ledger, 710.0).upper == 1


def test_inside_a_lot_it_is_refused():
    with pytest.raises(UnsupportedEventError, match="TotalVariation"):
        spent(RENYI, (PoissonSampled(0.1, Composed((Gaussian(1.0), TINY))), 1))


def test_groups_pay_it_too():
    plain, varied = (
        group_epsilon(RENYI, ledger_of((STEP, 20), (TotalVariation(2.0**-40, 1), n)), 1e-5, 3).upper
        for n in (0, 20)
    )
    assert plain < varied < plain * 1.001


def test_a_filter_and_the_largest_number_of_steps_count_it():
    beside = TotalVariation(1e-11, 10)
    steps = max_steps(RENYI, Ledger(), Composed((STEP, beside)), 1.0, 1e-5)
    assert 1000 < steps < max_steps(RENYI, Ledger(), Composed((STEP, TINY)), 1.0, 1e-5)
    budget = Filter("renyi", 1.0, 1e-5)
    budget.charge_all([(STEP, steps), (beside, steps)])
    with pytest.raises(BudgetExceededError):
        budget.charge(beside, steps)


def test_beside_a_step_it_costs_as_much_as_apart_where_sampling_is_not_counted():
    together, apart = ledger_of((Composed((STEP, TINY)), 10)), ledger_of((STEP, 10), (TINY, 10))
    assert unamplified(RENYI, together, 1e-5, 10) == unamplified(RENYI, apart, 1e-5, 10)
