"""Checks of the masses of fixed-size lots and of sampled groups, and of what an epsilon means."""
import math

import mpmath
import numpy as np
from scipy.optimize import brentq

from ...privacy.events import FixedSizeSampled, Gaussian, PoissonGroup, PoissonSampled
from ...privacy.gaussian import gaussian_delta
from ...privacy.group_privacy import group_epsilon
from ...privacy.meaning import meaning_of
from ...privacy.pld.accountant import LossDistributionAccountant
from ...privacy.pld.cells import ADD, REMOVE, masses_of
from . import excess, measures, relative
from .curves import ledger_of

STEP = 2e-4


def _deltas(event, direction, epsilons):
    """delta at each epsilon of the event's dominating masses, and what their sum lacks of 1."""
    masses = masses_of(event, direction, True, STEP, (1e-3, math.inf), 9.0)
    mass, losses = np.exp(masses.log_mass), masses.losses(STEP)
    tail = math.exp(masses.infinite)
    found = [float(np.sum(mass * np.maximum(-np.expm1(epsilon - losses), 0))) + tail for epsilon in epsilons]
    return found, abs(math.fsum([*mass, tail, -1.0]))


@measures("privacy.pld.variants.fixed_size_masses", "C1", "C2", method="the profile's formula, both signs of epsilon; a bound",
          tolerance=1e-8)
def profile_of_fixed_size_lots(bench):
    for share, sigma in ((0.01, 2.0), (0.3, 0.8), (0.05, 5.0)):
        epsilons = [-0.5, -0.1, -0.01, 0.0, 0.005, 0.02, 0.1]
        for direction in (REMOVE, ADD):
            found, missing = _deltas(FixedSizeSampled(1000, round(1000 * share), Gaussian(sigma)), direction, epsilons)
            yield 1e6 * missing
            for epsilon, delta in zip(epsilons, found):
                size = abs(epsilon)
                exact = share * gaussian_delta(math.log1p(math.expm1(size) / share), 1 / sigma)
                if exact > 1e-5:
                    yield excess(delta, exact if epsilon >= 0 else -math.expm1(-size) + math.exp(-size) * exact)


@measures("privacy.pld.variants.group_masses", "C1", method="the mixture's integral in mpmath, both directions; a bound",
          tolerance=1e-3)
def masses_of_a_group(bench):
    for size, q, sigma in ((2, 0.01, 2.0), (5, 0.2, 3.0), (3, 0.5, 1.0)):
        weights = [mpmath.binomial(size, j) * mpmath.mpf(q) ** j * (1 - mpmath.mpf(q)) ** (size - j) for j in range(size + 1)]
        normal = lambda x: mpmath.npdf(x, 0, sigma)
        mixture = lambda x: mpmath.fsum(w * mpmath.npdf(x, j, sigma) for j, w in enumerate(weights))
        low, high = -12 * sigma, size + 12 * sigma
        for direction, p, other, sign in ((REMOVE, mixture, normal, 1), (ADD, normal, mixture, -1)):
            epsilons = (-0.01, 0.0, 0.01)
            found, missing = _deltas(PoissonGroup(size, q, Gaussian(sigma)), direction, epsilons)
            yield 1e6 * missing
            for epsilon, delta in zip(epsilons, found):
                root = brentq(lambda x: float(mpmath.log(mixture(x) / normal(x))) - sign * epsilon, low, high, xtol=1e-13)
                gained = lambda x: p(x) - mpmath.exp(epsilon) * other(x)
                yield excess(delta, mpmath.quad(gained, mpmath.linspace(*((root, high) if sign > 0 else (low, root)), 9)))


@measures("privacy.group_privacy.group_epsilon", "C5", method="the mixture's own ledger; a group of 1 is an example", tolerance=1e-3)
def groups_present_or_absent_as_a_whole(bench):
    accountant, step = LossDistributionAccountant(), PoissonSampled(0.01, Gaussian(4.0))
    got = group_epsilon(accountant, ledger_of((step, 1000), (Gaussian(9.0), 1)), 1e-5, 2).upper
    by_hand = ledger_of((PoissonGroup(2, 0.01, Gaussian(4.0)), 1000), (Gaussian(4.5), 1))
    yield relative(got, accountant.epsilon(by_hand, 1e-5).upper)
    one = accountant.epsilon(ledger_of((PoissonGroup(1, 0.01, Gaussian(4.0)), 1000)), 1e-5).upper
    yield relative(one, accountant.epsilon(ledger_of((step, 1000)), 1e-5).upper)


@measures("privacy.meaning.meaning_of", "C1", method="the power of the test of one Gaussian; a bound", tolerance=1e-3)
def power_at_false_positive_rates(bench):
    for sigma in (0.4, 1.0, 20.0):
        for rate, power in meaning_of(ledger_of((Gaussian(sigma), 1)), 1e-5)["true_positive_rates"].items():
            yield excess(power, mpmath.ncdf(1 / mpmath.mpf(sigma) - math.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(rate))))


@measures("privacy.meaning.meaning_of", "C2", method="the mu of one Gaussian, and of a lottery that tells all", tolerance=0.02)
def mu_of_a_gaussian(bench):
    """A release without noise of a share of 1e-3 of the data leaves f(1e-6) = 1 - 1e-3 - 1e-6: mu decided there."""
    for sigma in (0.4, 1.0, 20.0):
        yield excess(meaning_of(ledger_of((Gaussian(sigma), 1)), 1e-5)["mu"], 1 / sigma)
    exposed = meaning_of(ledger_of((PoissonSampled(1e-3, Gaussian(0.0)), 1)), 0.1)["mu"]
    normal = lambda p: math.sqrt(2) * mpmath.erfinv(2 * p - 1)
    yield 100 * relative(exposed, normal(1 - 1e-6) - normal(1 - 1e-3 - 1e-6))
