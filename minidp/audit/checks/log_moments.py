"""Checks of log moments, Renyi divergences and their conversions, against mpmath."""

import math
from functools import partial
from itertools import product

import mpmath
import numpy as np

from ...privacy import conversion
from ...privacy.events import (
    Gaussian,
    Laplace,
    PoissonSampled,
)
from ...privacy.moments import MomentsAccountant, log_moment_curve
from ...privacy.renyi import RenyiAccountant
from ..equation import Case
from . import excess, measures, states
from .exact_values import log_integral

MOMENTS, RENYI = "privacy.moments.MomentsAccountant", "privacy.renyi.RenyiAccountant"
GRID = (
    (0.01, 4.0, 5.0),
    (0.3, 1.0, 2.0),
    (1e-6, 0.5, 8.0),
    (0.5, 30.0, 64.0),
)


def log_moment(event, order):
    """Values for one order."""
    return log_moment_curve(event, np.array([order]))[0]


@states(MOMENTS, "M1", 1e-9, error=excess)
def log_moments_of_sampled_gaussians(bench):
    """Both directions, computed by mpmath."""
    with mpmath.workdps(30):
        for q, sigma, order in GRID:
            e1, e2 = (mpmath.exp(log_integral(q, sigma, n)) for n in (-order, order + 1))
            alpha = log_moment(PoissonSampled(q, Gaussian(sigma)), order)
            given = {"alpha": alpha, "E1": e1, "E2": e2, "q": q, "sigma": sigma, "lambda": order}
            far, step = order + 2 + 13 * sigma, min(sigma, sigma**2) / 4
            yield Case(given, ranges={"x": np.arange(-far, far, step)})


@states(MOMENTS, "M2", error=excess)
def log_moments_of_gaussians(bench):
    for sigma, order in ((1.0, 1.0), (4.0, 7.0), (2.5, 3.5)):
        alpha = log_moment(Gaussian(sigma), order)
        yield Case({"alpha": alpha, "lambda": order, "sigma": sigma})


@states(MOMENTS, "M3", error=excess)
def log_moments_of_pure_releases(bench):
    sampled = PoissonSampled(0.1, Laplace(8.0)), math.log1p(0.1 * math.expm1(1 / 8))
    cases = (Laplace(10.0), 0.1), (Laplace(0.5), 2.0), sampled
    for (event, epsilon), order in product(cases, (1.0, 5.0, 17.5)):
        yield Case({"alpha": log_moment(event, order), "lambda": order, "e": mpmath.mpf(epsilon)})


@measures(MOMENTS, "M3", "at least that of randomised response; the shortfall", 0.0)
def log_moments_of_pure_releases_are_bounds(bench):
    """No e-DP release has a larger log moment than this one."""
    with mpmath.workdps(40):
        for epsilon, order in product((1e-3, 0.1, 2.0), (1.0, 5.0, 17.5)):
            p = 1 / (1 + mpmath.exp(-epsilon))
            truth = mpmath.log(
                sum(a ** (order + 1) / b**order for a, b in ((p, 1 - p), (1 - p, p)))
            )
            yield max(0.0, 1 - float(log_moment(Laplace(1 / epsilon), order) / truth))


@states(MOMENTS, "M4")
def log_moments_add_up(bench):
    releases = (PoissonSampled(0.01, Gaussian(4.0)), 900), (Gaussian(20.0), 1), (Laplace(30.0), 3)
    accountant = MomentsAccountant()
    alpha = accountant.composed(releases, accountant.orders)
    each = np.array([log_moment_curve(event, accountant.lambdas) for event, _ in releases])
    yield Case({"alpha": alpha, "a": each, "n": np.array([float(times) for _, times in releases])})


def _divergences(event, orders):
    """{(order,): its divergence} by the accountant."""
    curve = RenyiAccountant(orders=orders).cost_curve(event, orders)
    return {(a,): cost / (a - 1) for a, cost in zip(orders, curve)}


@states(RENYI, "M1", 1e-9, error=excess)
def renyi_divergences(bench):
    """At fractional orders, computed by mpmath."""
    for q, sigma, orders in ((0.02, 2.0, (1.5, 3.3, 20.0)), (256 / 60000, 0.5, (1.5,))):
        found = _divergences(PoissonSampled(q, Gaussian(sigma)), orders)
        alpha = partial(_log_moment_by_mpmath, q, sigma)
        yield Case({"D": found, "alpha": alpha}, ranges={"a": orders})


def _log_moment_by_mpmath(q, sigma, order):
    return log_integral(q, sigma, order + 1)


@states(RENYI, "M2", 1e-11, error=excess)
def pure_divergences(bench):
    orders = (1.5, 4.0, 30.0)
    with mpmath.workdps(40):
        for scale in (10.0, 0.7, 1e9):
            found = _divergences(Laplace(scale), orders)
            yield Case({"D": found, "e": 1 / mpmath.mpf(scale)}, ranges={"a": orders})


CONVERSION = "privacy.conversion"
ORDERS = np.arange(0.5, 40.0, 0.5)
# (mu, epsilon, delta), first of next to nothing
PLACES = ((0.01, 0.0, 0.01), (0.1, 0.5, 1e-6), (0.5, 2.0, 1e-6), (2.0, 9.0, 1e-6))


def _gaussian_log_moment(mu, order):
    return 0.5 * mu * mu * order * (order + 1)


def _gaussians():
    """(log moments at ORDERS, values for the names of the conversions)."""
    for mu, epsilon, delta in PLACES:
        alpha = partial(_gaussian_log_moment, mu)
        divergences = {(order + 1,): alpha(order) / order for order in ORDERS}
        total_variation = conversion.total_variation_bound(alpha(ORDERS), ORDERS)
        given = {"epsilon": epsilon, "delta": delta, "alpha": alpha, "D": divergences}
        yield alpha(ORDERS), given | {"T": total_variation}


def _conversion(given):
    return Case(given, ranges={"lambda": ORDERS, "a": ORDERS + 1})


@states(f"{CONVERSION}.tail_bound_epsilon", "C1", 3e-12, case=conversion.tail_bound_epsilon)
@states(f"{CONVERSION}.sharper_epsilon", "C1", 3e-12, case=conversion.sharper_epsilon)
def epsilon_at_a_delta(bench, case):
    for curve, given in _gaussians():
        yield _conversion({**given, "epsilon": case(curve, ORDERS, given["delta"])})


@states(f"{CONVERSION}.tail_bound_delta", "C1", 3e-12, case=conversion.tail_bound_delta)
@states(f"{CONVERSION}.sharper_delta", "C1", 3e-12, case=conversion.sharper_delta)
def delta_at_an_epsilon(bench, case):
    for curve, given in _gaussians():
        yield _conversion({**given, "delta": case(curve, ORDERS, given["epsilon"])})


@states(f"{CONVERSION}.total_variation_bound", "C1", 3e-12)
def total_variation(bench):
    for _, given in _gaussians():
        yield _conversion(given)
