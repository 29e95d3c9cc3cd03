"""Checks of what every accountant does alike: caps, rare releases, releases that give themselves
away.
"""

import math

import mpmath

from ...privacy.accountant import COVERED
from ...privacy.bound import Exposed
from ...privacy.catalogue import ACCOUNTANTS, make
from ...privacy.events import ApproximateDP, Gaussian, Laplace, PoissonSampled, PureDP
from ...privacy.events import NeighbouringRelation as Relation
from ...privacy.gaussian import GaussianAccountant
from . import excess, measures, relative
from .curves import exact_delta, exact_epsilon, ledger_of

BOUNDS = [make(name) for name in ACCOUNTANTS if make(name).kind == "bound"]


@measures(
    "privacy.accountant.Accountant",
    "C1",
    method="sums of pure epsilons by hand, at deltas next to none",
    tolerance=1e-12,
)
def pure_releases_cost_their_sum(bench):
    for accountant in BOUNDS:
        for parts, total in (
            (((Laplace(100.0), 1),), 0.01),
            (((PureDP(1.0), 30), (Laplace(2.0), 3)), 31.5),
            (((PoissonSampled(0.1, Laplace(1.0)), 2),), 2 * math.log1p(0.1 * math.expm1(1))),
        ):
            yield excess(accountant.epsilon(ledger_of(*parts), 1e-300).upper, total)
            yield accountant.delta(ledger_of(*parts), total * (1 + 1e-12)).upper


@measures(
    "privacy.accountant.Accountant", "C2", method="1 - prod (1 - q)^n in mpmath", tolerance=1e-9
)
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
        yield 0.0 if above == 0 < below else math.inf


@measures(
    "privacy.accountant.Accountant",
    "C3",
    method="the ledger without them at delta less their share",
    tolerance=1e-12,
)
def rare_releases_are_paid_by_delta(bench):
    """At a share just below the limit, and just above it, where they cost as much as their noise of
    1e-3 does.
    """
    for accountant in BOUNDS:
        share = COVERED * 1e-5
        rare, apart = (
            (PoissonSampled(share * factor / 3, Gaussian(1e-3)), 3) for factor in (0.999, 1.001)
        )
        got, without = (
            accountant.epsilon(ledger_of((Gaussian(4.0), 3), part), 1e-5).upper
            for part in (rare, (Gaussian(4.0), 0))
        )
        yield 0.0 if without < got < without * (1 + COVERED) else math.inf
        more = accountant.epsilon(ledger_of((Gaussian(4.0), 3), apart), 1e-5).upper
        yield 0.0 if more > without * (1 + COVERED) else math.inf


@measures(
    "privacy.bound.Exposed",
    "C1",
    method="the exact curve of a Gaussian, mixed by hand",
    tolerance=1e-7,
)
def beside_what_gives_itself_away(bench):
    accountant = GaussianAccountant(Relation.ADD_REMOVE)
    for exposure, parts in (
        (1e-3, ((PoissonSampled(1e-3, Gaussian(0.0)), 1),)),
        (-math.expm1(3 * math.log1p(-1e-4)), ((ApproximateDP(0.0, 1e-4), 3),)),
    ):
        ledger = ledger_of((Gaussian(4.0), 4), *parts)
        known = Exposed(exposure).delta(accountant.delta(ledger_of((Gaussian(4.0), 4)), 0.3))
        yield excess(known.upper, exposure + (1 - exposure) * exact_delta(0.3, 0.5))
        yield relative(accountant.delta(ledger, 0.3).upper, known.upper)
        got = accountant.epsilon(ledger, 0.01)
        yield excess(got.upper, exact_epsilon((0.01 - exposure) / (1 - exposure), 0.5))
        yield relative(got.lower, exact_epsilon(0.01, 0.5))
        yield 0.0 if accountant.epsilon(ledger, exposure).upper == math.inf else math.inf
