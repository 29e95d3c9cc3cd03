"""Checks of log moments, Renyi divergences and their conversions, against mpmath."""

import math
from functools import partial
from itertools import product

import mpmath
import numpy as np

from ...privacy import conversion
from ...privacy.events import FixedSizeSampled, Gaussian, Laplace, PoissonSampled, RandomlyStopped
from ...privacy.moments import log_moment_curve
from ...privacy.renyi import RenyiAccountant
from . import excess, holds, measures, relative
from .truths import log_integral

MOMENTS, RENYI = "privacy.moments.MomentsAccountant", "privacy.renyi.RenyiAccountant"
GRID = (
    (0.01, 4.0, 5.0),
    (0.01, 4.0, 19.0),
    (0.3, 1.0, 2.0),
    (1e-5, 2.0, 8.0),
    (0.004, 0.7, 11.0),
    (1e-6, 0.5, 8.0),
    (0.5, 30.0, 64.0),
)


def log_moment(event, order):
    """Of one order."""
    return log_moment_curve(event, np.array([order]))[0]


@measures(MOMENTS, "M1", "both directions by mpmath, 30 digits; a bound", 1e-9)
def log_moments_against_mpmath(bench):
    for q, sigma, order in GRID:
        both = (log_integral(q, sigma, n) for n in (order + 1, -order))
        yield excess(log_moment(PoissonSampled(q, Gaussian(sigma)), order), max(both))


@measures(MOMENTS, "M2", "mpmath integral at q = 1; a bound", 1e-12)
def unsampled_log_moments(bench):
    for sigma, order in ((1.0, 1.0), (4.0, 7.0), (2.5, 3.5)):
        yield excess(log_moment(Gaussian(sigma), order), log_integral(1, sigma, order + 1))


def _theorem_27(fraction, sigma, a):
    """Wang, Balle, Kasiviswanathan 2019, Theorems 9 and 27, for the Gaussian, by forward
    differences in mpmath.
    """
    with mpmath.workdps(60):
        g, v = mpmath.mpf(fraction), 1 / mpmath.mpf(sigma) ** 2
        total = 1 + g**2 * mpmath.binomial(a, 2) * min(4 * (mpmath.exp(v) - 1), 2 * mpmath.exp(v))
        moment = [mpmath.exp(mpmath.mpf(i) * (i - 1) / 2 * v) for i in range(a + 2)]
        difference = [
            sum((-1) ** (i + l) * mpmath.binomial(l, i) * moment[i] for i in range(l + 1))
            for l in range(a + 2)
        ]
        for j in range(3, a + 1):
            closer = 4 * mpmath.sqrt(difference[j // 2 * 2] * difference[(j + 1) // 2 * 2])
            total += g**j * mpmath.binomial(a, j) * min(2 * moment[j], closer)
        return min(mpmath.log(total), mpmath.mpf(a) * (a - 1) * v / 2)


@measures(MOMENTS, "M3", "both theorems' sums in mpmath, chords between integers; a bound", 2e-11)
def fixed_size_log_moments(bench):
    for size, sigma, a in (
        (100, 4.0, 2.0),
        (100, 4.0, 3.0),
        (10, 4.0, 40.0),
        (10, 4.0, 5.25),
        (100, 1.5, 5.0),
        (500, 0.8, 9.0),
        (100, 30.0, 6.0),
        (300, 0.02, 12.0),
    ):
        got = log_moment(FixedSizeSampled(1000, size, Gaussian(sigma)), a - 1)
        below, above = (_theorem_27(size / 1000, sigma, int(b)) for b in (a, a + 1))
        yield excess(got, below + (a - int(a)) * (above - below))


@measures(MOMENTS, "M4", "Lemma C.1 in mpmath; a bound", 1e-12)
def pure_log_moments(bench):
    sampled = PoissonSampled(0.1, Laplace(8.0)), math.log(1 + 0.1 * (math.exp(1 / 8) - 1))
    cases = (Laplace(10.0), 0.1), (Laplace(0.5), 2.0), sampled
    for (event, epsilon), order in product(cases, (1.0, 5.0, 17.5)):
        e = mpmath.mpf(epsilon)
        squared = order * e * (mpmath.exp(e) - 1) + order**2 * e**2 * mpmath.exp(2 * e) / 2
        yield excess(log_moment(event, order), min(order * e, squared))


def _renyi(event, orders):
    """(order, divergence) by the accountant."""
    return zip(orders, RenyiAccountant(orders=orders).cost_curve(event, orders))


@measures(RENYI, "M1", "mpmath integral at fractional orders; a bound", 1e-9)
def renyi_divergences_against_mpmath(bench):
    for q, sigma, orders in ((0.02, 2.0, (1.5, 3.3, 20.0)), (256 / 60000, 0.5, (1.5,))):
        for a, got in _renyi(PoissonSampled(q, Gaussian(sigma)), orders):
            yield excess(got, log_integral(q, sigma, a))


@measures(RENYI, "M2", "randomised response in mpmath; a bound", 1e-11)
def pure_divergences(bench):
    for scale in (10.0, 0.7, 1e9):
        for a, got in _renyi(Laplace(scale), (1.5, 4.0, 30.0)):
            with mpmath.workdps(40):
                likely = mpmath.exp(1 / mpmath.mpf(scale)) / (1 + mpmath.exp(1 / mpmath.mpf(scale)))
                moment = likely**a * (1 - likely) ** (1 - a) + (1 - likely) ** a * likely ** (1 - a)
                yield excess(got, mpmath.log(moment))


@measures(RENYI, "M3", "loop over both orders", 1e-9)
def random_stopping_by_a_loop(bench):
    orders, event = (2.0, 8.0, 20.0), PoissonSampled(0.02, Gaussian(2.0))
    once = [log_integral(0.02, 2.0, a) / (a - 1) for a in orders]
    for eta, gamma, runs in ((1.0, 0.1, 10.0), (0.0, 0.1, 9 / math.log(10))):
        choice = min((1 - 1 / b) * d + math.log(1 / gamma) / b for b, d in zip(orders, once))
        stopped = RandomlyStopped(event, eta, gamma)
        for (a, got), d in zip(_renyi(stopped, orders), once):
            expected = d + (1 + eta) * choice + math.log(runs) / (a - 1)
            yield excess(got / (a - 1), expected)


ORDERS = np.arange(0.5, 80.0, 0.5)
PLACES = ((0.1, 0.5), (0.5, 2.0), (2.0, 9.0))  # (mu, epsilon)


def _tail_bound_epsilon(mu, o, epsilon):
    return (mu * mu * o * (o + 1) / 2 + math.log(1e6)) / o


def _tail_bound_delta(mu, o, epsilon):
    return math.exp(min(mu * mu * o * (o + 1) / 2 - o * epsilon, 700.0))


def _sharper_delta(mu, o, epsilon):
    """e^((a-1)(D - epsilon)) / (a-1) (1 - 1/a)^a, as the proposition prints it, D = a mu^2 / 2."""
    a = o + 1
    return math.exp(min((a - 1) * (a * mu * mu / 2 - epsilon), 700.0)) / (a - 1) * (1 - 1 / a) ** a


def _convert(name, mu, target):
    return getattr(conversion, name)(0.5 * mu * mu * ORDERS * (ORDERS + 1), ORDERS, target)


def _conversions(bench, name, truth, delta):
    for mu, epsilon in PLACES:
        got = _convert(name, mu, delta or epsilon)
        yield relative(got, min(truth(mu, o, epsilon) for o in ORDERS))


for _name, _truth, _delta in (
    ("tail_bound_epsilon", _tail_bound_epsilon, 1e-6),
    ("tail_bound_delta", _tail_bound_delta, None),
    ("sharper_delta", _sharper_delta, None),
):
    measures(f"privacy.conversion.{_name}", "C1", "as printed, loop over orders", 1e-11, _name)(
        partial(_conversions, name=_name, truth=_truth, delta=_delta)
    )


@measures(
    "privacy.conversion.sharper_epsilon", "C1", "delta of Proposition 12 at the epsilon found", 1e-9
)
def sharper_epsilon_solves_for_delta(bench):
    for mu, _ in PLACES:
        epsilon = _convert("sharper_epsilon", mu, 1e-6)
        yield relative(min(_sharper_delta(mu, o, epsilon) for o in ORDERS), 1e-6)


@measures(
    "privacy.conversion.total_variation_bound",
    "C1",
    "sqrt(1 - e^-D), and where epsilon becomes 0",
    1e-11,
)
def large_delta_needs_no_epsilon(bench):
    """epsilon at that delta and delta at epsilon 0, where the orders' own formulas give more."""
    truth, given = mpmath.sqrt(-mpmath.expm1(-0.01)), (np.array([0.01, 0.03]), np.array([1.0, 2.0]))
    yield relative(conversion.total_variation_bound(*given), truth)
    yield relative(conversion.sharper_delta(*given, 0.0), truth)
    deltas = (float(truth) * (1 + gap) for gap in (1e-9, -1e-9))
    above, below = (conversion.sharper_epsilon(*given, delta) for delta in deltas)
    yield holds(above == 0 < below)
