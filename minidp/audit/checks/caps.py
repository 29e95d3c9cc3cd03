"""Checks of what every accountant does alike: caps, rare releases, releases that give themselves
away.
"""

import math
from fractions import Fraction
from itertools import product

import mpmath

from ...privacy.accountant import COVERED
from ...privacy.bound import Bound, Exposed
from ...privacy.catalogue import ACCOUNTANTS, make
from ...privacy.events import ApproximateDP, Gaussian, Laplace, PoissonSampled, PureDP
from ...privacy.events import NeighbouringRelation as Relation
from ...privacy.gaussian import GaussianAccountant
from . import excess, holds, measures, relative
from .truths import exact_delta, exact_epsilon, ledger_of

BOUNDS = [make(name) for name in ACCOUNTANTS if make(name).kind == "bound"]


@measures(
    "privacy.accountant.Accountant",
    "C1",
    "sums of pure epsilons by hand, at deltas next to none",
    1e-12,
)
def pure_releases_cost_their_sum(bench):
    cases = (
        (((Laplace(100.0), 1),), 0.01),
        (((PureDP(1.0), 30), (Laplace(2.0), 3)), 31.5),
        (((PoissonSampled(0.1, Laplace(1.0)), 2),), 2 * math.log1p(0.1 * math.expm1(1))),
    )
    for accountant, (parts, total) in product(BOUNDS, cases):
        yield excess(accountant.epsilon(ledger_of(*parts), 1e-300).upper, total)
        yield accountant.delta(ledger_of(*parts), total * (1 + 1e-12)).upper


@measures("privacy.accountant.Accountant", "C2", "1 - prod (1 - q)^n in mpmath", 1e-9)
def an_example_in_no_lot_costs_nothing(bench):
    ledger = ledger_of(
        (PoissonSampled(1e-3, Gaussian(1e-3)), 7), (PoissonSampled(1e-9, Laplace(1e-3)), 10**6)
    )
    with mpmath.workdps(30):
        share = 1 - (1 - mpmath.mpf("1e-3")) ** 7 * (1 - mpmath.mpf("1e-9")) ** 10**6
    for accountant in BOUNDS:
        yield excess(accountant.delta(ledger, 1.0).upper, share)
        above, below = (
            accountant.epsilon(ledger, float(share) * (1 + gap)).upper for gap in (1e-9, -1e-9)
        )
        yield holds(above == 0 < below)


@measures(
    "privacy.accountant.Accountant",
    "C3",
    "the ledger without them at delta less their share",
    1e-12,
)
def rare_releases_are_paid_by_delta(bench):
    """At a share just below the limit, and just above it, where they cost as much as their noise of
    1e-3 does.
    """

    def epsilon(accountant, share):
        rare = PoissonSampled(share / 3, Gaussian(1e-3)), 3 if share else 0
        return accountant.epsilon(ledger_of((Gaussian(4.0), 3), rare), 1e-5).upper

    for accountant in BOUNDS:
        without, below, above = (
            epsilon(accountant, COVERED * 1e-5 * factor) for factor in (0, 0.999, 1.001)
        )
        yield holds(without < below < without * (1 + COVERED) < above)


@measures("privacy.bound.Exposed", "C1", "the exact curve of a Gaussian, mixed by hand", 1e-7)
def beside_what_gives_itself_away(bench):
    accountant, alone = GaussianAccountant(Relation.ADD_REMOVE), (Gaussian(4.0), 4)
    for exposure, part in (
        (1e-3, (PoissonSampled(1e-3, Gaussian(0.0)), 1)),
        (-math.expm1(3 * math.log1p(-1e-4)), (ApproximateDP(0.0, 1e-4), 3)),
    ):
        ledger = ledger_of(alone, part)
        exposed = Exposed(exposure).delta(accountant.delta(ledger_of(alone), 0.3)).upper
        yield excess(exposed, exposure + (1 - exposure) * exact_delta(0.3, 0.5))
        yield relative(accountant.delta(ledger, 0.3).upper, exposed)
        got = accountant.epsilon(ledger, 0.01)
        yield excess(got.upper, exact_epsilon((0.01 - exposure) / (1 - exposure), 0.5))
        yield relative(got.lower, exact_epsilon(0.01, 0.5))
        yield holds(accountant.epsilon(ledger, exposure).upper == math.inf)


@measures("privacy.bound.Exposed", "C1", "fractions: safe in the last bit", 0.0)
def mixing_rounds_to_the_safe_side(bench):
    for low, high in bench.rng.uniform(size=(100, 2)).tolist():
        exposure, delta = sorted((low, high))
        share, mixture = Fraction(exposure), Exposed(exposure)
        upper = mixture.delta(Bound(0.0, delta, delta)).upper
        yield holds(upper >= share + (1 - share) * Fraction(delta))
        yield holds(mixture.left(delta) <= (Fraction(delta) - share) / (1 - share))
