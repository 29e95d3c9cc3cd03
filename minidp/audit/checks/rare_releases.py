"""Checks of rules that all accountants share: caps, rare releases, releases that give everything
away.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np

from ...privacy.accountant import COVERED, _exposure
from ...privacy.accountants import every
from ...privacy.bound import Bound, Exposed
from ...privacy.events import Gaussian, Laplace, PoissonSampled, PureDP
from ..equation import Case
from . import holds, measures, states
from .exact_values import ends_of, ledger_of

ACCOUNTANT = "privacy.accountant.Accountant"


def _bounds(*parts):
    """Yield each accountant whose figure may be quoted for a ledger of these parts."""
    made = [each() for each in every() if each.kind == "bound"]
    return [each for each in made if all(each.covers(event) for event, _ in parts)]


def _uncapped_too(accountant, *entries):
    """`ends_of`, and epsilon' and delta' before they are capped."""
    parts = accountant._charged(ledger_of(*entries)).parts
    return {
        **ends_of(accountant, *entries),
        # at delta 0 only [C1] is used
        "epsilon'": lambda delta: accountant.epsilon_of(parts, delta).upper if delta else math.inf,
        "delta'": lambda epsilon: accountant.delta_of(parts, epsilon).upper,
    }


@states(ACCOUNTANT, "C1")
def pure_releases_cost_their_sum(bench):
    """At a tiny delta, and at 0."""
    parts = (PureDP(1.0), 30), (PoissonSampled(0.1, Laplace(1.0)), 3)
    e, n = np.array([1.0, math.log1p(0.1 * math.expm1(1))]), np.array([30, 3])
    ranges = {"t": [1e-300, 0.0], "E": [float(e @ n) * (1 + 1e-12)]}
    for accountant in _bounds(*parts):
        yield Case({**_uncapped_too(accountant, *parts), "e": e, "n": n}, ranges=ranges)


@states(ACCOUNTANT, "C2")
def an_example_in_no_lot_costs_nothing(bench):
    parts = (PoissonSampled(1e-3, Gaussian(1e-3)), 7), (PoissonSampled(1e-9, Laplace(1e-3)), 10**6)
    share, counts = _exposure(parts), np.array([7, 10**6], dtype=object)
    with mpmath.workdps(30):
        given = {"D": share, "n": counts, "q": np.array([mpmath.mpf(1e-3), mpmath.mpf(1e-9)])}
        for accountant in _bounds(*parts):
            ranges = {"E": [1.0], "t": [share * (1 + 1e-9)]}
            yield Case({**given, **_uncapped_too(accountant, *parts)}, ranges=ranges)


@states(ACCOUNTANT, "C3", 1e-9)
def rare_releases_are_paid_by_delta(bench):
    """At a share just below the limit."""
    share, rest = COVERED * 0.5 * 0.999, (Gaussian(0.3), 1)
    rare = PoissonSampled(share, Gaussian(1e-3)), 1
    for accountant in _bounds(rest, rare):
        without = ends_of(accountant, rest)["epsilon"]
        given = {**ends_of(accountant, rest, rare), "epsilon'": without, "D": share}
        yield Case(given, ranges={"t": [0.5]})


@states("privacy.bound.Exposed", "C1")
def mixtures(bench):
    for exposure in (0.3, 1e-3):
        mixture, known = Exposed(exposure), Bound(0.0, 0.2, 0.2)
        for mixed, alone in (mixture.delta(known).upper, 0.2), (0.7, mixture.left(0.7)):
            given = {"delta'": mixed, "delta": lambda epsilon: alone}
            yield Case({**given, "D": exposure, "epsilon": 1.0})


@measures("privacy.bound.Exposed", "C1", "fractions: safe in the last bit", 0.0)
def mixing_rounds_to_the_safe_side(bench):
    for low, high in bench.rng.uniform(size=(100, 2)).tolist():
        exposure, delta = sorted((low, high))
        share, mixture = Fraction(exposure), Exposed(exposure)
        upper = mixture.delta(Bound(0.0, delta, delta)).upper
        yield holds(upper >= share + (1 - share) * Fraction(delta))
        yield holds(mixture.left(delta) <= (Fraction(delta) - share) / (1 - share))
