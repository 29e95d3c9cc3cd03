"""A question to the loss distribution: epsilon at a delta, or delta at an epsilon. The answer is an
interval from a grid of a given fineness.
"""

import math
from dataclasses import replace

from ..privacy.bound import Bound
from ..privacy.ladder import RUNG, on_ladder
from .grid import LEAST_POINTS, MAX_POINTS
from .losses import LossWindow
from .masses import ADD, REMOVE, largest_loss

FINENESS = 0.08  # grid step over the (tilted) standard deviation of one step's loss
WIDTH = 2e-3  # wanted width of an interval of epsilon, relative ...
LEAST_WIDTH = 2e-5  # ... or absolute, if epsilon is so small that nobody needs more digits
DELTA_WIDTH = 0.02  # wanted width of an interval of delta, relative
ROUNDED = 1.2 * RUNG  # of epsilon, at most about, between both ends of a ladder


class Question:
    """Base of the two questions. room: a finer grid is tried only if so many times more points fit
    into memory. width: an interval within it is never too wide.

    accountant  the LossDistributionAccountant that composes
    parts       (primitive, count) pairs
    target      the given delta or epsilon
    """

    def __init__(self, accountant, parts, target):
        self.accountant, self.target = accountant, target
        self.parts = on_ladder(parts, dominating=True)
        self.rounded = 0.0 if self.parts is parts else ROUNDED  # of epsilon, by the ladder
        # a finer grid is not tried beyond so many times the room
        self.most_points = MAX_POINTS / len(parts)
        if self.rounded:
            self.most_points = self.room * LEAST_POINTS / 2
        self.uppers = {}  # upper ends of epsilon in each direction so far
        known = [] if accountant.quick else _known_below(parts)
        self.known = on_ladder(known, dominating=False)
        self.directions = [REMOVE, ADD]

    def upper(self, grid):
        """The window of composed masses that dominate the parts."""
        return LossWindow(self.accountant.composed(self.parts, grid), grid)

    def lower(self, grid):
        """The window of composed masses that are dominated by the parts known from below."""
        grid = replace(grid, upper=False)
        return LossWindow(self.accountant.composed(self.known, grid), grid)


class EpsilonAt(Question):
    """epsilon at a delta: the larger upper end of both directions, with the lower end of that
    direction. Only the deciding direction is recomputed.
    """

    fineness, room, width = FINENESS, 4, LEAST_WIDTH

    def by(self, accountant):
        """The answer of another accountant."""
        return accountant.epsilon_of(self.parts, self.target)

    def slack(self, bound):
        """The share of the bound that comes from the ladder's rounding."""
        return self.rounded

    def grid(self, direction, fineness):
        return self.accountant.choose_grid(self.parts, None, self.target, direction, fineness)

    def finer(self, bound):
        """The factor by which to refine; 1 if the interval is narrow enough. Without a lower end
        the interval is infinitely wide.
        """
        wanted = max((WIDTH + self.slack(bound)) * bound.upper, LEAST_WIDTH)
        excess = (bound.upper - bound.lower) / wanted
        # with many kinds of releases, another try costs more than a grid that is finer than needed
        most = 0.5 if self.rounded else 1.0
        return 1.0 if excess <= 1 else min(most, max(0.1, 0.9 / math.sqrt(excess)))

    def interval(self, fineness):
        """(Bound on epsilon, points of its grid)."""
        uppers = self.uppers
        for direction in self.directions:
            upper = largest_loss(self.parts, direction)
            if upper > uppers.get(REMOVE, 0.0):
                window = self.upper(self.grid(direction, fineness))
                upper = min(upper, window.epsilon(self.target))
            uppers[direction] = min(uppers.get(direction, math.inf), upper)
        decides = max(uppers, key=uppers.get)
        self.directions = [decides]
        grid = self.grid(decides, fineness)
        if not self.known:
            return between(None, uppers[decides]), grid.points
        window = self.lower(grid)
        return between(window.epsilon(self.target), uppers[decides]), window.grid.points


class DeltaAt(Question):
    """delta at an epsilon: the larger upper end and the larger lower end of both directions. A
    direction whose upper end is below the other's lower end is not computed again.
    """

    fineness, room, width = FINENESS / 2, 16, 0.0

    def by(self, accountant):
        """The answer of another accountant."""
        return accountant.delta_of(self.parts, self.target)

    def slack(self, bound):
        """The share of the bound that comes from the ladder's rounding. delta is about
        e^(-epsilon^2 / c), so ln delta changes by 2 ln delta times the change of ln epsilon.
        """
        return self.rounded * 2 * max(10.0, -math.log(bound.upper))

    def grid(self, direction, fineness):
        return self.accountant.choose_grid(self.parts, self.target, None, direction, fineness)

    def finer(self, bound):
        """The factor by which to refine; 1 if the interval is narrow enough."""
        wanted = DELTA_WIDTH + self.slack(bound)
        return 1.0 if bound.upper - bound.lower <= wanted * bound.upper else 0.3

    def interval(self, fineness):
        """(Bound on delta, points of the deciding grid)."""
        uppers, points, lower = {}, {}, 0.0
        for direction in self.directions:
            if largest_loss(self.parts, direction) <= self.target:
                continue
            grid = self.grid(direction, fineness)
            points[direction] = grid.points
            uppers[direction] = self.upper(grid).delta(self.target)
            if self.known:
                window = self.lower(grid)
                lower = max(lower, window.delta(self.target))
                points[direction] = window.grid.points
        self.directions = [each for each in self.directions if uppers.get(each, 0.0) >= lower]
        if not self.known:
            lower = None
        if not uppers:
            return between(lower, 5e-324), 0
        decides = max(uppers, key=uppers.get)
        return between(lower, uppers[decides]), points[decides]


def _known_below(parts):
    """The releases whose loss is also known from below, and not only by a dominating pair."""
    return [
        # a count above 2^53 was rounded up
        (event, n if n <= 2**53 else math.nextafter(math.nextafter(n, 0), 0))
        for event, n in parts
        if event.pure_epsilon is None
    ]


def between(lower, upper):
    """The Bound with these ends; `lower` may be unknown (None), or above `upper` by rounding."""
    if lower is None:
        return Bound(None, upper, upper)
    lower = min(lower, upper)
    # a third of the way: merging over a step h takes h^2/12 from each loss's variance, spreading
    # adds h^2/6
    return Bound(lower, lower + (upper - lower) / 3 if upper < math.inf else upper, upper)
