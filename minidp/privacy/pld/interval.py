"""One question to the loss distribution, epsilon at a delta or delta at an epsilon: the interval
that a grid of a given fineness answers.
"""

import math
from dataclasses import replace

from ..bound import Bound
from .losses import LossWindow
from .masses import ADD, REMOVE, largest_loss

FINENESS = 0.08  # grid step over the (tilted) standard deviation of one step's loss
WIDTH = 2e-3  # wanted width of an interval of epsilon, relative ...
LEAST_WIDTH = 2e-5  # ... or absolute, where epsilon is so small that nobody asks for more
DELTA_WIDTH = 0.02  # wanted width of an interval of delta, relative


class Question:
    """What both questions share. `room` is the growth in points that must fit into memory before a
    finer grid is tried; an interval within `width` is never wide.

    accountant  the LossDistributionAccountant that composes
    parts       (primitive, count) pairs
    target      the delta, or the epsilon, at which to look
    """

    def __init__(self, accountant, parts, target):
        self.accountant, self.parts, self.target = accountant, parts, target
        self.uppers = {}  # upper ends of epsilon in each direction so far
        self.known = [] if accountant.quick else _known_below(parts)
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

    def grid(self, direction, fineness):
        return self.accountant.choose_grid(self.parts, None, self.target, direction, fineness)

    def finer(self, bound):
        """The factor by which to refine, 1 for enough; the bound is infinitely wide where nothing
        is known below yet.
        """
        excess = (bound.upper - bound.lower) / max(WIDTH * bound.upper, LEAST_WIDTH)
        return 1.0 if excess <= 1 else max(0.1, 0.9 / math.sqrt(excess))

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

    def grid(self, direction, fineness):
        return self.accountant.choose_grid(self.parts, self.target, None, direction, fineness)

    def finer(self, bound):
        """The factor by which to refine, 1 for enough."""
        return 1.0 if bound.upper - bound.lower <= DELTA_WIDTH * bound.upper else 0.3

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
