"""Checks of what every accountant does alike: caps, rare releases, releases that give themselves
away.
"""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np

from ...privacy.accountant import COVERED, _exposure
from ...privacy.bound import Bound, Exposed
from ...privacy.catalogue import ACCOUNTANTS, make
from ...privacy.events import ApproximateDP, Gaussian, Laplace, PoissonSampled, PureDP
from ...privacy.events import NeighbouringRelation as Relation
from ...privacy.gaussian import GaussianAccountant
from ..equation import Case
from . import excess, holds, measures, relative, states
from .truths import exact_delta, exact_epsilon, ledger_of

ACCOUNTANT = "privacy.accountant.Accountant"
BOUNDS = [make(name) for name in ACCOUNTANTS if make(name).kind == "bound"]


@states(ACCOUNTANT, "C1")
def pure_releases_cost_their_sum(bench):
    """epsilon at a delta next to none."""
    cases = (
        ((Laplace(100.0), 0.01, 1),),
        ((PureDP(1.0), 1.0, 30), (Laplace(2.0), 0.5, 3)),
        ((PoissonSampled(0.1, Laplace(1.0)), math.log1p(0.1 * math.expm1(1)), 2),),
    )
    for accountant, parts in product(BOUNDS, cases):
        events, e, n = zip(*parts)
        ledger = ledger_of(*zip(events, n))
        found = {
            "epsilon": accountant.epsilon(ledger, 1e-300).upper,
            "delta": lambda epsilon: accountant.delta(ledger, epsilon).upper,
        }
        total = float(np.dot(e, n)) * (1 + 1e-12)
        yield Case({**found, "e": np.array(e), "n": np.array(n)}, ranges={"E": [total]})


@states(ACCOUNTANT, "C2")
def an_example_in_no_lot_costs_nothing(bench):
    parts = (PoissonSampled(1e-3, Gaussian(1e-3)), 7), (PoissonSampled(1e-9, Laplace(1e-3)), 10**6)
    ledger, share = ledger_of(*parts), _exposure(parts)
    with mpmath.workdps(30):
        given = {"D": share, "q": np.array([mpmath.mpf("1e-3"), mpmath.mpf("1e-9")])}
        for accountant in BOUNDS:
            found = {
                "epsilon": lambda delta: accountant.epsilon(ledger, delta).upper,
                "delta": lambda epsilon: accountant.delta(ledger, epsilon).upper,
            }
            ranges = {"E": [1.0], "t": [share * (1 + 1e-9)]}
            yield Case({**given, **found, "n": np.array([7, 10**6], dtype=object)}, ranges=ranges)


@states(ACCOUNTANT, "C3", 1e-9)
def rare_releases_are_paid_by_delta(bench):
    """At a share just below the limit."""
    share, rest = COVERED * 0.5 * 0.999, (Gaussian(0.3), 1)
    rare = PoissonSampled(share / 3, Gaussian(1e-3)), 3
    for accountant in BOUNDS:
        given = {
            "epsilon": lambda delta: accountant.epsilon(ledger_of(rest, rare), delta).upper,
            "epsilon'": lambda delta: accountant.epsilon(ledger_of(rest), delta).upper,
            "D": -math.expm1(3 * math.log1p(-share / 3)),
        }
        yield Case(given, ranges={"t": [0.5]})


@states("privacy.bound.Exposed", "C1")
def mixtures(bench):
    for exposure, delta in ((0.3, 0.2), (1e-3, 0.5)):
        mixture = Exposed(exposure)
        upper = mixture.delta(Bound(0.0, delta, delta)).upper
        given = {"epsilon": 1.0, "D": exposure}
        yield Case({**given, "delta": lambda epsilon: delta, "delta'": upper})
        left = mixture.left(0.7)
        yield Case({**given, "delta": lambda epsilon: left, "delta'": 0.7})


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
