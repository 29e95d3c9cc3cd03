"""Exact values by mpmath, and ledgers of pairs, for the checks of accountants."""

from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
from scipy.optimize import brentq

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


def exact_epsilon(delta, mu):
    """The epsilon at which delta of N(0, 1) against N(mu, 1), a difference of two normal tails, is
    `delta` (40 digits).
    """

    def excess_log(epsilon):
        with mpmath.workdps(40):
            e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
            tails = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            return float(mpmath.log(tails / delta))

    return brentq(excess_log, 0.0, mu * mu + 40 * mu, xtol=1e-14, rtol=1e-13)
