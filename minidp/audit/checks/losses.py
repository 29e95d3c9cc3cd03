"""Checks of the loss-distribution accountant, against truths by quadrature alone, and of what an
epsilon means.
"""

import itertools
import math

import mpmath
import numpy as np
from scipy.special import ndtr

from ...privacy.events import BallsInBins, FixedSizeSampled, Gaussian, PoissonSampled
from ...privacy.gaussian import gaussian_delta
from ...privacy.meaning import meaning_of
from ...privacy.pld import kernels
from ...privacy.pld.accountant import LossDistributionAccountant
from ...privacy.pld.masses import ADD, REMOVE, masses_of
from . import excess, measures, relative
from .truths import ledger_of

CARD = "privacy.pld.accountant.LossDistributionAccountant"
MEANING = "privacy.meaning.meaning_of"
NODES, STEP = 3001, 2e-4


def _outcomes(q, sigma):
    """Masses of the sampled and the empty release on a fine grid of outcomes, and losses
    ln(P/Q).
    """
    z = np.linspace(-9 * sigma, 9 * sigma + 1, NODES)
    absent = np.exp(-0.5 * (z / sigma) ** 2) * (z[1] - z[0]) / (sigma * math.sqrt(2 * math.pi))
    ratio = 1 - q + q * np.exp((2 * z - 1) / (2 * sigma * sigma))
    return absent * ratio, absent, np.log(ratio)


def _delta(p, losses, epsilon):
    return float(np.maximum(-np.expm1(epsilon - losses), 0) @ p)


def _summed(masses, step, epsilon):
    """delta at epsilon of masses on cells of width `step`, but for what is infinite."""
    return _delta(np.exp(masses.log_mass), masses.losses(step), epsilon)


def _deltas(event, direction, epsilons):
    """delta at each epsilon of the event's dominating masses, and what their sum lacks of 1."""
    masses = masses_of(event, direction, True, STEP, (1e-3, math.inf), 9.0)
    tail = math.exp(masses.infinite)
    missing = abs(math.fsum([*np.exp(masses.log_mass), tail, -1.0]))
    return [_summed(masses, STEP, epsilon) + tail for epsilon in epsilons], missing


def _true_delta(events, epsilon):
    """The larger delta of both directions for two sampled releases, summed over all pairs of
    outcomes.
    """
    first, second = (_outcomes(*event) for event in events)
    return max(
        sum(
            mass * _delta(second[side], sign * second[2], epsilon - sign * loss)
            for mass, loss in zip(first[side], first[2])
            if mass > 1e-14
        )
        for side, sign in ((0, 1), (1, -1))
    )


def _outside(bound, truth, slack=1e-7):
    """Width of the interval over the truth; infinity where the truth is outside of it by more than
    `slack`.
    """
    if bound.lower is None or not bound.lower * (1 - slack) <= truth <= bound.upper * (1 + slack):
        return math.inf
    return (bound.upper - bound.lower) / truth


def _ledger(events):
    return ledger_of(*((PoissonSampled(q, Gaussian(sigma)), 1) for q, sigma in events))


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
        ledger, delta = _ledger([(q, sigma)]), max(exact_deltas(q, sigma, epsilon).values())
        yield _outside(accountant.delta(ledger, epsilon), delta, slack=1e-12)
        if epsilon:
            yield _outside(accountant.epsilon(ledger, delta), epsilon, slack=1e-12)


def _masses():
    """(masses, step, first loss, tilt, centre) of a made-up tilted loss, and delta(epsilon) by a
    sum over its atoms.
    """
    mass, step, first, tilt, centre = np.random.default_rng(0).random(40), 0.05, -0.7, 1.3, 0.4
    losses = first + step * np.arange(40)
    return (mass, step, first, tilt, centre), lambda epsilon: _delta(
        mass * np.exp(-tilt * (losses - centre)), losses, epsilon
    )


@measures("privacy.pld.kernels.delta_at", "C1", "sum over the atoms", 1e-12)
def tail_of_the_masses(bench):
    masses, truth = _masses()
    for epsilon in (-1.0, 0.0, 0.33, 1.2):
        yield relative(kernels.delta_at(*masses, epsilon), truth(epsilon))


@measures(
    "privacy.pld.kernels.crossing",
    "C1",
    "delta and errors, by a sum over the atoms, at what it finds",
    1e-9,
)
def crossing_of_the_target(bench):
    """Targets lie close to the value at a knot, so that an error of 3e-4 in a value finds the wrong
    pair of knots.
    """
    masses, truth = _masses()
    _, step, first, tilt, centre = masses

    def value(epsilon, knot, sign):  # between knots, the errors are those of the lower one
        error = 1e-3 * math.exp(-tilt * (first + knot * step - centre)) + 1e-3
        return 1.1 * truth(epsilon) + sign * error

    for knot, sign, share in itertools.product((22, 26, 30), (1, -1), (1 - 3e-4, 1 + 3e-4)):
        target = share * value(first + knot * step, knot, sign)
        epsilon = kernels.crossing(*masses, 1.1, 1e-3, 1e-3, target, sign == 1)
        yield relative(value(epsilon, math.floor((epsilon - first) / step), sign), target)


@measures(CARD, "M2", "two different releases by quadrature inside the interval; its width", 0.005)
def two_releases_by_quadrature(bench):
    events = [(0.3, 1.0), (0.1, 0.7)]
    got = LossDistributionAccountant().delta(_ledger(events), 0.8)
    return _outside(got, _true_delta(events, 0.8))


def stop_loss(sigma, value):
    """E (L - value)_+ of the mean L of two lognormals: one by its closed form, the other by the
    trapezoidal rule.
    """
    x = np.linspace(-9, 14, 20_001)
    density = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    strike = 2 * value - np.exp(x / sigma - 0.5 / sigma**2)
    z = np.log(np.maximum(strike, 1e-300)) * sigma
    call = np.where(strike > 0, ndtr(0.5 / sigma - z) - strike * ndtr(-0.5 / sigma - z), 1 - strike)
    return float(np.sum(density * call)) / 2


def _masses_against_quadrature(upper):
    """Relative distance, on the one side that is safe, of delta of two lots' masses from the truth,
    in both directions.
    """
    for direction, epsilon in itertools.product((REMOVE, ADD), (0.3, 0.6, 1.0)):
        event = BallsInBins(2, Gaussian(1.0))
        masses = masses_of(event, direction, upper, 0.005, (0.0025, 0.02), 8.0)
        found = _summed(masses, 0.005, epsilon) + upper * math.exp(masses.infinite)
        truth = (
            stop_loss(1.0, math.exp(epsilon))
            if direction == REMOVE
            else 1 + math.exp(epsilon) * (stop_loss(1.0, math.exp(-epsilon)) - 1)
        )
        above = (found / truth - 1) * (1 if upper else -1)
        yield above if above > -1e-9 else math.inf


for _label, _upper in (("C1", True), ("C2", False)):
    _method = "delta of two lots by quadrature: on its safe side, and near"
    measures("privacy.pld.balls.masses", _label, _method, 3e-4, f"masses_{_label}")(
        lambda bench, upper=_upper: _masses_against_quadrature(upper)
    )


@measures(
    "privacy.pld.variants.fixed_size_masses",
    "C1 C2",
    "the profile's formula, both signs of epsilon; a bound",
    1e-8,
)
def profile_of_fixed_size_lots(bench):
    epsilons = [-0.5, -0.1, -0.01, 0.0, 0.005, 0.02, 0.1]
    shares = (0.01, 2.0), (0.3, 0.8), (0.05, 5.0)
    for (share, sigma), direction in itertools.product(shares, (REMOVE, ADD)):
        event = FixedSizeSampled(1000, round(1000 * share), Gaussian(sigma))
        found, missing = _deltas(event, direction, epsilons)
        yield 1e6 * missing
        for epsilon, delta in zip(epsilons, found):
            size = abs(epsilon)
            exact = share * gaussian_delta(math.log1p(math.expm1(size) / share), 1 / sigma)
            mirrored = -math.expm1(-size) + math.exp(-size) * exact
            if exact > 1e-5:
                yield excess(delta, exact if epsilon >= 0 else mirrored)


def _normal(p):
    """The p-quantile."""
    return math.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1)


def _meaning(event, delta, key):
    return meaning_of(ledger_of((event, 1)), delta)[key]


@measures(MEANING, "C1", "the power of the test of one Gaussian; a bound", 1e-3)
def power_at_false_positive_rates(bench):
    for sigma in (0.4, 1.0, 20.0):
        rates = _meaning(Gaussian(sigma), 1e-5, "true_positive_rates")
        for rate, power in rates.items():
            yield excess(power, mpmath.ncdf(1 / mpmath.mpf(sigma) + _normal(rate)))


@measures(MEANING, "C2", "the mu of one Gaussian, and of a lottery that tells all", 0.02)
def mu_of_a_gaussian(bench):
    """A release without noise of a share of 1e-3 of the data leaves f(1e-6) = 1 - 1e-3 - 1e-6: mu
    decided there.
    """
    for sigma in (0.4, 1.0, 20.0):
        yield excess(_meaning(Gaussian(sigma), 1e-5, "mu"), 1 / sigma)
    exposed = _meaning(PoissonSampled(1e-3, Gaussian(0.0)), 0.1, "mu")
    yield 100 * relative(exposed, _normal(1 - 1e-6) - _normal(1 - 1e-3 - 1e-6))
