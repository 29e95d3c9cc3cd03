"""Events: validation, the joint rule, and JSON both ways."""
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidp.errors import DataError
from minidp.privacy import (Composed, FixedSizeSampled, Gaussian, JointGaussian, Laplace, Ledger, NeighbouringRelation,
                            NonPrivate, PoissonSampled, PureDP, RandomlyStopped, Repeated, TotalVariation, Unknown)
from minidp.privacy.catalogue import make
from minidp.privacy.events import event_from_json, event_to_json

multiplier = st.one_of(st.floats(0, 1e6), st.just(math.inf))
leaf = st.one_of(multiplier.map(Gaussian), multiplier.map(Laplace), st.just(NonPrivate()), st.just(Unknown()),
                 st.floats(1e-6, 10).map(PureDP),
                 st.tuples(st.floats(0, 0.99), st.integers(0, 2**40)).map(lambda a: TotalVariation(*a)),
                 st.lists(multiplier, min_size=1, max_size=3).map(lambda s: JointGaussian(tuple(s))))
events = st.recursive(leaf, lambda inner: st.one_of(
    st.tuples(st.floats(0, 1), inner).map(lambda a: PoissonSampled(*a)),
    st.tuples(st.integers(5, 9), st.integers(0, 5), inner).map(lambda a: FixedSizeSampled(*a)),
    st.lists(inner, max_size=3).map(lambda e: Composed(tuple(e))), inner.map(lambda e: RandomlyStopped(e, 0.5, 0.1)),
    st.tuples(inner, st.integers(0, 9)).map(lambda a: Repeated(*a))), max_leaves=6)


@given(events)
@settings(max_examples=100, deadline=None)
def test_json_round_trip(event):
    text = json.dumps(event_to_json(event), allow_nan=False)
    again = event_from_json(json.loads(text))
    assert again == event and hash(again) == hash(event)


def test_equal_events_have_equal_json():
    forms = [Gaussian(4), Gaussian(4.0), Gaussian(np.float64(4)), Gaussian(np.int64(4))]
    assert len({json.dumps(event_to_json(event)) for event in forms}) == 1
    assert FixedSizeSampled(np.int64(10), np.int64(2), forms[0]) == FixedSizeSampled(10, 2, forms[1])


@pytest.mark.parametrize("multipliers, expected", [
    ((4.0,), 4.0), ((4.0, 4.0), 4.0 / math.sqrt(2)), ((3.0, 6.0), 1 / math.sqrt(1 / 9 + 1 / 36)),
    ((3.0, 0.0), 0.0), ((3.0, math.inf), 3.0), ((math.inf,), math.inf), ((1e-200, 1e-200), 1e-200 / math.sqrt(2)),
    ((1e200, 1e200), 1e200 / math.sqrt(2)), ((0.0, math.inf), 0.0)])
def test_effective_noise_multiplier(multipliers, expected):
    assert JointGaussian(multipliers).effective_noise_multiplier == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("data", [
    None, 3, [], {}, {"event": "Teleport"}, {"event": ["Gaussian"]}, {"event": {"event": "Gaussian"}},
    {"event": "Gaussian"}, {"event": "Gaussian", "noise_multiplier": -1},
    {"event": "Gaussian", "noise_multiplier": "large"}, {"event": "Gaussian", "noise_multiplier": 1, "note": 2},
    {"event": "Gaussian", "noise_multiplier": None}, {"event": "Gaussian", "noise_multiplier": 10 ** 400},
    {"event": "PoissonSampled", "sampling_probability": 0.1, "inner": 3},
    {"event": "Composed", "events": {"event": "NonPrivate"}}, {"event": "Composed", "events": 7}])
def test_anything_else_in_json_is_refused(data):
    with pytest.raises(DataError):
        event_from_json(data)


def test_a_pure_release_costs_its_epsilon_and_no_more():
    for name in ("basic", "advanced", "moments", "renyi", "loss_distribution"):
        accountant = make(name, NeighbouringRelation.ADD_REMOVE)
        conversion = 1e-6 + (math.log(1e9) / 1024 if name in ("moments", "renyi") else 0)  # at their largest order
        ledger = Ledger()
        ledger.append(PureDP(0.3))
        assert 0.3 * (1 - 1e-6) <= accountant.epsilon(ledger, 1e-9).upper <= 0.3 + conversion, name
        ledger.append(PureDP(0.3), 9)
        assert 0 < accountant.epsilon(ledger, 1e-9).upper <= 3 + conversion, name
        assert not accountant.supports(PoissonSampled(0.1, PureDP(0.3)))
