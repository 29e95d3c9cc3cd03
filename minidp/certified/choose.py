"""When the loss-distribution accountant takes another accountant's upper end, which one, and why.

    when                             to whom                         why
    all is unsampled Gaussian noise  the Gaussian accountant         its curve is exact
    the interval stays wide, or no   the lowest of the Renyi, basic  each is a bound, whatever the
    grid serves                      and advanced accountants        noise and the counts

The rules of all bounds are in `Accountant`: pure epsilons, exposure, rare releases.
"""

import math

import numpy as np

from ..privacy.bound import Bound
from ..privacy.events import Gaussian
from ..privacy.events.noise import combined_noise_multiplier
from ..privacy.renyi import RenyiAccountant
from .composition import AdvancedAccountant, BasicAccountant
from .gaussian import GaussianAccountant
from .interval import between

# if an interval stays wider than this share, other accountants' upper ends are tried
WIDE = 0.02
REFINEMENTS = 5  # most choices of a grid


def answer(question, accountant, parts, target):
    """The Bound for (primitive, count) pairs, by a class of Question."""
    if all(isinstance(event, Gaussian) for event, _ in parts):
        return question(accountant, parts, target).by(GaussianAccountant(accountant.relation))
    asked = question(accountant, merged(parts), target)
    best, settled = refined(asked)
    wide = (WIDE + asked.slack(best)) * best.upper + asked.width
    narrow = best.lower is not None and best.upper - best.lower <= wide
    if best.upper < math.inf and (settled or narrow):
        return best
    others = (RenyiAccountant, BasicAccountant, AdvancedAccountant)
    upper, name = min((asked.by(other(accountant.relation)).upper, other.name) for other in others)
    return Bound(best.lower, upper, upper, fallback=name) if upper < best.upper else best


def refined(question):
    """(the intersection of the intervals on ever finer grids, whether it is narrow enough)."""
    best, settled, fineness = Bound(None, math.inf, math.inf), False, question.fineness
    for _ in range(0 if _out_of_range(question.parts) else REFINEMENTS):
        try:
            with np.errstate(all="ignore"):  # infinity is a valid answer
                bound, points = question.interval(fineness)
        except (ArithmeticError, ValueError):  # NaN, or infinity where that is no answer
            break
        gain = best.upper - bound.upper
        lowers = [each.lower for each in (best, bound) if each.lower is not None]
        best = between(max(lowers, default=None), min(best.upper, bound.upper))
        settled = question.accountant.quick
        if best.upper == math.inf or settled:
            break
        # without a lower end, the last gain shows how much the upper end may still improve
        known = best if best.lower is not None else between(best.upper - gain, best.upper)
        factor = question.finer(known)
        settled = factor == 1.0
        if settled or question.room * points > question.most_points:
            break
        fineness *= factor
    return best, settled


def merged(parts):
    """The (primitive, count) pairs with all unsampled Gaussians merged into one, which is the same
    composition, rounded up.
    """
    gaussians = [
        (event.noise_multiplier, count) for event, count in parts if isinstance(event, Gaussian)
    ]
    noise = combined_noise_multiplier(gaussians) * (1 - 1e-15)
    # a small noise covers more of a grid than many releases
    if sum(count for _, count in gaussians) <= 1 or noise < 0.1:
        return parts
    return [*(part for part in parts if not isinstance(part[0], Gaussian)), (Gaussian(noise), 1)]


def _out_of_range(parts):
    """True if noise is so small that a step's losses cover too many grid points, or so large that
    they vanish.
    """
    for event, _ in parts:
        pure = event.pure_epsilon
        sigma = 1 / pure if pure else event.noise.noise_multiplier
        if not (1e-4 if pure else 0.01) <= sigma <= 1e9:
            return True
    return False
