"""At the ends of every range there is an answer, and it is right; what no noise protects."""

import math
import random

import mpmath
import numpy as np
import pytest

import minidp
from minidp.privacy import (
    ApproximateDP,
    Bound,
    Composed,
    Gaussian,
    GaussianAccountant,
    Laplace,
    Ledger,
    LossDistributionAccountant,
    NonPrivate,
    PoissonSampled,
    PureDP,
    RenyiAccountant,
    group_epsilon,
)
from minidp.privacy.accountants import all_bounds, make
from minidp.privacy.gaussian import gaussian_delta
from tests.support.accountants import ledger_of, spent

TIGHT, RENYI = LossDistributionAccountant(), RenyiAccountant()
STEP = PoissonSampled(0.01, Gaussian(4.0))
BOUNDS = ("loss_distribution", "renyi", "moments", "basic", "advanced")


def random_ledger(seed):
    """(ledger, delta) of one to ten kinds of releases: q from 1e-300 to 1, noise 1e-3 to 1e9,
    counts to 1e18.
    """
    rng = random.Random(seed)
    entries = []

    def exponent(*ranges):
        return 10 ** rng.uniform(*rng.choice(ranges))

    for _ in range(rng.choice((1, 1, 2, 3, 5, 10))):
        q = rng.choice(
            (exponent((-300, 0), (-12, 0), (-4, 0)),) * 3 + (1.0, 1 - exponent((-15, -1)))
        )
        noise, count = exponent((-3, 9), (-0.5, 2)), round(exponent((0, 18), (0, 5), (0, 0)))
        event = rng.choice((Gaussian(noise),) * 16 + (Laplace(noise), PureDP(1 / noise)))
        entries.append(
            (PoissonSampled(q, event) if q < 1 and not isinstance(event, PureDP) else event, count)
        )
    return ledger_of(*entries), min(exponent((-300, 0), (-12, -2)), 1 - 1e-9)


@pytest.mark.parametrize(
    "seeds", [range(5), pytest.param(range(5, 2010), marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_any_ledger_is_answered_and_all_bounds_agree(seeds):
    for seed in seeds:
        (ledger, delta), found = random_ledger(seed), []
        for name in BOUNDS:
            bound = make(name).epsilon(ledger, delta)
            found.append(bound)
            assert (bound.lower or 0.0) <= bound.estimate <= bound.upper, (seed, name)
            if bound.upper < 1e300:
                at = make(name).delta(ledger, bound.upper)
                assert (at.lower or 0.0) <= delta * (1 + 1e-9) and at.upper <= 1, (seed, name)
        lower = max(bound.lower or 0.0 for bound in found)
        upper = min(bound.upper for bound in found)
        assert lower <= upper * (1 + 1e-9) + 1e-12, seed
        assert found[0].upper <= 1.02 * min(found[1].upper, found[3].upper) + 1e-4, seed


@pytest.mark.parametrize(
    "q, sigma, steps, delta",
    [
        (0.5, 1e-6, 10, 1e-5),
        (1.0, 1e-200, 10, 1e-5),
        (0.5, 1e20, 10**7, 1e-5),
        (1e-300, 0.1, 10**7, 1e-5),
        (0.01, 4.0, 10**4, 0.999),
        (0.01, 4.0, 1, 1e-300),
    ],
)
def test_the_ends_of_every_range_are_answered_soundly(q, sigma, steps, delta):
    ledger = ledger_of((PoissonSampled(q, Gaussian(sigma)), steps))
    found = [make(name).epsilon(ledger, delta) for name in BOUNDS]
    assert all(0 <= (bound.lower or 0.0) <= bound.estimate <= bound.upper for bound in found)
    assert found[0].upper <= found[1].upper * (1 + 1e-6) + 1e-4


def test_a_fallback_is_named():
    ledger = ledger_of((STEP, 10**16))
    bound, _, note = all_bounds(ledger, ["loss_distribution"], delta=1e-5)["loss_distribution"]
    assert bound.to_json()["fallback"] == "renyi" and note.endswith("; upper end by renyi")
    assert bound.upper == RENYI.epsilon(ledger, 1e-5).upper
    assert "fallback" not in spent(TIGHT, (STEP, 10)).to_json()


def test_numbers_are_numbers_and_no_accountant_stops_the_others():
    given = {"sampling_probability": 0.01, "steps": 100}
    for delta, noise in ((5e-324, 1), (1e-5, 0)):
        found = minidp.epsilon(delta=delta, noise_multiplier=noise, **given)["accountants"]
        assert found.keys() == {*BOUNDS} and all(row["upper"] <= math.inf for row in found.values())
    nothing = ledger_of((PureDP(0.0), 5), (STEP, 10))
    for name in BOUNDS:
        assert make(name).epsilon(nothing, 1e-5) == spent(make(name), (STEP, 10))


@pytest.mark.parametrize("name", BOUNDS)
def test_a_sample_without_noise_costs_its_share_of_delta(name):
    accountant = make(name)
    assert spent(accountant, (PoissonSampled(0.0, Gaussian(0.0)), 5)) == Bound(0.0, 0.0, 0.0)
    for bare in (Gaussian(0.0), NonPrivate(), Composed((Gaussian(1.0), Laplace(0.0)))):
        ledger = ledger_of((PoissonSampled(0.001, bare), 3))
        assert accountant.epsilon(ledger, 0.003).upper == 0
        assert accountant.epsilon(ledger, 0.0029) == Bound(0.0, math.inf, math.inf)
        assert accountant.delta(ledger, 7.0).upper == pytest.approx(1 - 0.999**3, rel=1e-12)


@pytest.mark.parametrize("name", BOUNDS)
def test_an_approximate_release_adds_both_of_its_numbers(name):
    accountant = make(name)
    once, thrice = (ledger_of((ApproximateDP(0.5, 1e-6), n)) for n in (1, 3))
    assert 0.4999 < accountant.epsilon(once, 1.001e-6).upper <= 0.5 * (1 + 1e-9)
    assert accountant.epsilon(once, 0.999e-6).upper == math.inf
    assert 0.5 < accountant.epsilon(thrice, 1e-5).upper <= 1.5 * (1 + 1e-9)
    assert accountant.delta(thrice, 1.5 * (1 + 1e-9)).upper == pytest.approx(3e-6, rel=1e-5)
    assert group_epsilon(accountant, once, 1e-5, 3).upper >= 1.4999


def test_noise_too_small_for_a_grid_falls_back_on_the_exact_curve_of_one_release():
    exact = spent(GaussianAccountant(), (Gaussian(2e-3), 1))
    assert spent(TIGHT, (Gaussian(2e-3), 1)) == exact
    bound = spent(TIGHT, (PoissonSampled(0.999, Gaussian(2e-3)), 1))
    assert exact.upper * 0.99 < bound.upper <= exact.upper and bound.fallback == "basic"


def test_the_delta_of_very_little_privacy_loss_has_all_its_digits():
    """By mpmath with 60 digits: of sigma 1e12 at epsilon 8e-12, and of others."""
    ledger = Ledger()
    ledger.append(Gaussian(1e12))
    found = GaussianAccountant().delta(ledger, 8e-12)
    assert found.estimate == pytest.approx(7.550262411976699e-29, rel=1e-11)
    assert found.lower <= 7.550262411976699e-29 <= found.upper < 7.5503e-29
    mpmath.mp.dps = 60
    rng = np.random.default_rng(0)
    for _ in range(300):
        mu, place = 10.0 ** rng.uniform(-14, -1), rng.uniform(-4, 30)
        epsilon = place * mu
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert gaussian_delta(epsilon, mu) == pytest.approx(float(exact), rel=1e-9)
