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
from ...privacy.moments import MomentsAccountant
from ...privacy.renyi import RenyiAccountant
from . import excess, holds, measures, relative, worst
from .truths import exact_delta, exact_epsilon, ledger_of, log_integral

ALPHAS = np.linspace(0.0, 1.0, 2001)
GAUSSIAN, COMPOSITION = "privacy.gaussian.GaussianAccountant", "privacy.composition"
GROUPS = "privacy.group_privacy.group"


@measures("privacy.gaussian.gaussian_delta", "C1", "mpmath integral of 30 digits", 1e-9)
def delta_against_mpmath(bench):
    grid = [(mu * mu / 2 + ratio * mu, mu) for mu in (1e-4, 0.5, 5.0, 30.0) for ratio in (0.0, 8.0)]
    for place in (*grid, (0.0, 0.3), (0.1, 6.0), (2.0, 11.0)):
        yield relative(gaussian_delta(*place), exact_delta(*place))


@measures(GAUSSIAN, "M1", "epsilon of one Gaussian with mu^2 = sum 1/sigma^2, by mpmath", 1e-8)
def unsampled_gaussians_compose_exactly(bench):
    got = GaussianAccountant().epsilon(ledger_of((Gaussian(4.0), 10), (Gaussian(7.0), 1)), 1e-5)
    truth = exact_epsilon(1e-5, math.sqrt(10 / 16 + 1 / 49))
    yield holds(got.lower <= truth <= got.upper < got.lower + 1e-8)
    yield relative(got.estimate, truth)


@measures("privacy.bound.Within", "C1 C2 C3", "the exact curve of a Gaussian, in delta", 0.0002)
def near_a_gaussian(bench):
    """mu = 1/2. What epsilon' gives away of delta, none of it downward; delta' and lower ends,
    exact to 1e-7.
    """
    accountant = GaussianAccountant()
    for epsilon, tau in ((0.5, 2.0**-30), (1.0, 2.0**-20), (0.3, 2.0**-12)):
        ledger, total = ledger_of((Gaussian(4.0), 4), (TotalVariation(tau, 3), 5)), 15 * tau
        known, added = exact_delta(epsilon, 0.5), (1 + math.exp(epsilon)) * total
        got = accountant.delta(ledger, epsilon)
        yield 1e3 * relative(got.upper, known + added)
        yield 1e3 * relative(got.lower, known - added)
        for delta in (float(known + added), float(known + 3 * added)):
            got = accountant.epsilon(ledger, delta)
            added = (1 + math.exp(got.upper)) * total
            yield 1e3 * relative(got.lower, exact_epsilon(delta + added, 0.5))
            yield excess(delta, (exact_delta(got.upper, 0.5) + added) * (1 - 1e-9))


@measures(GAUSSIAN, "M2", "variance of the likelihood ratio by quadrature", 1e-9)
def central_limit_mu_of_poisson_sampling(bench):
    """mu^2 = q^2 E[(r - 1)^2], r the unsampled likelihood ratio, by mpmath."""
    for q, s in ((0.01, 4.0), (0.1, 1.0)):
        got = GaussianAccountant().cost_curve(PoissonSampled(q, Gaussian(s)), False)[0]
        yield relative(got, q * q * mpmath.expm1(log_integral(1, s, 2)))


@measures(GAUSSIAN, "M3", "the formula in mpmath", 1e-11)
def central_limit_mu_of_uniform_sampling(bench):
    accountant = GaussianAccountant(Relation.REPLACE_ONE)
    for sigma in (0.8, 4.0, 50.0):
        got = accountant.cost_curve(FixedSizeSampled(1000, 10, Gaussian(sigma)), False)[0]
        with mpmath.workdps(30):
            s = 1 / mpmath.mpf(sigma)
            mu = mpmath.exp(s * s) * mpmath.ncdf(1.5 * s) + 3 * mpmath.ncdf(-0.5 * s) - 2
            yield relative(got, 2 * mpmath.mpf("0.01") ** 2 * mu)


@measures("privacy.tradeoff.epsilon_delta_curve", "C1", "loop over points", 1e-12)
def epsilon_delta_lines(bench):
    expected = [max(0.0, 1 - 0.05 - math.e * a, (1 - 0.05 - a) / math.e) for a in ALPHAS]
    return worst(tradeoff.epsilon_delta_curve(ALPHAS, 1.0, 0.05), expected)


@measures(
    "privacy.tradeoff.true_positive_rate",
    "C1",
    "the exact power, at points and between them: shortfall",
    1e-12,
)
def power_is_never_too_low(bench):
    """And no larger than the power at the next point."""
    alphas = np.linspace(0, 1, 11)
    betas = tradeoff.gaussian_curve(alphas, 2.0)
    for rate in (0.0, 1e-5, 0.05, 0.1, 0.37, 0.999, 1.0):
        found = tradeoff.true_positive_rate(alphas, betas, rate)
        exact, above = 1 - tradeoff.gaussian_curve([rate, alphas[alphas >= rate][0]], 2.0)
        yield exact - found
        yield abs(found - above)


@measures(
    "privacy.tradeoff.gaussian_curve",
    "C1",
    "mpmath: the test that rejects above a threshold",
    1e-12,
)
def gaussian_curve_is_a_threshold_test(bench):
    for threshold in (-2.0, -0.5, 0.0, 1.3, 3.0):
        alpha, mu = float(mpmath.ncdf(-threshold)), mpmath.mpf("0.7")
        yield relative(tradeoff.gaussian_curve([alpha], 0.7)[0], mpmath.ncdf(threshold - mu))


def _amplified(q, sigma, delta):
    return math.log(1 + q * (math.exp(exact_epsilon(delta / q, 1 / sigma)) - 1))


def _sampled(steps, q=0.01, event=Gaussian(4.0)):
    return ledger_of((PoissonSampled(q, event), steps))


@measures(f"{COMPOSITION}.PairAccountant", "M1", "sum of exact Gaussian epsilons, amplified", 1e-9)
@measures(f"{COMPOSITION}.BasicAccountant", "C1", "sum over releases, by hand", 1e-9)
def basic_composition_adds(bench):
    ledger = ledger_of((PoissonSampled(0.01, Gaussian(4.0)), 100), (Laplace(20.0), 3))
    expected = 100 * _amplified(0.01, 4.0, 1e-5 / 100) + 3 / 20
    return excess(composition.BasicAccountant().epsilon(ledger, 1e-5).upper, expected)


@measures(f"{COMPOSITION}.PairAccountant", "M1", "the theorem's formula of exact ones", 1e-9)
@measures(f"{COMPOSITION}.AdvancedAccountant", "C1", "the theorem's formula, by hand", 1e-9)
def strong_composition(bench):
    for steps in (100, 10_000):
        e = _amplified(0.01, 4.0, 5e-6 / steps)
        strong = math.sqrt(2 * math.log(2e5) * steps * e * e) + steps * e * (math.exp(e) - 1)
        got = composition.AdvancedAccountant().epsilon(_sampled(steps), 1e-5).upper
        yield excess(got, min(strong, steps * e))


@measures(f"{COMPOSITION}.PaperStrongComposition", "M1 C1", "Figure 2's formula, by hand", 1e-9)
def figure_2(bench):
    e = 0.01 * math.sqrt(2 * math.log(1.25 / (5e-6 / 10_000 / 0.01))) / 4
    expected = e * math.sqrt(2 * 10_000 * math.log(2e5)) + 10_000 * e * (math.exp(e) - 1)
    accountant = composition.PaperStrongComposition()
    yield holds(accountant.kind == "comparison")
    yield relative(accountant.epsilon(_sampled(10_000), 1e-5).upper, expected)


@measures(
    f"{COMPOSITION}.PerTensorAccountant2016",
    "M1",
    "each tensor as a release of its own; kind",
    1e-12,
)
def the_2016_ledger_charges_per_tensor(bench):
    joint = _sampled(500, event=JointGaussian((4.0, 6.0)))
    apart = ledger_of(*((PoissonSampled(0.01, Gaussian(s)), 500) for s in (4.0, 6.0)))
    accountant = composition.PerTensorAccountant2016()
    honest = MomentsAccountant(orders=tuple(range(1, 33)))
    got = accountant.epsilon(joint, 1e-5).upper
    below = accountant.kind == "comparison" and got < honest.epsilon(joint, 1e-5).upper
    yield holds(below)
    yield relative(got, honest.epsilon(apart, 1e-5).upper)


# a fixed-size sample has no group form of its own, so that the generic rule decides
FIXED = ledger_of((FixedSizeSampled(1000, 10, Gaussian(4.0)), 20), relation=Relation.REPLACE_ONE)


@measures(
    "privacy.events.sampled.PoissonSampled.for_group",
    "C1",
    "ledger of the group, written by hand",
    1e-9,
)
def sampled_groups(bench):
    """Of so large a share of the data that the generic rule gives more."""
    accountant = RenyiAccountant()
    got = group_privacy.group_epsilon(accountant, _sampled(30, 0.9), 1e-5, 3).upper
    by_hand = _sampled(30, 1 - 0.1**3, Gaussian(4 / 3))
    return relative(got, accountant.epsilon(by_hand, 1e-5).upper)


@measures(f"{GROUPS}_epsilon", "C2", "the share d at which the rule is met, by Brent", 1e-5)
def the_generic_rule(bench):
    """By itself, and beside a law that is off by a total variation distance."""
    accountant = RenyiAccountant(Relation.REPLACE_ONE)
    for tau in (0.0, 2.0**-20):

        def excess_log(log_d):
            e = math.exp(accountant.epsilon(FIXED, math.exp(log_d)).upper)
            return log_d + math.log((1 + e + e * e) / (1e-5 - (1 + e**3) * tau))

        share = math.exp(brentq(excess_log, math.log(1e-8), math.log(1e-5)))
        beside = [(TotalVariation(tau, 1), 1)] if tau else []
        ledger = ledger_of(*FIXED.items(), *beside, relation=Relation.REPLACE_ONE)
        got = group_privacy.group_epsilon(accountant, ledger, 1e-5, 3).upper
        yield relative(got, 3 * accountant.epsilon(FIXED, share).upper)


@measures(
    f"{GROUPS}_delta", "C3", "three members who change one Gaussian release, as an integral", 1e-8
)
def delta_of_a_group(bench):
    ledger = ledger_of((Gaussian(6.0), 1))
    got = group_privacy.group_delta(GaussianAccountant(), ledger, 1.0, 3).upper
    return relative(got, exact_delta(1.0, 0.5))


@measures(f"{GROUPS}_delta", "C4", "neighbour by neighbour along the chain", 1e-12)
def delta_of_a_group_by_the_generic_rule(bench):
    """P(x) <= e^a P(x') + d from one member to the next: d, then e^a d + d, then e^2a d + e^a d +
    d.
    """
    accountant, step = RenyiAccountant(Relation.REPLACE_ONE), math.exp(0.9 / 3)
    claimed = group_privacy.group_delta(accountant, FIXED, 0.9, 3).upper
    return relative(claimed, (1 + step + step * step) * accountant.delta(FIXED, 0.9 / 3).upper)


@measures("privacy.search_cost.theorem_d1", "C1 C2 C3", "the paper's setting, by hand", 1e-12)
def theorem_d1_by_hand(bench):
    cost = search_cost.theorem_d1(1.5, 0.4, 0.05, 1 / 300)
    inverse = 300 / (0.4 * 0.05)
    return worst(
        [cost.calls / inverse**2, cost.accuracy_loss, cost.epsilon, cost.epsilon_validation],
        [math.log(inverse), 10 * math.log(inverse), 4.7, 3.2],
    )


@measures("privacy.search_cost.liu_talwar", "C1", "by hand", 1e-12)
def liu_talwar_by_hand(bench):
    return relative(search_cost.liu_talwar(0.7), 2.1)


@measures("privacy.search_cost.poisson_stopped_epsilon", "M1", "loop over orders", 1e-9)
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
