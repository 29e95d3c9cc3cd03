"""Round the many different lots of a schedule to few rungs of a ladder, on the safe side.

Rounding happens where an accountant composes; a ledger and its hash keep the events as they were.
"""

import math
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from .events import Event, Gaussian, PoissonSampled

Parts = Collection[tuple[Event, Any]]  # (primitive, count) pairs

FEW = 16  # up to so many different noise multipliers, and shares, are composed without rounding
# about the relative change of epsilon from one rung to the next, for all varied numbers together
RUNG = 0.008
BEND = 0.45  # epsilon changes by (1 + 2 BEND / sigma^2) d ln sigma, about


def on_ladder(parts: Parts, dominating: bool) -> Parts:
    r"""(primitive, count) pairs in which lots with Gaussian noise are rounded to rungs, and equal
    ones merged. Nothing changes if at most FEW noise multipliers and FEW shares occur.

    dominating: round to less noise and a larger share; otherwise to more noise and a smaller share

    Forward
        [F1]  height = ln sigma - b / sigma^2    b = 0.45; rungs of sigma are at the multiples of r
        [F2]  height = ln q    rungs of q likewise; r = 0.008, or half if both vary

    Source
        [F1] [F2]  own derivation: less noise dominates more noise, because noise can be added to a
                   release. A larger share dominates a smaller one, because (1 - q) Q + q P is a
                   mixture of Q and of the same with a larger q, and hockey-stick divergences are
                   convex in the pair
    """
    lots = {event for event, _ in parts if _is_gaussian_lot(event)}
    noises = len({event.noise.noise_multiplier for event in lots}) > FEW
    shares = len({event.share for event in lots}) > FEW
    if not noises and not shares:
        return parts
    merged: dict[Event, Any] = {}
    for event, count in parts:
        rung = _rung(event, noises, shares, dominating) if event in lots else event
        merged[rung] = merged.get(rung, 0) + count
    return list(merged.items())


@lru_cache(2**15)
def _rung(lot, noises, shares, dominating):
    """The lot with its noise, its share or both rounded to rungs."""
    sigma, q, apart = lot.noise.noise_multiplier, lot.share, RUNG / (noises + shares)
    if noises:
        sigma = _noise_rung(sigma, apart, dominating)
    if shares:
        q = _share_rung(q, apart, dominating)
    return PoissonSampled(q, Gaussian(sigma))


def _is_gaussian_lot(event: Event) -> bool:
    """Whether the event can be rounded."""
    return (
        isinstance(event, PoissonSampled)
        and isinstance(event.noise, Gaussian)
        and 1e-2 <= event.noise.noise_multiplier <= 1e6
        and 1e-30 <= event.share < 1
    )


def _noise_rung(sigma, apart, down):
    """The rung at or next below sigma, or at or next above it."""
    height = (math.log(sigma) - BEND / sigma**2) / apart  # [F1]
    rung = math.floor(height) if down else math.ceil(height)
    step = -1 if down else 1
    while step * _sigma_at(rung * apart) < step * sigma:
        rung += step
    return _sigma_at(rung * apart)


@lru_cache(2**14)
def _sigma_at(height):
    """The sigma of a height."""
    from scipy.special import wrightomega

    # u = 1 / sigma^2 solves ln u + 2 b u = -2 height
    return math.sqrt(2 * BEND / float(wrightomega(math.log(2 * BEND) - 2 * height)))


def _share_rung(q, apart, up):
    """The rung at or next above q, at most 1, or at or next below it."""
    height = math.log(q) / apart  # [F2]
    rung, step = (math.ceil(height), 1) if up else (math.floor(height), -1)
    while step * math.exp(rung * apart) < step * q:
        rung += step
    return min(math.exp(rung * apart), 1.0)
