"""The grid for a question: from a guess of (epsilon, delta), and the spread of the composed loss
around it.

Nothing here is a bound: samples, tilt, window and step size decide how narrow the interval becomes,
never whether it is right.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..host.jit import CACHED, njit
from .masses import REMOVE

OUTSIDE = (
    37.0  # what lies outside the window is e^-37 = 1e-16 of the tilted mass, the roundings' order
)
# noise beyond the tails kept adds e^-16 = 1e-7 of delta at most: far below the wanted width
TRUNCATION = 16.0
LEAST_LOG_DELTA = -690.0  # smaller deltas leave float64; they are bounded by where they do not
MOST_TILT_A_STEP = 300.0  # keeps weights of neighbouring knots within float64
MAX_POINTS = 2**21  # of a grid, 16 MB each transform; of all kinds of releases together
LEAST_POINTS = 2**17  # points that a grid may have for any number of kinds
MAX_KNOTS = 2**15  # of all releases, about: a tenth of a second of cells
LEAST_KNOTS = 2**10  # of each


@dataclass(frozen=True)
class LossGrid:
    """The grid for the losses of one direction, and the exponential tilt under which they are
    composed.
    """

    direction: str
    upper: bool  # dominating masses, or dominated ones
    step: float
    gaps: tuple  # (relative, absolute) limit on the distance of knots
    points: int
    tilt: float
    before: float  # the window starts this far below the mean of the tilted, composed loss
    deviations: float  # how far into the noise's tails the cells go
    right_order: float  # orders that bound what lies beyond the window
    left_order: float

    def covers(self, other: "LossGrid") -> bool:
        """True if this grid can replace the other, such as for a run of fewer steps."""
        return (
            (self.direction, self.upper) == (other.direction, other.upper)
            and self.step <= 1.3 * other.step
            and self.before >= other.before
            and self.points * self.step >= other.points * other.step
            and self.deviations >= other.deviations
        )


def grid_for(parts, epsilon, delta, direction, fineness):
    """The upper LossGrid of (primitive, count) pairs for one target; `fineness` is its step over
    the tilted deviation.
    """
    steps = sum(count for _, count in parts)

    def look(log_delta):
        deviations = math.sqrt(2 * (TRUNCATION + math.log(steps) - log_delta))
        return deviations, [
            (*sampled(event, direction, deviations), count) for event, count in parts
        ]

    target = {"epsilon": epsilon} if delta is None else {"log_delta": math.log(delta)}
    deviations, samples = look(target.get("log_delta", LEAST_LOG_DELTA))
    if delta is None:
        log_delta = min(max(find(samples, epsilon=epsilon).log_delta, LEAST_LOG_DELTA), 0.0)
        deviations, samples = look(log_delta)
        if log_delta == LEAST_LOG_DELTA:
            target = {"log_delta": log_delta}
    saddle = find(samples, **target)
    (right, right_order), (left, left_order) = window(samples, saddle, OUTSIDE)
    span = max(abs(losses[-1] - losses[0]) for losses, _, _ in samples)
    most = max(MAX_POINTS / len(parts), LEAST_POINTS)
    step = max(
        fineness * math.sqrt(saddle.variance / steps), 1.01 * (right - left) / most, span / most
    )
    points = fast_length((right - left) / step + 4)
    before = saddle.centre - left + 0.5 * (points * step - (right - left))
    knots = max(MAX_KNOTS / len(parts), LEAST_KNOTS)
    gaps = (fineness / 4, max(3 * fineness / max(saddle.tilt, 1e-9), span / knots))
    return LossGrid(
        direction,
        True,
        step,
        gaps,
        points,
        min(saddle.tilt, MOST_TILT_A_STEP / step),
        before,
        deviations,
        right_order,
        left_order,
    )


@dataclass(frozen=True)
class Saddle:
    """The tilt t at which the composed loss has mean `centre`, its variance there, and ln
    delta(centre).
    """

    tilt: float
    log_moment: float
    centre: float
    variance: float
    log_delta: float


def at_tilt(samples, tilt):
    """The saddle at a given tilt; samples are (losses, log masses, count)."""
    from scipy.special import erfcx

    log_moment = centre = variance = 0.0
    for losses, logs, count in samples:
        one = tilted_statistics(losses, logs, tilt)
        log_moment += count * one[0]
        centre += count * one[1]
        variance += count * one[2]
    variance = max(variance, 1e-300)
    spread = math.sqrt(variance)
    # delta = E[(1 - e^(centre - L))+] with a Gaussian in place of the tilted loss
    share = 0.5 * (
        float(erfcx(tilt * spread / math.sqrt(2)))
        - float(erfcx((tilt + 1) * spread / math.sqrt(2)))
    )
    return Saddle(
        tilt,
        log_moment,
        centre,
        variance,
        log_moment - tilt * centre + math.log(max(share, 1e-300)),
    )


def find(samples, *, epsilon=None, log_delta=None):
    """The saddle whose centre is epsilon, or whose delta is exp(log_delta); the tilt is accurate to
    about one per cent.
    """

    def too_low(saddle):
        return saddle.centre < epsilon if log_delta is None else saddle.log_delta > log_delta

    low = at_tilt(samples, 0.0)
    if not too_low(low):
        return low
    high = at_tilt(samples, 1.0)
    while too_low(high) and high.log_delta > -1000 and high.tilt < 1e12:
        low, high = high, at_tilt(samples, 4.0 * high.tilt)
    while high.tilt > 1.02 * low.tilt + 1e-6:
        middle = at_tilt(
            samples, math.sqrt(high.tilt * low.tilt) if low.tilt > 0 else 0.1 * high.tilt
        )
        low, high = (middle, high) if too_low(middle) else (low, middle)
    return high


def window(samples, saddle, exponent):
    """((right, order), (left, order)): beyond each of these losses the tilted mass is below
    e^-exponent.
    """
    natural = math.sqrt(2 * exponent / saddle.variance)
    orders = [natural * scale for scale in (0.03, 0.1, 0.3, 0.6, 1.0, 1.5)]

    def end(order):
        growth = at_tilt(samples, saddle.tilt + order).log_moment - saddle.log_moment
        return (growth + exponent) / order

    return min((end(s), s) for s in orders), max((end(-s), s) for s in orders)


def fast_length(least):
    """An even length, of factors 2, 3 and 5, of at least `least`."""
    power = 2 ** max(4, math.ceil(math.log2(least)))
    return min(length for length in (power, power // 4 * 3, power // 8 * 5) if length >= least)


def sampled(event, direction, deviations):
    """(losses, log P-masses) of the event on an even grid of outcomes within some standard
    deviations, which suffices to choose tilt and window.
    """
    pure = event.pure_epsilon
    if pure is not None:
        log_p = -float(np.logaddexp(0.0, pure))
        return np.array([-pure, pure]), np.array([log_p, log_p + pure])
    from scipy.special import xlog1py, xlogy

    q, m = event.share, 1 / event.noise.noise_multiplier
    log_q = xlogy(1, q)
    x = np.arange(-deviations, deviations + m + 0.1, 0.1)
    log_ratio = m * x - 0.5 * m * m
    # keeps the digits of losses near 0
    growth = np.exp(log_q) * np.expm1(np.minimum(log_ratio, 1.0))
    losses = np.where(
        (growth > -0.5) & (log_ratio < 1),
        np.log1p(np.maximum(growth, -0.5)),
        np.logaddexp(xlog1py(1, -q), log_q + log_ratio),
    )
    logs = losses - 0.5 * x * x + math.log(0.1 / math.sqrt(2 * math.pi))
    return (losses, logs) if direction == REMOVE else (-losses, logs - losses)


@njit(cache=CACHED)
def tilted_statistics(losses, logs, tilt):
    """(ln E e^(tilt L), mean and variance of L under the tilt) for log masses at the losses."""
    largest = np.max(logs + tilt * losses)
    total = first = 0.0
    for i in range(len(losses)):
        weight = math.exp(logs[i] + tilt * losses[i] - largest)
        total += weight
        first += weight * losses[i]
    mean = first / total
    second = 0.0
    for i in range(len(losses)):
        second += math.exp(logs[i] + tilt * losses[i] - largest) * (losses[i] - mean) ** 2
    return largest + math.log(total), mean, second / total
