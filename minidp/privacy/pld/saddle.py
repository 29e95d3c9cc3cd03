"""Where to look: a guess of (epsilon, delta), and of the spread of the composed loss around it.

Nothing here is a bound. Tilt, window and step size decide how narrow the certified interval becomes, never
whether it is right.
"""
import math
from dataclasses import dataclass

from .kernels import tilted_statistics


@dataclass(frozen=True)
class Saddle:
    """The tilt t at which the composed loss has mean `centre`, its variance there, and ln delta(centre)."""

    tilt: float
    log_moment: float
    centre: float
    variance: float
    log_delta: float


def at_tilt(samples, tilt):
    """The saddle at a given tilt; samples are (losses, log masses, count)."""
    log_moment = centre = variance = 0.0
    for losses, logs, count in samples:
        one = tilted_statistics(losses, logs, tilt)
        log_moment, centre, variance = log_moment + count * one[0], centre + count * one[1], variance + count * one[2]
    variance = max(variance, 1e-300)
    spread = math.sqrt(variance)
    # delta = E[(1 - e^(centre - L))+] with a Gaussian in place of the tilted loss
    share = _mills(tilt * spread) - _mills((tilt + 1) * spread)
    return Saddle(tilt, log_moment, centre, variance, log_moment - tilt * centre + math.log(max(share, 1e-300)))


def find(samples, *, epsilon=None, log_delta=None):
    """The saddle whose centre is epsilon, or whose delta is exp(log_delta), to about a per cent of the tilt."""
    def too_low(saddle):
        return saddle.centre < epsilon if log_delta is None else saddle.log_delta > log_delta

    low = at_tilt(samples, 0.0)
    if not too_low(low):
        return low
    high = at_tilt(samples, 1.0)
    while too_low(high) and high.log_delta > -1000 and high.tilt < 1e12:
        low, high = high, at_tilt(samples, 4.0 * high.tilt)
    while high.tilt > 1.02 * low.tilt + 1e-6:
        middle = at_tilt(samples, math.sqrt(high.tilt * low.tilt) if low.tilt > 0 else 0.1 * high.tilt)
        low, high = (middle, high) if too_low(middle) else (low, middle)
    return high


def window(samples, saddle, exponent):
    """((right, order), (left, order)): beyond these losses the tilted mass is below e^-exponent each."""
    natural = math.sqrt(2 * exponent / saddle.variance)
    right, left = [], []
    for scale in (0.03, 0.1, 0.3, 0.6, 1.0, 1.5):
        s = natural * scale
        right.append(((at_tilt(samples, saddle.tilt + s).log_moment - saddle.log_moment + exponent) / s, s))
        left.append((-(at_tilt(samples, saddle.tilt - s).log_moment - saddle.log_moment + exponent) / s, s))
    return min(right), max(left)


def _mills(z):
    """e^(z^2/2) P(N(0,1) > z)."""
    if z < -30:
        return math.exp(min(0.5 * z * z, 700.0))
    if z < 20:
        return 0.5 * math.exp(0.5 * z * z) * math.erfc(z / math.sqrt(2))
    return (1 - 1 / (z * z)) / (z * math.sqrt(2 * math.pi))
