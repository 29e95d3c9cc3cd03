"""Exact values by mpmath, and ledgers of pairs, for the checks of accountants."""

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
from scipy.optimize import brentq

from ...certified.masses import ADD, REMOVE
from ...privacy.events import NeighbouringRelation as Relation
from ...privacy.ledger import Ledger


def ledger_of(*entries, relation=Relation.ADD_REMOVE):
    """A ledger of (event, count) pairs."""
    return Ledger(relation, entries)


def ends_of(accountant, *entries):
    """{"epsilon", "delta"}: functions that give the upper ends of an accountant's bounds."""
    ledger = ledger_of(*entries)
    return {
        "epsilon": lambda delta: accountant.epsilon(ledger, delta).upper,
        "delta": lambda epsilon: accountant.delta(ledger, epsilon).upper,
    }


def fractions(x):
    """An array of the same numbers as fractions."""
    return np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(x)


def sq_norms(rows):
    """The squared norm of each row, as a fraction."""
    return (fractions(rows) ** 2).sum(axis=1)


@cache
def log_integral(q, sigma, n):
    """log of the integral of mu_0 (mu/mu_0)^n, mu_0 = N(0, sigma^2), mu = (1-q) mu_0 + q N(1,
    sigma^2), in mpmath with 30 digits.
    """
    with mpmath.workdps(30):
        q, s = mpmath.mpf(q), mpmath.mpf(sigma)

        def integrand(z):
            ratio = 1 - q + q * mpmath.exp((2 * z - 1) / (2 * s * s))
            return mpmath.npdf(z, 0, s) * ratio**n

        places = mpmath.linspace(min(0, n) - 14 * s, max(0, n) + 14 * s, 13)
        return mpmath.log(mpmath.quad(integrand, places))


def exact_deltas(q, sigma, epsilon):
    """{direction: delta} of one sampled release, by normal tails in 30 digits."""
    with mpmath.workdps(30):
        q, s, e = mpmath.mpf(q), mpmath.mpf(sigma), mpmath.exp(epsilon)
        found = {REMOVE: 0.0, ADD: 0.0}
        # where the likelihood ratio of the sampled release crosses the factor
        for direction, factor, sign in ((REMOVE, e, 1), (ADD, 1 / e, -1)):
            if factor - 1 + q > 0:
                x = s**2 * mpmath.log((factor - 1 + q) / q) + mpmath.mpf(1) / 2
                absent, shifted = (mpmath.ncdf(-sign * (x - at) / s) for at in (0, 1))
                present = (1 - q) * absent + q * shifted
                first, second = (present, absent) if sign == 1 else (absent, present)
                found[direction] = float(first - e * second)
        return found


def exact_epsilon(delta, mu):
    """The epsilon at which delta of N(0, 1) against N(mu, 1) is `delta`."""

    def excess_log(epsilon):
        return math.log(exact_deltas(1.0, 1 / mu, epsilon)[REMOVE] / delta)

    return brentq(excess_log, 0.0, mu * mu + 20 * mu, xtol=1e-14, rtol=1e-13)
