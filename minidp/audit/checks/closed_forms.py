"""Checks of Gaussian differential privacy, trade-off curves, composition of pairs, groups and
selection.
"""

import math
from functools import partial

import mpmath
import numpy as np

from ...certified import composition
from ...certified.gaussian import GaussianAccountant, gaussian_delta
from ...privacy import group_privacy
from ...privacy.events import (
    Gaussian,
    JointGaussian,
    Laplace,
    PoissonSampled,
    PureDP,
)
from ...privacy.moments import MomentsAccountant
from ...privacy.renyi import RenyiAccountant
from ...run import search_cost, tradeoff
from ..equation import Case
from . import excess, holds, in_words, measures, relative, states
from .exact_values import exact_epsilon, ledger_of

GAUSSIAN, COMPOSITION = "privacy.gaussian.GaussianAccountant", "privacy.composition"
GROUPS = "privacy.group_privacy.group"


@measures(GAUSSIAN, "M1", "epsilon of one Gaussian with mu^2 = sum 1/sigma^2, by mpmath", 1e-8)
def unsampled_gaussians_compose_exactly(bench):
    got = GaussianAccountant().epsilon(ledger_of((Gaussian(4.0), 10), (Gaussian(7.0), 1)), 1e-5)
    truth = exact_epsilon(1e-5, math.sqrt(10 / 16 + 1 / 49))
    yield holds(got.lower <= truth <= got.upper < got.lower + 1e-8)
    yield relative(got.estimate, truth)


@states("privacy.gaussian.gaussian_delta", "C1", 1e-9)
def delta_of_gaussians(bench):
    """The same with 30 digits."""
    grid = [(mu * mu / 2 + ratio * mu, mu) for mu in (1e-4, 0.5, 5.0, 30.0) for ratio in (0.0, 8.0)]
    for epsilon, mu in (*grid, (0.0, 0.3), (0.1, 6.0), (2.0, 11.0), (-0.4, 0.6)):
        with mpmath.workdps(30):
            given = {"epsilon": mpmath.mpf(epsilon), "mu": mpmath.mpf(mu)}
            yield Case({**given, "delta": gaussian_delta(epsilon, mu)})


@states(GAUSSIAN, "M1", case=Gaussian(0.3))
@states(GAUSSIAN, "M2", case=PoissonSampled(0.01, Gaussian(4.0)))
def central_limit(bench, case):
    cost = GaussianAccountant().cost_curve(case, False)[0]
    with mpmath.workdps(30):
        sigma = mpmath.mpf(case.noise.noise_multiplier)
        yield Case({"mu": mpmath.sqrt(cost), "sigma": sigma, "q": 0.01})


@states("privacy.tradeoff.epsilon_delta_curve", "C1")
def curve_of_epsilon_and_delta(bench):
    def f(alpha):
        return tradeoff.epsilon_delta_curve([alpha], 1.0, 0.05)[0]

    yield Case({"f": f, "epsilon": 1.0, "delta": 0.05}, ranges={"a": np.linspace(0, 1, 41)})


@states("privacy.tradeoff.gaussian_curve", "C1")
def curve_of_a_gaussian(bench):
    def curve(alpha):
        return tradeoff.gaussian_curve([alpha], 0.7)[0]

    yield Case({"G_mu": curve, "mu": 0.7}, ranges={"a": np.linspace(0.01, 0.99, 9)})


MIXED = (
    (PoissonSampled(0.01, Gaussian(4.0)), 70),
    (PoissonSampled(0.2, Gaussian(4.0)), 3),
    (Laplace(20.0), 4),
)


def _composed(kind, parts):
    """A Case of an accountant's figures for a ledger and for each of its releases, at delta
    1e-5.
    """
    pairs = {event: (0.0, event.pure_epsilon) for event, _ in parts}

    class Recording(kind):
        def pair(self, event, delta):
            pairs[event] = delta, super().pair(event, delta)
            return pairs[event][1]

    given = {"epsilon": Recording().epsilon(ledger_of(*parts), 1e-5).upper, "delta": 1e-5}
    columns = zip(*((*pairs[event], event.share, count) for event, count in parts))
    given |= {name: np.array(column) for name, column in zip("deqn", columns)}
    return Case({**given, "share": kind.release_share, "kinds": len(parts)})


@states(f"{COMPOSITION}.PairAccountant", "M1", 1e-9, error=excess)
def pairs_of_releases(bench):
    for kind in (composition.BasicAccountant, composition.AdvancedAccountant):
        given = _composed(kind, MIXED[:2]).given
        yield Case({**given, "E": partial(exact_epsilon, mu=1 / 4)})


@states(f"{COMPOSITION}.BasicAccountant", "C1", 2e-12)
def basic_composition(bench):
    yield _composed(composition.BasicAccountant, MIXED)


@states(f"{COMPOSITION}.AdvancedAccountant", "C1", 2e-12)
def advanced_composition(bench):
    for parts in (MIXED, MIXED[1:], MIXED[:1]):
        yield _composed(composition.AdvancedAccountant, parts)


@states(f"{COMPOSITION}.PaperStrongComposition", "M1 C1")
def figure_2(bench):
    event = PoissonSampled(0.01, Gaussian(4.0))
    given = _composed(composition.PaperStrongComposition, [(event, 10_000)]).given
    yield Case({**given, "e": given["e"][0], "q": 0.01, "sigma": 4.0, "T": 10_000})


in_words(f"{COMPOSITION}.PerTensorAccountant2016", "M1", "says which releases are charged")


@measures(
    f"{COMPOSITION}.PerTensorAccountant2016",
    "M1",
    "each tensor as a release of its own",
    1e-12,
)
def the_2016_ledger_charges_per_tensor(bench):
    events = JointGaussian((4.0, 6.0)), Gaussian(4.0), Gaussian(6.0)
    joint, *each = ((PoissonSampled(0.01, event), 500) for event in events)
    joint, apart = ledger_of(joint), ledger_of(*each)
    got = composition.PerTensorAccountant2016().epsilon(joint, 1e-5).upper
    honest = MomentsAccountant(orders=tuple(range(1, 33)))
    return relative(got, honest.epsilon(apart, 1e-5).upper)


# a pure release has no rule of its own for groups, so the general rule decides
MIXTURE = ledger_of((PoissonSampled(0.01, Gaussian(4.0)), 20), (PureDP(0.01), 1))


@states("privacy.events.sampled.PoissonSampled.for_group", "C1")
def sampled_groups(bench):
    for k, q in ((3, 0.9), (5, 1e-4)):
        first = PoissonSampled(q, Gaussian(6.0)).for_group(k)
        second = PoissonSampled(q, Laplace(0.7)).for_group(k)
        given = {"k": k, "q": q, "s": 6.0, "b": 0.7, "q'": first.share}
        noise = {"s'": first.event.noise_multiplier, "b'": second.event.noise_multiplier}
        yield Case({**given, **noise})


@states(f"{GROUPS}_epsilon", "C1", 2e-4)
def the_generic_rule(bench):
    accountant = RenyiAccountant()
    epsilon = group_privacy.group_epsilon(accountant, MIXTURE, 1e-5, 3).upper / 3
    d = accountant.delta(MIXTURE, epsilon).upper
    yield Case({"epsilon": epsilon, "d": d, "delta": 1e-5, "k": 3})


in_words(f"{GROUPS}_delta", "C2", "names the ledger whose delta it is")


@measures(f"{GROUPS}_delta", "C2", "three members who change one Gaussian release", 1e-8)
def delta_of_a_group(bench):
    ledger = ledger_of((Gaussian(6.0), 1))
    got = group_privacy.group_delta(GaussianAccountant(), ledger, 1.0, 3).upper
    return relative(got, gaussian_delta(1.0, 0.5))


@states(f"{GROUPS}_delta", "C3")
def delta_of_a_group_by_the_generic_rule(bench):
    accountant, epsilon = RenyiAccountant(), 0.9
    delta = group_privacy.group_delta(accountant, MIXTURE, epsilon, 3).upper
    d = accountant.delta(MIXTURE, epsilon / 3).upper
    yield Case({"epsilon": epsilon, "d": d, "delta": delta, "k": 3})


@states("privacy.search_cost.theorem_d1", "C1 C2 C3")
def theorem_d1(bench):
    for epsilon, prime in ((1.5, 0.4), (5.0, 0.3)):
        cost = search_cost.theorem_d1(epsilon, prime, 0.05, 1 / 300)
        given = {"epsilon": epsilon, "epsilon'": prime, "delta": 0.05, "p": 1 / 300}
        found = {"calls": cost.calls, "loss": cost.accuracy_loss}
        ends = {"epsilon_shared": cost.epsilon, "epsilon_apart": cost.epsilon_validation}
        yield Case({**given, **found, **ends})
