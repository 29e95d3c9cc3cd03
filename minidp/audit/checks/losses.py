"""Checks of the loss-distribution accountant: intervals against truths that come from quadrature alone."""
import math

import numpy as np

from ...privacy.events import Gaussian, PoissonSampled
from ...privacy.pld.accountant import LossDistributionAccountant
from . import measures
from .curves import exact_delta, exact_epsilon, ledger_of

CARD = "privacy.pld.accountant.LossDistributionAccountant"
NODES = 3001


def _outcomes(q, sigma):
    """Masses of the sampled and the empty release on a fine grid of outcomes, and losses ln(P/Q)."""
    z = np.linspace(-9 * sigma, 9 * sigma + 1, NODES)
    absent = np.exp(-0.5 * (z / sigma) ** 2) * (z[1] - z[0]) / (sigma * math.sqrt(2 * math.pi))
    ratio = 1 - q + q * np.exp((2 * z - 1) / (2 * sigma * sigma))
    return absent * ratio, absent, np.log(ratio)


def _delta(p, losses, epsilon):
    return float(np.maximum(-np.expm1(epsilon - losses), 0) @ p)


def _true_delta(events, epsilon):
    """The larger delta of both directions for one or two sampled releases, summed over all pairs of outcomes."""
    parts = [_outcomes(*event) for event in events]
    both = []
    for side, sign in ((0, 1), (1, -1)):
        if len(parts) == 1:
            both.append(_delta(parts[0][side], sign * parts[0][2], epsilon))
            continue
        (first, second) = parts
        both.append(sum(mass * _delta(second[side], sign * second[2], epsilon - sign * loss)
                        for mass, loss in zip(first[side], first[2]) if mass > 1e-14))
    return max(both)


def _outside(bound, truth, slack=1e-7):
    """Width of the interval over the truth; infinity where the truth is outside of it by more than `slack`."""
    if bound.lower is None or not bound.lower * (1 - slack) <= truth <= bound.upper * (1 + slack):
        return math.inf
    return (bound.upper - bound.lower) / truth


def _ledger(events):
    return ledger_of(*((PoissonSampled(q, Gaussian(sigma)), 1) for q, sigma in events))


@measures(CARD, "M1", "C1", method="one sampled release by quadrature inside the interval; its width", tolerance=0.02)
def one_release_by_quadrature(bench):
    return max(_outside(LossDistributionAccountant().delta(_ledger([event]), epsilon), _true_delta([event], epsilon))
               for event, epsilon in (((0.3, 1.0), 0.5), ((0.05, 0.8), 1.0)))


@measures(CARD, "M1", "C1", method="exact Gaussian inside the interval; its width", tolerance=5e-3)
def unsampled_gaussians_by_mpmath(bench):
    accountant, ledger = LossDistributionAccountant(), ledger_of((Gaussian(4.0), 10))
    mu = math.sqrt(10) / 4
    return max(_outside(accountant.epsilon(ledger, 1e-5), exact_epsilon(1e-5, mu)),
               _outside(accountant.delta(ledger, 2.0), float(exact_delta(2.0, mu))))


@measures(CARD, "M2", method="two different releases by quadrature inside the interval; its width", tolerance=0.02)
def two_releases_by_quadrature(bench):
    events = [(0.3, 1.0), (0.1, 0.7)]
    return _outside(LossDistributionAccountant().delta(_ledger(events), 0.8), _true_delta(events, 0.8))


@measures(CARD, "M2", method="10,000 releases against two published accountants; width", tolerance=5e-3)
def ten_thousand_releases(bench):
    """0.9470 at q .01, sigma 4, delta 1e-5: Gopi, Lee, Wutschitz 2021 and connecting the dots agree on it."""
    ledger = ledger_of((PoissonSampled(0.01, Gaussian(4.0)), 10_000))
    return _outside(LossDistributionAccountant().epsilon(ledger, 1e-5), 0.9470, slack=1e-3)
