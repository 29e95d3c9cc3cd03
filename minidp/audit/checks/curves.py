"""Checks of Gaussian differential privacy, trade-off curves, composition of pairs, groups and
selection.
"""

import math

import mpmath
import numpy as np

from ...privacy import composition, group_privacy, search_cost, tradeoff
from ...privacy.bound import Bound, Within
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
from ..equation import Case
from . import excess, holds, in_words, measures, relative, states
from .truths import exact_delta, exact_epsilon, ledger_of, log_integral

GAUSSIAN, COMPOSITION = "privacy.gaussian.GaussianAccountant", "privacy.composition"
GROUPS, WITHIN = "privacy.group_privacy.group", "privacy.bound.Within"


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


@states("privacy.gaussian.gaussian_delta", "C1")
def delta_of_gaussians(bench):
    for epsilon, mu in ((0.0, 0.3), (0.7, 1.1), (-0.4, 0.6), (6.0, 2.0)):
        delta = gaussian_delta(epsilon, mu)
        yield Case({"epsilon": epsilon, "mu": mu, "delta": delta, "e": math.e})


@states(WITHIN, "C1")
def delta_within_a_distance(bench):
    for epsilon, tau, known in ((0.5, 2.0**-10, 0.3), (2.0, 0.01, 1e-3)):
        got = Within(tau).delta(Bound(known, known, known), epsilon).upper
        given = {"epsilon": epsilon, "T": tau, "e": math.e}
        yield Case({**given, "delta": lambda epsilon: known, "delta'": got})


def _within(tau, end):
    """A Case of Gaussians within this distance of the exact ones, of whose bounds one end is
    read.
    """
    accountant, alone = GaussianAccountant(), (Gaussian(4.0), 4)
    exact, beside = ledger_of(alone), ledger_of(alone, (TotalVariation(tau, 1), 1))
    given = {
        "epsilon": lambda delta: getattr(accountant.epsilon(exact, delta), end),
        "delta": lambda epsilon: getattr(accountant.delta(exact, epsilon), end),
        "epsilon'": accountant.epsilon(beside, 0.01).upper,
        "epsilon_lower": lambda delta: accountant.epsilon(beside, delta).lower,
        "delta_lower": lambda epsilon: accountant.delta(beside, epsilon).lower,
        "T": tau,
        "e": math.e,
    }
    return Case(given, ranges={"t": [0.01], "E": [1.0]})


@states(WITHIN, "C2")
def epsilon_within_a_distance(bench):
    yield from (_within(tau, "upper") for tau in (2.0**-30, 2.0**-12))


@states(WITHIN, "C3", 1e-9)
def lower_ends_within_a_distance(bench):
    yield from (_within(tau, "lower") for tau in (2.0**-30, 2.0**-12))


@states(GAUSSIAN, "M1")
def mu_of_gaussians(bench):
    for sigma in (0.3, 7.0):
        yield _central_limit(Gaussian(sigma), sigma)


@states(GAUSSIAN, "M2")
def mu_of_poisson_sampling(bench):
    for q, sigma in ((0.01, 4.0), (0.1, 1.0)):
        yield _central_limit(PoissonSampled(q, Gaussian(sigma)), sigma, q=q)


@states(GAUSSIAN, "M3")
def mu_of_uniform_sampling(bench):
    with mpmath.workdps(30):
        for sigma in (0.8, 4.0, 50.0):
            event = FixedSizeSampled(1000, 10, Gaussian(sigma))
            yield _central_limit(event, sigma, lot=mpmath.mpf(10), size=1000)


def _central_limit(event, sigma, **given):
    cost = GaussianAccountant().cost_curve(event, False)[0]
    return Case({"mu": mpmath.sqrt(cost), "sigma": mpmath.mpf(sigma), **given})


@measures(GAUSSIAN, "M2", "variance of the likelihood ratio by quadrature", 1e-9)
def central_limit_mu_of_poisson_sampling(bench):
    """mu^2 = q^2 E[(r - 1)^2], r the unsampled likelihood ratio, by mpmath."""
    for q, s in ((0.01, 4.0), (0.1, 1.0)):
        got = GaussianAccountant().cost_curve(PoissonSampled(q, Gaussian(s)), False)[0]
        yield relative(got, q * q * mpmath.expm1(log_integral(1, s, 2)))


@states("privacy.tradeoff.epsilon_delta_curve", "C1")
def epsilon_delta_lines(bench):
    def curve(alpha):
        return tradeoff.epsilon_delta_curve([alpha], 1.0, 0.05)[0]

    given = {"f": curve, "epsilon": 1.0, "delta": 0.05, "e": math.e}
    yield Case(given, ranges={"a": np.linspace(0, 1, 41)})


@states("privacy.tradeoff.gaussian_curve", "C1")
def gaussian_curve(bench):
    def curve(alpha):
        return tradeoff.gaussian_curve([alpha], 0.7)[0]

    yield Case({"G_mu": curve, "mu": 0.7}, ranges={"a": np.linspace(0.01, 0.99, 9)})


@states("privacy.tradeoff.true_positive_rate", "C1", 0.0)
def power_at_the_next_point(bench):
    alphas = np.linspace(0, 1, 11)
    betas = tradeoff.gaussian_curve(alphas, 2.0)
    for rate in (0.0, 1e-5, 0.1, 0.37, 0.999, 1.0):
        power = tradeoff.true_positive_rate(alphas, betas, rate)
        f = dict(zip(alphas, betas)).__getitem__
        yield Case({"alphas": alphas, "f": f, "rate": rate, "power": power})


@measures("privacy.tradeoff.true_positive_rate", "C1", "shortfall of the exact power", 1e-12)
def power_is_never_too_low(bench):
    """At points and between them."""
    alphas = np.linspace(0, 1, 11)
    betas = tradeoff.gaussian_curve(alphas, 2.0)
    for rate in (0.0, 1e-5, 0.05, 0.1, 0.37, 0.999, 1.0):
        found = tradeoff.true_positive_rate(alphas, betas, rate)
        yield 1 - tradeoff.gaussian_curve([rate], 2.0)[0] - found


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


def _sampled(steps, q=0.01, event=Gaussian(4.0)):
    return ledger_of((PoissonSampled(q, event), steps))


def _composed(kind, parts):
    """(epsilon of a ledger at delta 1e-5, {event: (d, e) of each release}) by an accountant."""
    pairs = {event: (0.0, event.pure_epsilon) for event, _ in parts}

    class Recording(kind):
        def pair(self, event, delta):
            pairs[event] = delta, super().pair(event, delta)
            return pairs[event][1]

    return Recording().epsilon(ledger_of(*parts), 1e-5).upper, pairs


MIXED = (
    (PoissonSampled(0.01, Gaussian(4.0)), 70),
    (PoissonSampled(0.2, Gaussian(4.0)), 3),
    (Laplace(20.0), 4),
)


@states(f"{COMPOSITION}.PairAccountant", "M1", 1e-9, error=excess)
def pairs_of_releases(bench):
    for kind, share in ((composition.BasicAccountant, 1.0), (composition.AdvancedAccountant, 0.5)):
        pairs = _composed(kind, MIXED)[1]
        sampled = MIXED[:2]
        d, e = (np.array(each) for each in zip(*(pairs[event] for event, _ in sampled)))
        q, n = (np.array(each) for each in zip(*((event.share, n) for event, n in sampled)))
        given = {"d": d, "e": e, "q": q, "n": n, "delta": 1e-5, "share": share, "kinds": 2}
        yield Case({**given, "E": lambda delta: exact_epsilon(delta, 1 / 4)})


def _sums(kind, parts):
    epsilon, pairs = _composed(kind, parts)
    each = [pairs[event] for event, count in parts for _ in range(count)]
    d, e = (np.array(column) for column in zip(*each))
    return Case({"epsilon": epsilon, "delta": 1e-5, "d": d, "e": e})


@states(f"{COMPOSITION}.BasicAccountant", "C1", 2e-12)
def basic_composition(bench):
    yield _sums(composition.BasicAccountant, MIXED)


@states(f"{COMPOSITION}.AdvancedAccountant", "C1", 2e-12)
def advanced_composition(bench):
    for parts in (MIXED, MIXED[1:], MIXED[:1]):
        yield _sums(composition.AdvancedAccountant, parts)


@states(f"{COMPOSITION}.PaperStrongComposition", "M1 C1")
def figure_2(bench):
    q, sigma, steps = 0.01, 4.0, 10_000
    event = PoissonSampled(q, Gaussian(sigma))
    epsilon, pairs = _composed(composition.PaperStrongComposition, [(event, steps)])
    given = {"epsilon": epsilon, "e": pairs[event][1], "delta": 1e-5}
    yield Case({**given, "q": q, "sigma": sigma, "T": steps})


in_words(f"{COMPOSITION}.PerTensorAccountant2016", "M1", "says which releases are charged")


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


@states("privacy.events.sampled.PoissonSampled.for_group", "C1")
def sampled_groups(bench):
    for k, q in ((3, 0.9), (5, 1e-4)):
        first = PoissonSampled(q, Gaussian(6.0)).for_group(k)
        second = PoissonSampled(q, Laplace(0.7)).for_group(k)
        given = {"k": k, "q": q, "s": 6.0, "b": 0.7, "q'": first.share}
        noise = {"s'": first.event.noise_multiplier, "b'": second.event.noise_multiplier}
        yield Case({**given, **noise})


@states(f"{GROUPS}_epsilon", "C2", 2e-4)
def the_generic_rule(bench):
    """By itself, and beside a law that is off by a total variation distance."""
    accountant = RenyiAccountant(Relation.REPLACE_ONE)
    for tau in (0.0, 2.0**-20):
        beside = [(TotalVariation(tau, 1), 1)] if tau else []
        ledger = ledger_of(*FIXED.items(), *beside, relation=Relation.REPLACE_ONE)
        epsilon = group_privacy.group_epsilon(accountant, ledger, 1e-5, 3).upper / 3
        d = accountant.delta(FIXED, epsilon).upper
        given = {"epsilon": epsilon, "d": d, "delta": 1e-5, "k": 3, "T": tau}
        yield Case({**given, "e": math.e})


in_words(f"{GROUPS}_delta", "C3", "names the ledger whose delta it is")


@measures(
    f"{GROUPS}_delta", "C3", "three members who change one Gaussian release, as an integral", 1e-8
)
def delta_of_a_group(bench):
    ledger = ledger_of((Gaussian(6.0), 1))
    got = group_privacy.group_delta(GaussianAccountant(), ledger, 1.0, 3).upper
    return relative(got, exact_delta(1.0, 0.5))


@states(f"{GROUPS}_delta", "C4")
def delta_of_a_group_by_the_generic_rule(bench):
    accountant, epsilon = RenyiAccountant(Relation.REPLACE_ONE), 0.9
    delta = group_privacy.group_delta(accountant, FIXED, epsilon, 3).upper
    d = accountant.delta(FIXED, epsilon / 3).upper
    yield Case({"epsilon": epsilon, "d": d, "delta": delta, "k": 3, "e": math.e})


@states("privacy.search_cost.theorem_d1", "C1 C2 C3")
def theorem_d1(bench):
    for epsilon, prime in ((1.5, 0.4), (5.0, 0.3)):
        cost = search_cost.theorem_d1(epsilon, prime, 0.05, 1 / 300)
        given = {"epsilon": epsilon, "epsilon'": prime, "delta": 0.05, "p": 1 / 300}
        found = {"calls": cost.calls, "loss": cost.accuracy_loss}
        ends = {"epsilon_shared": cost.epsilon, "epsilon_apart": cost.epsilon_validation}
        yield Case({**given, **found, **ends})


@states("privacy.search_cost.liu_talwar", "C1")
def liu_talwar(bench):
    yield Case({"epsilon": 0.7, "epsilon'": search_cost.liu_talwar(0.7)})


@states("privacy.search_cost.poisson_stopped_epsilon", "M1")
def poisson_stopping(bench):
    orders = (4.0, 10.0, 30.0)
    accountant, ledger = RenyiAccountant(orders=orders), ledger_of((Gaussian(20.0), 4))
    costs = accountant.total_curve(ledger)
    given = {"D": {(a,): cost / (a - 1) for a, cost in zip(orders, costs)}, "delta": 1e-5}
    for mean in (5.0, 0.5):
        epsilon = search_cost.poisson_stopped_epsilon(accountant, ledger, 1e-5, mean)
        given |= {"epsilon": epsilon, "m": mean}
        yield Case(
            {**given, "d": lambda x: accountant.delta(ledger, x).upper}, ranges={"a": orders}
        )
