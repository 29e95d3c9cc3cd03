"""Checks of the loss-distribution accountant against exact values by quadrature."""

import itertools
import math

import mpmath
import numpy as np

from ...certified import loss_kernels as kernels
from ...certified.accountant import LossDistributionAccountant
from ...privacy.events import Gaussian, PoissonSampled
from ...privacy.ladder import on_ladder
from ..equation import Case
from . import holds, in_words, measures, states
from .exact_values import exact_deltas, ledger_of

CARD = "privacy.pld.accountant.LossDistributionAccountant"
STEP = 2e-4


def _summed(masses, step, epsilon):
    """delta at epsilon of masses on cells of width `step`, without infinite losses."""
    return float(np.maximum(-np.expm1(epsilon - masses.losses(step)), 0) @ np.exp(masses.log_mass))


def _outside(bound, truth, slack=1e-7):
    """Width of the interval divided by the truth; infinity if the truth is outside by more than
    `slack`.
    """
    if bound.lower is None or not bound.lower * (1 - slack) <= truth <= bound.upper * (1 + slack):
        return math.inf
    return (bound.upper - bound.lower) / truth


@measures(
    CARD,
    "M1",
    "one sampled release by normal tails of 30 digits inside the interval; its width",
    0.005,
)
def one_release_by_normal_tails(bench):
    """delta at an epsilon, and epsilon at that delta."""
    accountant = LossDistributionAccountant()
    for q, sigma, epsilon in (
        (0.01, 4.0, 0.003),
        (0.1, 0.7, 1.0),
        (0.5, 1.0, 0.3),
        (0.9, 2.0, 1.5),
        (1.0, 4.0, 0.5),
        (1e-4, 0.5, 0.01),
        (0.01, 4.0, 0.0),
    ):
        ledger = ledger_of((PoissonSampled(q, Gaussian(sigma)), 1))
        delta = max(exact_deltas(q, sigma, epsilon).values())
        yield _outside(accountant.delta(ledger, epsilon), delta, slack=1e-12)
        if epsilon:
            yield _outside(accountant.epsilon(ledger, delta), epsilon, slack=1e-12)


in_words(CARD, "M1", "an order of distributions")


@states(CARD, "M2")
def tilted_and_normalised(bench):
    log_mass, losses = bench.rng.uniform(-3, 1, 6), bench.rng.uniform(-2, 2, 6)
    mass, _ = kernels.tilted_masses(log_mass, losses, 1.3)
    yield Case({"m": mass, "p": np.exp(log_mass), "L": losses, "t": 1.3})


@measures("privacy.ladder.on_ladder", "F1 F2", "the nearest rung on the safe side, by mpmath", 1e-9)
def rungs(bench):
    """For 1,000 different lots: heights become multiples of r, and move by less than r."""
    noises, shares = np.exp(bench.rng.uniform((-3, -20), (5, -0.01), (1000, 2)).T)
    lots = [(PoissonSampled(*given), 1) for given in zip(shares, map(Gaussian, noises))]
    for dominating, side in ((True, 1), (False, -1)):
        for (lot, _), (rung, _) in zip(lots, on_ladder(lots, dominating), strict=True):
            for was, now, bend, up in (
                (lot.share, rung.share, 0.0, side),
                (lot.noise.noise_multiplier, rung.noise.noise_multiplier, 0.45, -side),
            ):
                before, after = (
                    float(mpmath.log(s) - bend / mpmath.mpf(s) ** 2) for s in (was, now)
                )
                moved = up * (after - before) / 0.004
                yield holds(up * (now - was) >= 0 and moved <= 1 + 1e-9)
                yield abs(after / 0.004 - round(after / 0.004))


in_words("privacy.ladder.on_ladder", "F1 F2", "where rungs stand")


def _masses():
    """(masses, step, first loss, tilt, centre) of a made-up tilted loss."""
    return np.random.default_rng(0).random(40), 0.05, -0.7, 1.3, 0.4


def _delta_at(epsilon):
    return kernels.delta_at(*_masses(), epsilon)


@states("privacy.pld.loss_kernels.delta_at", "C1")
def tail_of_the_masses(bench):
    mass, step, first, tilt, centre = _masses()
    given = {"m": mass, "l": first + step * np.arange(40), "tilt": tilt, "centre": centre}
    ranges = {"epsilon": (-1.0, 0.0, 0.33, 1.2)}
    yield Case({**given, "delta": _delta_at}, ranges=ranges)


@states("privacy.pld.loss_kernels.crossing", "C1", 1e-9)
def crossing_of_the_target(bench):
    """Targets lie close to the value at a knot, so that an error of 3e-4 in a value finds the wrong
    pair of knots.
    """
    _, step, first, tilt, centre = _masses()
    given = {"tilt": tilt, "centre": centre, "factor": 1.1, "weighted": 1e-3, "plain": 2e-3}
    for knot, sign, share in itertools.product((22, 26, 30), (1, -1), (1 - 3e-4, 1 + 3e-4)):
        at = first + knot * step
        target = 1.1 * _delta_at(at) + sign * (1e-3 * math.exp(-tilt * (at - centre)) + 2e-3)
        target *= share
        epsilon = kernels.crossing(*_masses(), 1.1, 1e-3, 2e-3, target, sign == 1)
        below = first + step * math.floor((epsilon - first) / step)
        found = {"epsilon": epsilon, "target": target, "l": below, "s": sign}
        yield Case({**given, **found, "delta": _delta_at})
