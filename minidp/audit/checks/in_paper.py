"""Checks of statements of the paper that no run uses, compared with exact values."""

import math
from itertools import product

import mpmath
import numpy as np

from ...certified.accountant import LossDistributionAccountant
from ...certified.gaussian import gaussian_delta
from ...privacy.events import Gaussian, PoissonSampled
from ...privacy.moments import MomentsAccountant
from .. import in_paper
from ..equation import Case
from . import holds, measures, states
from .exact_values import ledger_of
from .log_moments import log_moment

SETTINGS = (  # (q, sigma, lambda) within the range of Lemma 3, its ends among them
    (6e-6, 1.0, 1.0),
    (0.018, 1.0, 4.0),
    (0.0497, 1.0, 3.0),  # where the exact log moment exceeds the leading term
    (0.056, 1.0, 2.0),
    (2e-4, 4.0, 2.0),
    (0.014, 4.0, 46.0),
    (0.0035, 16.0, 1.0),
    (0.0035, 16.0, 700.0),
)


@states("audit.in_paper.privacy_loss", "C1")
def privacy_losses(bench):
    outcomes = (-3.0, 0.25, 0.5, 2.0)
    for q, sigma, _ in SETTINGS[:3]:
        losses = {(x,): in_paper.privacy_loss(x, q, sigma) for x in outcomes}
        with mpmath.workdps(30):
            given = {"c": losses, "q": mpmath.mpf(q), "sigma": mpmath.mpf(sigma)}
            yield Case(given, ranges={"x": outcomes})


@states("audit.in_paper.gaussian_mechanism_delta", "C1")
def delta_of_the_gaussian_mechanism(bench):
    for epsilon, sigma in product((0.1, 0.9), (0.4, 4.0)):
        delta = in_paper.gaussian_mechanism_delta(epsilon, sigma)
        yield Case({"delta": delta, "epsilon": epsilon, "sigma": sigma})


@measures("audit.in_paper.gaussian_mechanism_delta", "C1", "at least the exact delta", 0.0)
def it_bounds_the_exact_delta(bench):
    for epsilon, sigma in product(np.linspace(1e-3, 0.999, 25), np.geomspace(0.4, 30, 25)):
        exact = gaussian_delta(epsilon, 1 / sigma)
        yield holds(exact <= in_paper.gaussian_mechanism_delta(epsilon, sigma) * (1 + 1e-9))


@states("audit.in_paper.lemma_3_log_moment", "C1")
def leading_terms(bench):
    for q, sigma, order in SETTINGS:
        alpha = in_paper.lemma_3_log_moment(q, sigma, order)
        yield Case({"alpha": alpha, "q": q, "sigma": sigma, "lambda": order})


@measures("audit.in_paper.lemma_3_log_moment", "C1", "the exact one is 0.49 to 1.09 of it", 0.0)
def it_is_near_the_exact_log_moment(bench):
    for q, sigma, order in SETTINGS:
        exact = log_moment(PoissonSampled(q, Gaussian(sigma)), order)
        yield holds(0.49 <= exact / in_paper.lemma_3_log_moment(q, sigma, order) <= 1.09)


@states("audit.in_paper.theorem_1_noise", "C1")
def noise_of_theorem_1(bench):
    for q, steps, epsilon, delta in ((0.01, 10_000, 1.26, 1e-5), (1e-3, 500, 0.2, 1e-6)):
        sigma = in_paper.theorem_1_noise(q, steps, epsilon, delta)
        yield Case({"sigma": sigma, "q": q, "T": steps, "epsilon": epsilon, "delta": delta})


@measures("audit.in_paper.theorem_1_noise", "C1", "enough at sigma >= 3, not at 1", 0.0)
def where_it_is_enough(bench):
    for sigma, share, order in product((3.0, 4.0, 8.0), (0.01, 0.1, 0.999), (2, 4, 16)):
        q, steps = share / (16 * sigma), 10_000
        assert order <= sigma**2 * math.log(1 / (q * sigma))
        epsilon = 2 * steps * q**2 * order / sigma**2
        ledger, delta = _ledger(q, sigma, steps), math.exp(-order * epsilon / 2)
        yield holds(MomentsAccountant().epsilon(ledger, delta).upper <= epsilon)
    q, steps, epsilon, delta = 0.0163315, 100_000, 53.333, 2.6236e-12
    sigma, order = (
        in_paper.theorem_1_noise(q, steps, epsilon, delta),
        2 * math.log(1 / delta) / epsilon,
    )
    assert q < 1 / (16 * sigma) and order <= sigma**2 * math.log(1 / (q * sigma))
    exact = LossDistributionAccountant().epsilon(_ledger(q, sigma, steps), delta)
    yield holds(exact.lower > 68.8)


def _ledger(q, sigma, steps):
    return ledger_of((PoissonSampled(q, Gaussian(sigma)), steps))
