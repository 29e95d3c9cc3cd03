"""What every accountant promises, for every event that it supports; their catalogue."""

import math
from dataclasses import dataclass

import pytest

from minidp.errors import NumericalBoundError, ParameterError, UnsupportedEventError
from minidp.privacy import (
    ApproximateDP,
    Bound,
    Composed,
    Event,
    Gaussian,
    JointGaussian,
    Laplace,
    Ledger,
    MomentsAccountant,
    NeighbouringRelation,
    NonPrivate,
    PoissonSampled,
    Repeated,
    Unknown,
)
from tests.support.accountants import ADD_REMOVE, ROWS, ZERO_OUT, spent

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
each_event = pytest.mark.parametrize(
    "row, event",
    [
        pytest.param(row, event, id=f"{row.label}-{event}")
        for row in ROWS
        for event in (row.events[0], row.events[-1])
    ],
)
DELTA = 1e-5


@each_row
@pytest.mark.parametrize(
    "wrap",
    [
        lambda e: Repeated(e, 0),
        lambda e: Composed((Repeated(Composed((e,)), 2),)),
        lambda e: PoissonSampled(0.0, Composed((Gaussian(4.0), e))),
    ],
)
def test_unknown_is_refused_at_any_depth(row, wrap):
    event = wrap(Unknown())
    with pytest.raises(UnsupportedEventError, match="Unknown"):
        row.epsilon(event)
    with pytest.raises(UnsupportedEventError, match="Unknown"):
        row.delta(1.0, event)


@dataclass(frozen=True)
class RarelySampled(Event):
    """`event` over a lot of which nobody proved anything."""

    event: Event
    share = 1e-9


@each_row
def test_a_new_kind_of_sampling_is_refused(row):
    with pytest.raises(UnsupportedEventError, match="no theorem for RarelySampled"):
        row.epsilon(RarelySampled(Gaussian(4.0)))


@each_row
def test_empty_ledger_costs_nothing(row):
    for events in ((), (Gaussian(math.inf),), (Repeated(Gaussian(1.0), 0),)):
        assert (
            row.epsilon(*events, times=5)
            == row.delta(0.0, *events, times=5)
            == Bound(0.0, 0.0, 0.0)
        )


@each_row
@pytest.mark.parametrize(
    "event", [NonPrivate(), Gaussian(0.0), JointGaussian((4.0, 0.0)), Laplace(0.0)]
)
def test_no_noise_is_infinite(row, event):
    assert row.epsilon(Gaussian(4.0), event).upper == math.inf
    assert row.delta(3.0, Gaussian(4.0), event).upper == 1.0
    if row.relation is ADD_REMOVE:
        assert row.epsilon(PoissonSampled(0.01, Gaussian(0.0))).upper == math.inf


@each_event
def test_repeating_counting_and_appending_agree(row, event):
    forms = [[event] * 7, [Repeated(event, 7)], [Composed((Repeated(event, 3),) * 2), event]]

    def known(bound):
        return [end for end in (bound.lower, bound.estimate, bound.upper) if end is not None]

    for found in (
        [row.epsilon(*form) for form in forms],
        [row.delta(0.5, *form) for form in forms],
    ):
        for each in found:
            assert known(each) == pytest.approx(known(found[0]), rel=1e-12)
    assert 0 < row.epsilon(event).upper < row.epsilon(event, times=7).upper < math.inf


@each_event
def test_epsilon_and_delta_invert_each_other(row, event):
    epsilon = row.epsilon(event, times=200).upper
    delta = row.delta(epsilon, event, times=200).upper
    assert delta <= DELTA * 1.02
    # basic composition of pure DP needs no delta at all; otherwise the way back leads to the same
    # epsilon
    again = row.epsilon(event, times=200, delta=max(delta, 1e-300))
    assert again.upper == pytest.approx(epsilon, rel=2e-3)


@each_row
def test_what_is_no_ledger_and_another_relation_are_refused(row):
    other = ADD_REMOVE if row.relation is ZERO_OUT else ZERO_OUT
    with pytest.raises(ParameterError, match=other.name):
        row.accountant.epsilon(Ledger(other), DELTA)
    with pytest.raises(ParameterError, match=r"got .*ledger.append\(event, count\)"):
        row.accountant.epsilon("ledger.json", DELTA)


@each_row
def test_targets_out_of_range_are_refused(row):
    with pytest.raises(ParameterError, match="delta="):
        row.epsilon(Gaussian(4.0), delta=1.0)
    with pytest.raises(ParameterError, match="epsilon="):
        row.delta(math.inf, Gaussian(4.0))


def test_zero_out_takes_poisson_sampling_at_the_same_cost():
    event = PoissonSampled(0.01, Gaussian(4.0))
    zero_out = NeighbouringRelation.ZERO_OUT
    there, here = (spent(MomentsAccountant(of), (event, 100)) for of in (zero_out, ADD_REMOVE))
    assert there == here


@pytest.mark.parametrize(
    "event",
    [
        PoissonSampled(0.1, Gaussian(1.0)),
        Composed((Gaussian(1.0), Laplace(1.0))),
        ApproximateDP(0.5, 1e-6),
    ],
)
def test_lots_of_lots_of_several_kinds_of_noise_and_of_anything_pure_are_refused(event):
    for row in ROWS:
        with pytest.raises(UnsupportedEventError):
            row.epsilon(PoissonSampled(0.1, event))


@each_row
def test_more_releases_than_float64_can_count_cost_no_less(row):
    event = row.events[0]
    before = row.epsilon(event, times=10**6).upper
    for count in (10**16, 10**18 + 1, 2**127):
        epsilons = {
            row.epsilon(event, times=count).upper,
            row.epsilon(Repeated(event, count)).upper,
            row.epsilon(Composed((Repeated(event, count - 1), event))).upper,
        }
        assert len(epsilons) == 1 and before < epsilons.pop()
    for _ in range(8):
        event = Repeated(event, 2**127)
    with pytest.raises(NumericalBoundError, match="at most 1e300 releases"):
        row.epsilon(event)
