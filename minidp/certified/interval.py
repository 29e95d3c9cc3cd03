"""One question to the loss distribution, epsilon at a delta or delta at an epsilon: the interval
that a grid of a given fineness answers.
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
LEAST_WIDTH = 2e-5  # ... or absolute, where epsilon is so small that nobody asks for more
DELTA_WIDTH = 0.02  # wanted width of an interval of delta, relative
ROUNDED = 1.2 * RUNG  # of epsilon, at most about, between both ends of a ladder


class Question:
    """Base of the two questions. `room` is the growth in points that must fit into memory before a
    finer grid is tried; an interval within `width` is never wide.

    accountant  the LossDistributionAccountant that composes
    parts       (primitive, count) pairs
    target      the delta, or the epsilon, at which to look
    """

    def __init__(self, accountant, parts, target):
        self.accountant, self.target = accountant, target
        self.parts = on_ladder(parts, dominating=True)
        self.rounded = 0.0 if self.parts is parts else ROUNDED  # of epsilon, by the ladder
        # times the room, beyond which no finer grid is tried
        self.most_points = MAX_POINTS / len(parts)
        if self.rounded:
            self.most_points = self.room * LEAST_POINTS / 2
        self.uppers = {}  # upper ends of epsilon in each direction so far
        known = [] if accountant.quick else _known_below(parts)
        self.known = on_ladder(known, dominating=False)
        self.directions = [REMOVE, ADD]

    def upper(self, grid):
        """The window of masses that dominate the parts."""
        return LossWindow(self.accountant.composed(self.parts, grid), grid)

    def lower(self, grid):
        """The window of masses that the parts known from below dominate."""
        grid = replace(grid, upper=False)
        return LossWindow(self.accountant.composed(self.known, grid), grid)


class EpsilonAt(Question):
    """epsilon at a delta: the larger of both directions, and that one's lower end. Only the
    direction that decides is computed again.
    """

    fineness, room, width = FINENESS, 4, LEAST_WIDTH

    def by(self, accountant):
        """Another accountant's answer."""
        return accountant.epsilon_of(self.parts, self.target)

    def slack(self, bound):
        """The share of the bound that the ladder's rounding takes."""
        return self.rounded

    def grid(self, direction, fineness):
        return self.accountant.choose_grid(self.parts, None, self.target, direction, fineness)

    def finer(self, bound):
        """The factor by which to refine, 1 for enough; the bound is infinitely wide where nothing
        is known below yet.
        """
        wanted = max((WIDTH + self.slack(bound)) * bound.upper, LEAST_WIDTH)
        excess = (bound.upper - bound.lower) / wanted
        # of many kinds of releases a look costs more than a grid that is finer than needed
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
    """delta at an epsilon: the largest of both directions on either side. A direction whose upper
    end is below the other's lower end is not looked at again.
    """

    fineness, room, width = FINENESS / 2, 16, 0.0

    def by(self, accountant):
        """Another accountant's answer."""
        return accountant.delta_of(self.parts, self.target)

    def slack(self, bound):
        """The share of the bound that the ladder's rounding takes: delta is about e^(-epsilon^2 /
        c), so that ln delta changes by 2 ln delta times what ln epsilon does.
        """
        return self.rounded * 2 * max(10.0, -math.log(bound.upper))

    def grid(self, direction, fineness):
        return self.accountant.choose_grid(self.parts, self.target, None, direction, fineness)

    def finer(self, bound):
        """The factor by which to refine, 1 for enough."""
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
    """The releases whose loss is known from below too, not by a dominating pair alone."""
    return [
        # a count above 2^53 was rounded up
        (event, n if n <= 2**53 else math.nextafter(math.nextafter(n, 0), 0))
        for event, n in parts
        if event.pure_epsilon is None
    ]


def between(lower, upper):
    """The Bound with these ends; `lower` may be unknown (None), or above `upper` by roundings."""
    if lower is None:
        return Bound(None, upper, upper)
    lower = min(lower, upper)
    # a third of the way: merging over a step h takes h^2/12 from each loss's variance, spreading
    # adds h^2/6
    return Bound(lower, lower + (upper - lower) / 3 if upper < math.inf else upper, upper)
