"""What every accountant promises, for every event that it supports; their catalogue."""
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from minidp import privacy
from minidp.errors import NumericalBoundError, ParameterError, UnsupportedEventError
from minidp.privacy import (Bound, Composed, FixedSizeSampled, Gaussian, JointGaussian, Laplace, Ledger,
                            MomentsAccountant, NeighbouringRelation, NonPrivate, PoissonSampled, Repeated, Unknown)
from minidp.privacy.catalogue import ACCOUNTANTS, UNKNOWN, all_bounds, make
from tests.support.accountants import ADD_REMOVE, REPLACE_ONE, ROWS, ledger_of

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
each_event = pytest.mark.parametrize(
    "row, event", [pytest.param(row, event, id=f"{row.label}-{event}") for row in ROWS for event in row.events])
DELTA = 1e-5


def assert_same(a, b, relative=1e-12):
    assert a.upper == pytest.approx(b.upper, rel=relative)
    assert (a.lower is None) == (b.lower is None)
    if a.lower is not None:
        assert a.lower == pytest.approx(b.lower, rel=relative)


@each_row
@pytest.mark.parametrize("wrap", [
    lambda e: e, lambda e: Repeated(e, 3), lambda e: Repeated(e, 0), lambda e: Composed((Gaussian(4.0), e)),
    lambda e: Composed((Repeated(Composed((e,)), 2),)), lambda e: PoissonSampled(0.1, e),
    lambda e: PoissonSampled(0.0, Composed((Gaussian(4.0), e))), lambda e: FixedSizeSampled(10, 2, e),
])
def test_unknown_is_refused_at_any_depth(row, wrap):
    accountant = row.make(row.relation)
    event = wrap(Unknown())
    assert not accountant.supports(event)
    with pytest.raises(UnsupportedEventError, match="Unknown"):
        accountant.epsilon(ledger_of((event, 1), relation=row.relation), DELTA)
    with pytest.raises(UnsupportedEventError, match=row.relation.name):
        accountant.delta(ledger_of((event, 1), relation=row.relation), 1.0)


@each_row
def test_empty_ledger_costs_nothing(row):
    accountant = row.make(row.relation)
    for ledger in (Ledger(row.relation), ledger_of((Gaussian(math.inf), 5), relation=row.relation),
                   ledger_of((Repeated(Gaussian(1.0), 0), 5), relation=row.relation)):
        assert accountant.epsilon(ledger, DELTA) == Bound(0.0, 0.0, 0.0)
        assert accountant.delta(ledger, 0.0) == Bound(0.0, 0.0, 0.0)


@each_row
@pytest.mark.parametrize("event", [NonPrivate(), Gaussian(0.0), JointGaussian((4.0, 0.0)), Laplace(0.0)])
def test_no_noise_is_infinite(row, event):
    accountant = row.make(row.relation)
    ledger = ledger_of((Gaussian(4.0), 2), (event, 1), relation=row.relation)
    assert accountant.epsilon(ledger, DELTA).upper == math.inf
    assert accountant.delta(ledger, 3.0).upper == 1.0
    if row.relation is ADD_REMOVE:
        sampled = ledger_of((PoissonSampled(0.01, Gaussian(0.0)), 1))
        assert accountant.epsilon(sampled, DELTA).upper == math.inf


@each_event
def test_repeating_counting_and_appending_agree(row, event):
    accountant = row.make(row.relation)
    appended = Ledger(row.relation)
    for _ in range(7):
        appended.append(event)
    forms = [appended, ledger_of((event, 7), relation=row.relation),
             ledger_of((Repeated(event, 7), 1), relation=row.relation),
             ledger_of((Composed((Repeated(event, 3),) * 2), 1), (event, 1), relation=row.relation)]
    epsilons = [accountant.epsilon(form, DELTA) for form in forms]
    deltas = [accountant.delta(form, 0.5) for form in forms]
    for epsilon, delta in zip(epsilons, deltas):
        assert_same(epsilon, epsilons[0])
        assert_same(delta, deltas[0])
    once = accountant.epsilon(ledger_of((event, 1), relation=row.relation), DELTA).upper
    assert 0 < once < epsilons[0].upper < math.inf


@each_event
def test_bounds_are_ordered_and_monotone_in_steps_and_delta(row, event):
    accountant = row.make(row.relation)
    previous = 0.0
    for count in (1, 3, 50, 2000):
        bound = accountant.epsilon(ledger_of((event, count), relation=row.relation), DELTA)
        assert (bound.lower or 0.0) <= bound.estimate <= bound.upper
        assert previous <= bound.upper * (1 + 1e-3) + 1e-4
        previous = bound.upper
    ledger = ledger_of((event, 50), relation=row.relation)
    uppers = [accountant.epsilon(ledger, delta).upper for delta in (1e-12, 1e-8, 1e-5, 1e-2, 0.5)]
    assert uppers == sorted(uppers, reverse=True)


@each_event
def test_epsilon_and_delta_invert_each_other(row, event):
    accountant = row.make(row.relation)
    ledger = ledger_of((event, 200), relation=row.relation)
    epsilon = accountant.epsilon(ledger, DELTA).upper
    delta = accountant.delta(ledger, epsilon).upper
    assert delta <= DELTA * 1.02
    # basic composition of pure DP needs no delta at all; otherwise the way back leads to the same epsilon
    assert accountant.epsilon(ledger, max(delta, 1e-300)).upper == pytest.approx(epsilon, rel=2e-3)


@each_row
def test_ledger_of_another_relation_is_refused(row):
    other = REPLACE_ONE if row.relation is ADD_REMOVE else ADD_REMOVE
    with pytest.raises(ParameterError, match=other.name):
        row.make(row.relation).epsilon(Ledger(other), DELTA)


@each_row
def test_sampling_that_does_not_belong_to_the_relation_is_refused(row):
    accountant = row.make(row.relation)
    wrong = (PoissonSampled(0.1, Gaussian(4.0)) if row.relation is REPLACE_ONE
             else FixedSizeSampled(100, 10, Gaussian(4.0)))
    assert not accountant.supports(wrong)
    with pytest.raises(UnsupportedEventError, match=row.relation.name):
        accountant.epsilon(ledger_of((wrong, 1), relation=row.relation), DELTA)


@each_row
@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, 1.5, math.nan, "1e-5", True])
def test_delta_outside_the_open_interval_is_refused(row, delta):
    with pytest.raises(ParameterError, match="delta="):
        row.make(row.relation).epsilon(ledger_of((Gaussian(4.0), 1), relation=row.relation), delta)


@each_row
@pytest.mark.parametrize("epsilon", [-1.0, math.inf, math.nan])
def test_epsilon_must_be_finite_and_not_negative(row, epsilon):
    with pytest.raises(ParameterError, match="epsilon="):
        row.make(row.relation).delta(ledger_of((Gaussian(4.0), 1), relation=row.relation), epsilon)


@given(st.lists(st.floats(0.5, 20.0), min_size=1, max_size=4), st.floats(0.001, 1.0), st.integers(1, 500))
@settings(max_examples=25, deadline=None)
def test_gaussians_on_one_lot_are_one_gaussian(multipliers, q, steps):
    accountant = MomentsAccountant()
    joint = PoissonSampled(q, JointGaussian(tuple(multipliers)))
    composed = PoissonSampled(q, Composed(tuple(Gaussian(s) for s in multipliers)))
    effective = PoissonSampled(q, Gaussian(sum(s ** -2 for s in multipliers) ** -0.5))
    epsilons = [accountant.epsilon(ledger_of((event, steps)), DELTA).upper for event in (joint, composed, effective)]
    assert epsilons[0] == pytest.approx(epsilons[1], rel=1e-9)
    assert epsilons[0] == pytest.approx(epsilons[2], rel=1e-9)


def test_zero_out_takes_poisson_sampling_at_the_same_cost():
    event = PoissonSampled(0.01, Gaussian(4.0))
    zero_out = NeighbouringRelation.ZERO_OUT
    assert (MomentsAccountant(zero_out).epsilon(ledger_of((event, 100), relation=zero_out), DELTA)
            == MomentsAccountant().epsilon(ledger_of((event, 100)), DELTA))


def test_nested_sampling_is_refused():
    assert not MomentsAccountant().supports(PoissonSampled(0.1, PoissonSampled(0.1, Gaussian(1.0))))
    assert not MomentsAccountant().supports(PoissonSampled(0.1, Composed((Gaussian(1.0), Laplace(1.0)))))


def test_a_bound_holds_plain_floats():
    assert float(Bound(0.1, 0.2, 0.3)) == 0.3
    assert repr(Bound(None, np.float64(1.5), np.float32(2))) == "Bound(lower=None, estimate=1.5, upper=2.0)"


@each_row
def test_more_releases_than_float64_can_count_cost_no_less(row):
    accountant, event = row.make(row.relation), row.events[0]
    before = accountant.epsilon(ledger_of((event, 10 ** 6), relation=row.relation), DELTA).upper
    for count in (10 ** 16, 10 ** 18 + 1, 2 ** 127):
        forms = ((event, count), (Repeated(event, count), 1), (Composed((Repeated(event, count - 1), event)), 1))
        epsilons = {accountant.epsilon(ledger_of(form, relation=row.relation), DELTA).upper for form in forms}
        assert len(epsilons) == 1 and before < epsilons.pop()
    for _ in range(8):
        event = Repeated(event, 2 ** 127)
    with pytest.raises(NumericalBoundError, match="at most 1e300 releases"):
        accountant.epsilon(ledger_of((event, 1), relation=row.relation), DELTA)


@each_row
@pytest.mark.parametrize("what", [Repeated(Gaussian(4.0), 10), "ledger.json", [(Gaussian(4.0), 10)]])
def test_what_is_no_ledger_is_refused_with_the_cure(row, what):
    with pytest.raises(ParameterError, match=r"expected a Ledger, got .*ledger.append\(event, count\)"):
        row.make(row.relation).epsilon(what, DELTA)


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_names_are_those_of_the_accountants(name):
    accountant = make(name, REPLACE_ONE)
    assert accountant.name == name and accountant.relation is REPLACE_ONE
    assert type(accountant).__name__ in privacy.__all__
    assert any(type(row.make(row.relation)) is type(accountant) for row in ROWS)


def test_no_theorem_is_an_answer_too():
    found = all_bounds(ledger_of((privacy.Laplace(1.0), 1)), ("gaussian_clt", "basic"), delta=1e-5)
    assert found["gaussian_clt"][0] == UNKNOWN and "Laplace" in found["gaussian_clt"][2]
    assert found["basic"][0].upper == pytest.approx(1.0)
