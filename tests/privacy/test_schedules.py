"""Noise and sampling that follow a schedule: many different lots are composed on the safe side."""

import numpy as np
import pytest

from minidp.privacy import Gaussian, Ledger, LossDistributionAccountant, PoissonSampled
from minidp.privacy.accountants import all_bounds, make
from minidp.privacy.ladder import FEW

DELTA = 1e-5


def schedule(noises, share=0.01):
    lots = np.broadcast_arrays(np.asarray(noises, float), share)
    return Ledger(entries=[(PoissonSampled(float(q), Gaussian(float(s))),) for s, q in zip(*lots)])


def blurred(noises):
    """1,000 noise multipliers that differ in the tenth digit."""
    return np.resize(noises, 1000) * (1 + 1e-10 * np.arange(1000))


@pytest.mark.parametrize("noises", [[1.0], [2.0, 1.9, 1.0], np.linspace(0.6, 8, FEW)])
def test_a_thousand_lots_that_hardly_differ_cost_what_a_few_kinds_cost(noises):
    few, many = schedule(np.resize(noises, 1000)), schedule(blurred(noises))
    for name in ("loss_distribution", "renyi", "moments", "basic", "advanced"):
        one, other = (make(name).epsilon(ledger, DELTA) for ledger in (few, many))
        assert one.upper * (1 - 1e-6) <= other.upper <= 1.02 * one.upper
        assert (other.lower or 0) <= one.upper and (one.lower or 0) <= other.upper
    assert other.fallback == ""


@pytest.mark.parametrize(
    "noises, share",
    [
        (np.linspace(2, 1, 1000), 0.01),
        (np.geomspace(20, 0.5, 2000), 0.01),
        (np.linspace(2, 1, 1000), np.geomspace(1e-3, 0.1, 1000)),
        (1 + 0.5 * np.sin(np.arange(500)), 0.1),
    ],
)
def test_the_interval_is_narrow(noises, share):
    bound = all_bounds(schedule(noises, share), ["loss_distribution"], delta=DELTA)
    bound = bound["loss_distribution"][0]
    assert bound.lower <= bound.upper <= 1.015 * bound.lower and bound.fallback == ""


def test_a_growing_run_is_answered_as_by_an_accountant_that_was_never_asked():
    noises, asked, last = np.linspace(2, 0.8, 600), LossDistributionAccountant(), 0.0
    for steps in (600, 60, 200, 400, 600):
        ledger = schedule(noises[:steps])
        one, other = (each.epsilon(ledger, DELTA) for each in (asked, LossDistributionAccountant()))
        assert one.lower <= other.upper and other.lower <= one.upper <= 1.015 * one.lower
        at = asked.delta(ledger, one.upper)
        assert at.lower <= DELTA <= 1.3 * at.upper
        last = one.upper if steps < 600 else last
    assert one.upper > last
