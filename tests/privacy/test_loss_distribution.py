"""The certified interval: it holds the truth, and is narrow."""

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest

from minidp.audit.checks.exact_values import exact_deltas
from minidp.certified.fourier import spectrum_of
from minidp.certified.gaussian import gaussian_epsilon
from minidp.certified.masses import ADD, REMOVE, masses_of
from minidp.privacy import (
    Gaussian,
    JointGaussian,
    Laplace,
    LossDistributionAccountant,
    PoissonSampled,
    RenyiAccountant,
)
from tests.support.accountants import ledger_of, spent

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
PEERS = json.loads((RESULTS / "accountants_beside.json").read_text())["settings"]
ACCOUNTANT = LossDistributionAccountant()


def narrow(bound):
    return bound.upper - bound.lower <= max(0.005 * bound.upper, 1e-4)


@pytest.mark.parametrize("row", PEERS, ids=lambda row: f"{row['q']}-{row['steps']}")
def test_against_dp_accounting(row):
    step = PoissonSampled(row["q"], JointGaussian(row["sigmas"]))
    entries = [*([(Gaussian(row["pca"]), 1)] if row["pca"] else []), (step, row["steps"])]
    bound = spent(ACCOUNTANT, *entries, delta=row["delta"])
    assert bound.lower <= row["pld"]
    assert bound.upper <= row["pld"] + max(0.003 * row["pld"], 2e-4)
    assert narrow(bound)
    renyi = spent(RenyiAccountant(), *entries, delta=row["delta"])
    assert renyi.upper <= 1.005 * row["rdp"] + 1e-9


@pytest.mark.parametrize("direction", [REMOVE, ADD])
@pytest.mark.parametrize(
    "sigma, width",
    [
        (sigma, width)
        for sigma in (1e-1, 1.0, 30.0, 1.4e7)
        for width in (1e-2, 0.3, 2.0, 50.0, 1e4)
        if width / sigma < 100
    ],
)
def test_dominating_masses_add_up_to_one(direction, sigma, width):
    """At any width of a cell, in standard deviations: what is lost once is lost at each of 10^10
    releases.
    """
    for event in (Gaussian(sigma), PoissonSampled(0.3, Gaussian(sigma))):
        masses = masses_of(event, direction, True, width / sigma, (0.02, math.inf), 11.0)
        assert abs(math.fsum([*np.exp(masses.log_mass), math.exp(masses.infinite), -1])) <= 1e-13


def test_delta_far_below_the_grid_of_very_many_releases():
    """The grid is so coarse for 3e13 releases that epsilon lies outside of its window: the interval
    must say so.
    """
    ledger = ledger_of((Gaussian(2.3e7), 32 * 10**12), (Gaussian(28000.0), 702))
    exact = exact_deltas(1.0, 1 / math.sqrt(32e12 / 2.3e7**2 + 702 / 28000.0**2), 7.3)[REMOVE]
    bound = ACCOUNTANT.delta(ledger, 7.3)
    assert bound.lower <= exact <= bound.upper


@pytest.mark.parametrize("sigma, count", [(1.4e7, 3 * 10**10), (1e4, 10**6)])
def test_very_many_releases_of_very_little_beside_others(sigma, count):
    exact = gaussian_epsilon(math.sqrt(2e7 / 27.7**2 + count / sigma**2), 1e-9)
    bound = spent(ACCOUNTANT, (Gaussian(27.7), 2 * 10**7), (Gaussian(sigma), count), delta=1e-9)
    assert bound.lower <= exact <= bound.upper


@pytest.mark.parametrize("noise", [1e5, 9e8])
def test_noise_that_costs_nothing_beside_noise_that_does(noise):
    """Such ledgers took minutes: each knot of the common grid lies millions of standard deviations
    out for one of them.
    """
    step = (PoissonSampled(0.1, Gaussian(4.0)), 2)
    alone = spent(ACCOUNTANT, step, delta=1e-40)
    for other in (
        Gaussian(noise),
        PoissonSampled(0.5, Gaussian(noise)),
        PoissonSampled(1e-120, Gaussian(1.0)),
    ):
        both = spent(ACCOUNTANT, step, (other, 3), delta=1e-40)
        assert both.lower <= alone.upper * (1 + 1e-3) and alone.lower <= both.upper and narrow(both)


def test_epsilon_far_out_has_a_tiny_delta():
    ledger = ledger_of((PoissonSampled(0.01, Gaussian(4.0)), 10000))
    assert 0 < ACCOUNTANT.delta(ledger, 50.0).upper < 1e-290


def test_pure_dp_enters_from_above_only():
    only = spent(ACCOUNTANT, (Laplace(20.0), 1000))
    mixed = spent(ACCOUNTANT, (Laplace(20.0), 10), (Gaussian(2.0), 1))
    alone = spent(ACCOUNTANT, (Gaussian(2.0), 1))
    assert only.lower is None and mixed.lower <= alone.upper <= mixed.upper


@pytest.mark.parametrize("main", [0.2, 0.999999])
def test_error_bound_holds_in_thirty_digits(main):
    rng = np.random.default_rng(1)
    knots = np.arange(-20, 44)
    mass = rng.random(len(knots))
    mass *= (1 - main) / mass.sum()
    mass[30] += main
    found, error = spectrum_of(mass, knots, 48)
    with mpmath.workdps(30):
        for frequency in range(25):
            exact = sum(
                mpmath.mpf(float(m)) * mpmath.expjpi(mpmath.mpf(-2 * int(k) * frequency) / 48)
                for m, k in zip(mass, knots)
            )
            assert abs(mpmath.mpc(complex(found[frequency])) - exact) <= error
    assert error < 1e-12
