"""Checks of Gaussian differential privacy, trade-off curves, composition of pairs, groups and
selection.
"""

import math

import mpmath
import numpy as np
from scipy.optimize import brentq

from ...privacy import composition, group_privacy, search_cost, tradeoff
from ...privacy.events import (
    FixedSizeSampled,
    Gaussian,
    JointGaussian,
    Laplace,
    PoissonSampled,
    TotalVariation,
)
from ...privacy.events import NeighbouringRelation as Relation
from ...privacy.gaussian import GaussianAccountant, gaussian_delta
from ...privacy.ledger import Ledger
from ...privacy.moments import MomentsAccountant
from ...privacy.renyi import RenyiAccountant
from . import excess, measures, relative, worst

ALPHAS = np.linspace(0.0, 1.0, 2001)
GAUSSIAN = "privacy.gaussian.GaussianAccountant"


def ledger_of(*entries, relation=Relation.ADD_REMOVE):
    """A ledger of (event, count) pairs."""
    return Ledger(relation, entries)


def exact_delta(epsilon, mu):
    """delta(epsilon) of N(0, 1) against N(mu, 1), as an mpmath integral of (p - e^epsilon q)+."""
    with mpmath.workdps(30):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        start = epsilon / mu + mu / 2  # where the densities differ by e^epsilon
        return mpmath.quad(
            lambda z: mpmath.npdf(z - mu) - mpmath.exp(epsilon) * mpmath.npdf(z),
            [start, start + 1, start + 3, start + 8, start + 20],
        )


def exact_epsilon(delta, mu):
    """The epsilon at which `exact_delta` is delta, whose integral is a difference of two normal
    tails (40 digits).
    """

    def excess_log(epsilon):
        with mpmath.workdps(40):
            e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
            tails = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            return float(mpmath.log(tails / delta))

    return brentq(excess_log, 0.0, mu * mu + 40 * mu, xtol=1e-14, rtol=1e-13)


@measures(
    "privacy.gaussian.gaussian_delta", "C1", method="mpmath integral of 30 digits", tolerance=1e-9
)
def delta_against_mpmath(bench):
    grid = [(mu * mu / 2 + ratio * mu, mu) for mu in (1e-4, 0.5, 5.0, 30.0) for ratio in (0.0, 8.0)]
    return max(
        relative(gaussian_delta(epsilon, mu), exact_delta(epsilon, mu))
        for epsilon, mu in (*grid, (0.0, 0.3), (0.1, 6.0), (2.0, 11.0))
    )


@measures(
    GAUSSIAN,
    "M1",
    method="epsilon of one Gaussian with mu^2 = sum 1/sigma^2, by mpmath",
    tolerance=1e-8,
)
def unsampled_gaussians_compose_exactly(bench):
    got = GaussianAccountant().epsilon(ledger_of((Gaussian(4.0), 10), (Gaussian(7.0), 1)), 1e-5)
    truth = exact_epsilon(1e-5, math.sqrt(10 / 16 + 1 / 49))
    inside = got.lower <= truth <= got.upper < got.lower + 1e-8
    return relative(got.estimate, truth) if inside else math.inf


@measures(
    "privacy.bound.Within",
    "C1",
    "C2",
    "C3",
    method="the exact curve of a Gaussian, in delta",
    tolerance=2e-4,
)
def near_a_gaussian(bench):
    """mu = 1/2. What epsilon' gives away of delta, none of it downward; delta' and lower ends,
    exact to 1e-7.
    """
    accountant = GaussianAccountant()
    for epsilon, tau in ((0.5, 2.0**-30), (1.0, 2.0**-20), (0.3, 2.0**-12)):
        ledger, total = ledger_of((Gaussian(4.0), 4), (TotalVariation(tau, 3), 5)), 15 * tau
        known, added = exact_delta(epsilon, 0.5), (1 + math.exp(epsilon)) * total
        got = accountant.delta(ledger, epsilon)
        yield from (
            1e3 * relative(got.upper, known + added),
            1e3 * relative(got.lower, known - added),
        )
        for delta in (float(known + added), float(known + 3 * added)):
            got = accountant.epsilon(ledger, delta)
            added = (1 + math.exp(got.upper)) * total
            yield 1e3 * relative(got.lower, exact_epsilon(delta + added, 0.5))
            yield excess(delta, (exact_delta(got.upper, 0.5) + added) * (1 - 1e-9))


@measures(GAUSSIAN, "M2", method="variance of the likelihood ratio by quadrature", tolerance=1e-9)
def central_limit_mu_of_poisson_sampling(bench):
    """mu^2 = q^2 E[(r - 1)^2], r the unsampled likelihood ratio, by mpmath."""

    def variance(s):
        return mpmath.quad(
            lambda z: mpmath.npdf(z, 0, s) * (mpmath.exp((2 * z - 1) / (2 * s * s)) - 1) ** 2,
            mpmath.linspace(-12 * s, 12 * s + 2, 9),
        )

    return max(
        relative(
            GaussianAccountant().cost_curve(PoissonSampled(q, Gaussian(s)), False)[0],
            q * q * variance(s),
        )
        for q, s in ((0.01, 4.0), (0.1, 1.0))
    )


@measures(GAUSSIAN, "M3", method="the formula in mpmath", tolerance=1e-11)
def central_limit_mu_of_uniform_sampling(bench):
    def formula(sigma):
        with mpmath.workdps(30):
            s = 1 / mpmath.mpf(sigma)
            return (
                2
                * mpmath.mpf("0.01") ** 2
                * (mpmath.exp(s * s) * mpmath.ncdf(1.5 * s) + 3 * mpmath.ncdf(-0.5 * s) - 2)
            )

    return max(
        relative(
            GaussianAccountant(Relation.REPLACE_ONE).cost_curve(
                FixedSizeSampled(1000, 10, Gaussian(sigma)), False
            )[0],
            formula(sigma),
        )
        for sigma in (0.8, 4.0, 50.0)
    )


@measures("privacy.tradeoff.epsilon_delta_curve", "C1", method="loop over points", tolerance=1e-12)
def epsilon_delta_lines(bench):
    expected = [max(0.0, 1 - 0.05 - math.e * a, (1 - 0.05 - a) / math.e) for a in ALPHAS]
    return worst(tradeoff.epsilon_delta_curve(ALPHAS, 1.0, 0.05), expected)


@measures(
    "privacy.tradeoff.true_positive_rate",
    "C1",
    method="the exact power, at points and between them: shortfall",
    tolerance=1e-12,
)
def power_is_never_too_low(bench):
    """And no larger than the power at the next point."""
    alphas = np.linspace(0, 1, 11)
    betas = tradeoff.gaussian_curve(alphas, 2.0)
    for rate in (0.0, 1e-5, 0.05, 0.1, 0.37, 0.999, 1.0):
        found = tradeoff.true_positive_rate(alphas, betas, rate)
        exact, above = (
            1 - float(tradeoff.gaussian_curve([at], 2.0)[0])
            for at in (rate, alphas[alphas >= rate][0])
        )
        yield from (exact - found, abs(found - above))


@measures(
    "privacy.tradeoff.gaussian_curve",
    "C1",
    method="mpmath: the test that rejects above a threshold",
    tolerance=1e-12,
)
def gaussian_curve_is_a_threshold_test(bench):
    thresholds = [-2.0, -0.5, 0.0, 1.3, 3.0]
    alphas = [float(1 - mpmath.ncdf(t)) for t in thresholds]
    return worst(
        tradeoff.gaussian_curve(alphas, 0.7),
        [float(mpmath.ncdf(t - mpmath.mpf("0.7"))) for t in thresholds],
    )


def _amplified(q, sigma, delta):
    return math.log(1 + q * (math.exp(exact_epsilon(delta / q, 1 / sigma)) - 1))


@measures(
    "privacy.composition.PairAccountant",
    "M1",
    method="sum of exact Gaussian epsilons, amplified",
    tolerance=1e-9,
)
@measures(
    "privacy.composition.BasicAccountant", "C1", method="sum over releases, by hand", tolerance=1e-9
)
def basic_composition_adds(bench):
    ledger = ledger_of((PoissonSampled(0.01, Gaussian(4.0)), 100), (Laplace(20.0), 3))
    expected = 100 * _amplified(0.01, 4.0, 1e-5 / 100) + 3 / 20
    return excess(composition.BasicAccountant().epsilon(ledger, 1e-5).upper, expected)


@measures(
    "privacy.composition.PairAccountant",
    "M1",
    method="the theorem's formula of exact ones",
    tolerance=1e-9,
)
@measures(
    "privacy.composition.AdvancedAccountant",
    "C1",
    method="the theorem's formula, by hand",
    tolerance=1e-9,
)
def strong_composition(bench):
    for steps in (100, 10_000):
        e = _amplified(0.01, 4.0, 5e-6 / steps)
        expected = min(
            math.sqrt(2 * math.log(2e5) * steps * e * e) + steps * e * (math.exp(e) - 1), steps * e
        )
        ledger = ledger_of((PoissonSampled(0.01, Gaussian(4.0)), steps))
        yield excess(composition.AdvancedAccountant().epsilon(ledger, 1e-5).upper, expected)


@measures(
    "privacy.composition.PaperStrongComposition",
    "M1",
    "C1",
    method="Figure 2's formula, by hand",
    tolerance=1e-9,
)
def figure_2(bench):
    e = 0.01 * math.sqrt(2 * math.log(1.25 / (5e-6 / 10_000 / 0.01))) / 4
    expected = e * math.sqrt(2 * 10_000 * math.log(2e5)) + 10_000 * e * (math.exp(e) - 1)
    accountant = composition.PaperStrongComposition()
    got = accountant.epsilon(ledger_of((PoissonSampled(0.01, Gaussian(4.0)), 10_000)), 1e-5).upper
    return relative(got, expected) if accountant.kind == "comparison" else math.inf


@measures(
    "privacy.composition.PerTensorAccountant2016",
    "M1",
    method="each tensor as a release of its own; kind",
    tolerance=1e-12,
)
def the_2016_ledger_charges_per_tensor(bench):
    joint = ledger_of((PoissonSampled(0.01, JointGaussian((4.0, 6.0))), 500))
    apart = ledger_of(
        (PoissonSampled(0.01, Gaussian(4.0)), 500), (PoissonSampled(0.01, Gaussian(6.0)), 500)
    )
    accountant, honest = (
        composition.PerTensorAccountant2016(),
        MomentsAccountant(orders=tuple(range(1, 33))),
    )
    got = accountant.epsilon(joint, 1e-5).upper
    if accountant.kind != "comparison" or not got < honest.epsilon(joint, 1e-5).upper:
        return math.inf
    return relative(got, honest.epsilon(apart, 1e-5).upper)


@measures(
    "privacy.events.sampled.PoissonSampled.for_group",
    "C1",
    method="ledger of the group, written by hand",
    tolerance=1e-9,
)
def sampled_groups(bench):
    """Of so large a share of the data that the generic rule gives more."""
    ledger = ledger_of((PoissonSampled(0.9, Gaussian(4.0)), 30))
    by_hand = ledger_of((PoissonSampled(1 - 0.1**3, Gaussian(4 / 3)), 30))
    accountant = RenyiAccountant()
    got = group_privacy.group_epsilon(accountant, ledger, 1e-5, 3).upper
    return relative(got, accountant.epsilon(by_hand, 1e-5).upper)


@measures(
    "privacy.group_privacy.group_epsilon",
    "C2",
    method="the share d at which the rule is met, by Brent",
    tolerance=1e-5,
)
def the_generic_rule(bench):
    """A fixed-size sample has no group form of its own, so that the generic rule decides."""
    accountant = RenyiAccountant(Relation.REPLACE_ONE)
    ledger = ledger_of(
        (FixedSizeSampled(1000, 10, Gaussian(4.0)), 20), relation=Relation.REPLACE_ONE
    )

    def excess_log(log_d):
        e = math.exp(accountant.epsilon(ledger, math.exp(log_d)).upper)
        return log_d + math.log((1 + e + e * e) / 1e-5)

    share = math.exp(brentq(excess_log, math.log(1e-8), math.log(1e-5)))
    return relative(
        group_privacy.group_epsilon(accountant, ledger, 1e-5, 3).upper,
        3 * accountant.epsilon(ledger, share).upper,
    )


@measures(
    "privacy.group_privacy.group_delta",
    "C3",
    method="three members who change one Gaussian release, as an integral",
    tolerance=1e-8,
)
def delta_of_a_group(bench):
    ledger = ledger_of((Gaussian(6.0), 1))
    return relative(
        group_privacy.group_delta(GaussianAccountant(), ledger, 1.0, 3).upper,
        float(exact_delta(1.0, 0.5)),
    )


@measures(
    "privacy.group_privacy.group_delta",
    "C4",
    method="neighbour by neighbour along the chain",
    tolerance=1e-12,
)
def delta_of_a_group_by_the_generic_rule(bench):
    """P(x) <= e^a P(x') + d from one member to the next: d, then e^a d + d, then e^2a d + e^a d +
    d.
    """
    accountant = RenyiAccountant(Relation.REPLACE_ONE)
    ledger = ledger_of(
        (FixedSizeSampled(1000, 10, Gaussian(4.0)), 20), relation=Relation.REPLACE_ONE
    )
    step = math.exp(0.9 / 3)
    claimed = group_privacy.group_delta(accountant, ledger, 0.9, 3).upper
    return relative(claimed, (1 + step + step * step) * accountant.delta(ledger, 0.9 / 3).upper)


@measures(
    "privacy.search_cost.theorem_d1",
    "C1",
    "C2",
    "C3",
    method="the paper's setting, by hand",
    tolerance=1e-12,
)
def theorem_d1_by_hand(bench):
    cost = search_cost.theorem_d1(1.5, 0.4, 0.05, 1 / 300)
    inverse = 300 / (0.4 * 0.05)
    return worst(
        [cost.calls / inverse**2, cost.accuracy_loss, cost.epsilon, cost.epsilon_validation],
        [math.log(inverse), 10 * math.log(inverse), 4.7, 3.2],
    )


@measures("privacy.search_cost.liu_talwar", "C1", method="by hand", tolerance=1e-12)
def liu_talwar_by_hand(bench):
    return relative(search_cost.liu_talwar(0.7), 2.1)


@measures(
    "privacy.search_cost.poisson_stopped_epsilon", "M1", method="loop over orders", tolerance=1e-9
)
def poisson_stopping_by_a_loop(bench):
    orders, mean = (4.0, 10.0, 30.0), 5.0
    accountant, ledger = RenyiAccountant(orders=orders), ledger_of((Gaussian(20.0), 4))
    candidates = []
    for a in orders:
        divergence = 4 * a / (2 * 400)
        single = accountant.delta(ledger, math.log(1 + 1 / (a - 1))).upper
        total = divergence + mean * single + math.log(mean) / (a - 1)
        candidates.append(total + math.log((a - 1) / a) - (math.log(1e-5) + math.log(a)) / (a - 1))
    return relative(
        search_cost.poisson_stopped_epsilon(accountant, ledger, 1e-5, mean), min(candidates)
    )
