"""Checks of the meaning of an epsilon for a person."""

import math
from functools import cache

import mpmath
import numpy as np

from ...privacy.events import Gaussian, PoissonSampled
from ...run import attacker
from ..equation import Case
from . import excess, measures, relative, states
from .exact_values import ledger_of

MEANING = "privacy.attacker.meaning_of"


def _normal(p):
    """The p-quantile."""
    return math.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1)


@cache
def _meaning(event, delta):
    """(result of `meaning_of`, {epsilon: delta} of the tangents that it used)."""
    ledger = ledger_of((event, 1))
    return attacker.meaning_of(ledger, delta), dict(attacker.lines_of(ledger, delta))


def _gaussian_meanings():
    """(sigma, values for the names of both equations, {epsilon: delta}) of single Gaussians."""
    for sigma in (0.4, 1.0, 20.0):
        found, lines = _meaning(Gaussian(sigma), 1e-5)
        given = {"delta": lines.__getitem__, "mu": found["mu"]}
        rates = found["true_positive_rates"]
        given["p"] = lambda rate: rates[f"{rate:g}"]
        given["f"] = lambda rate: float(mpmath.ncdf(-1 / mpmath.mpf(sigma) - _normal(rate)))
        yield sigma, given, lines


@states(MEANING, "C1", 3e-12)
def power_by_the_tangents(bench):
    for _, given, lines in _gaussian_meanings():
        yield Case(given, ranges={"a": attacker.RATES, "epsilon": list(lines)})


@states(MEANING, "C2", 3e-9)
def mu_at_the_corners(bench):
    for _, given, lines in _gaussian_meanings():
        epsilons, deltas = (np.array(each) for each in zip(*sorted(lines.items())))
        last = 0.5 * (1 - deltas[0])
        corners = [attacker.LEAST_RATE, last, *(-np.diff(deltas) / np.diff(np.exp(epsilons)))]
        inside = [a for a in corners if attacker.LEAST_RATE <= a <= last]
        yield Case(given, ranges={"a": inside, "epsilon": list(lines)})


@measures(MEANING, "C2", "the mu of one Gaussian, and of a lottery that tells all", 0.02)
def mu_of_a_gaussian(bench):
    """A release without noise of a share of 1e-3 of the data leaves f(1e-6) = 1 - 1e-3 - 1e-6: mu
    decided there.
    """
    for sigma, given, _ in _gaussian_meanings():
        yield excess(given["mu"], 1 / sigma)
    exposed = _meaning(PoissonSampled(1e-3, Gaussian(0.0)), 0.1)[0]["mu"]
    yield 100 * relative(exposed, _normal(1 - 1e-6) - _normal(1 - 1e-3 - 1e-6))
