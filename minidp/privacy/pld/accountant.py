"""The loss-distribution accountant: a certified interval around the true epsilon, by FFT."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..accountant import Accountant, Bound
from ..composition import AdvancedAccountant, BasicAccountant
from ..events import (
    BallsInBins,
    FixedSizeSampled,
    Gaussian,
    NeighbouringRelation,
    combined_noise_multiplier,
)
from ..gaussian import GaussianAccountant
from ..renyi import RenyiAccountant
from .balls import in_range
from .cells import ADD, REMOVE, largest_loss, masses_of
from .fourier import ROUNDING, spectrum_of
from .kernels import tilted_masses
from .losses import ComposedLoss, LossWindow, log_moment
from .saddle import MAX_POINTS, grid_for

FINENESS = 0.08  # grid step over the (tilted) standard deviation of one step's loss
WIDTH = 2e-3  # wanted width of an interval of epsilon, relative ...
LEAST_WIDTH = 2e-5  # ... or absolute, where epsilon is so small that nobody asks for more
DELTA_WIDTH = 0.02  # wanted width of an interval of delta, relative
# where an interval stays wider than this share, other accountants' upper ends are asked for
WIDE = 0.02
REFINEMENTS = 5  # times that the grid is chosen, at most
CACHED_POINTS = 2**16  # costs on longer grids are few and large, and not kept
MAX_GRIDS = 16  # kept for queries that follow


class LossDistributionAccountant(Accountant):
    r"""The distribution of the privacy loss, composed by FFT, both directions, with a bound on
    every error.

    >>> from minidp.privacy import Gaussian, Ledger, PoissonSampled
    >>> ledger = Ledger()
    >>> ledger.append(PoissonSampled(0.01, Gaussian(4.0)), 10_000)
    >>> bound = LossDistributionAccountant().epsilon(ledger, 1e-5)
    >>> print(f"{bound.lower:.4f} to {bound.upper:.4f}")
    0.9466 to 0.9474

    Bound
        With losses L = ln(dP/dQ) of the sampled Gaussian against its absence, and reversed:
        [M1]  each release as masses on a grid that dominate it (upper) or that it dominates (lower)
        [M2]  tilted by e^(t L), normalised, and folded: composition multiplies the transforms
        delta(epsilon) and epsilon(delta) of the composed masses: `kernels.delta_at` and
        `kernels.crossing`. Added to upper and taken from lower: noise beyond the tails kept (as
        loss infinity, or left out), mass that wraps around (Chernoff, at two orders), rounding of
        masses, transforms, powers and losses. The tilt makes these errors relative to delta: 1e-300
        keeps its digits. Pure-DP releases enter above only, as randomised response, and so do lots
        of fixed size (`variants`). Unsampled Gaussians compose to one, whose curve is exact.

    Valid for
        q in [0, 1], sigma in [0.01, 1e9]; composition of adaptively chosen queries with noise and
        sampling fixed ahead. The grid is refined until the interval is 0.2 per cent wide or 2e-5,
        as far as memory allows.

    Fails as
        a wider interval, with the upper end of the Renyi, basic or advanced accountant if that is
        lower, which `Bound.fallback` names; where sigma is out of range, or numbers leave float64,
        that one with the lower end unknown

    Source
        [M1]  upper: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022 (arXiv:2207.04380),
              connecting the dots; lower: own derivation: merging outcomes is post-processing, and
              cells are cut so that each merged outcome has a grid point's loss exactly
        [M2]  Koskela, Jalko, Honkela 2020 (arXiv:1906.03049), FFT and heterogeneous composition;
              tilt: own derivation: mass(l) e^(t l) / M(t) composes to the composed mass times e^(t
              l) / M(t)^T
        both directions: Zhu, Dong, Wang 2022, Theorem 11
    """

    name = "loss_distribution"

    def __init__(
        self,
        relation: NeighbouringRelation = NeighbouringRelation.ADD_REMOVE,
        *,
        quick: bool = False,
    ):
        super().__init__(relation)
        self.quick = quick  # upper ends alone, from the first grid
        self._grids: dict[Any, Any] = {}

    def choose_grid(self, parts, *, epsilon=None, delta=None, direction, fineness=FINENESS):
        # counts are rounded up to a ladder, so that runs of nearly the same length share their grid
        # and cached costs
        parts = tuple((event, _rung(count)) for event, count in parts)
        key = (parts, epsilon, delta, direction, fineness)
        if key not in self._grids:
            if len(self._grids) >= MAX_GRIDS:
                self._grids.clear()
                self._costs.clear()
            self._grids[key] = grid_for(*key)
        return self._grids[key]

    def cost_curve(self, event, grid):
        """The event's ComposedLoss on the grid."""
        masses = masses_of(
            event, grid.direction, grid.upper, grid.step, grid.gaps, grid.deviations
        )  # [M1]
        losses = masses.losses(grid.step)
        mass, log_total = tilted_masses(masses.log_mass, losses, grid.tilt)  # [M2]
        transform, error = spectrum_of(mass, masses.knots, grid.points)
        size = np.maximum(np.abs(transform), 1e-300)
        spectrum = np.array(
            [np.log(size), np.angle(transform), np.log(size + error), error / (size + error)]
        )
        spectrum[3] += 6 * ROUNDING * (1 + np.abs(spectrum[0] + 1j * spectrum[1]))
        return ComposedLoss(
            spectrum=spectrum,
            log_total=log_total,
            log_finite=-math.log1p(-math.exp(masses.infinite)),
            offset=masses.offset,
            rounding=1e-13
            + 4
            * ROUNDING
            * (grid.deviations**2 + grid.tilt * np.max(np.abs(losses)) + abs(log_total)),
            mean=float(np.sum(mass * losses)),
            log_right=log_moment(mass, losses, grid.right_order),
            log_left=log_moment(mass, losses, -grid.left_order),
            widened=float(masses.widened),
        )

    def _cached_cost(self, event, grid):
        return (
            super()._cached_cost(event, grid)
            if grid.points <= CACHED_POINTS
            else self.cost_curve(event, grid)
        )

    def epsilon_of(self, parts, delta):
        return self._unbinned(parts, self._epsilon_of, delta)

    def delta_of(self, parts, epsilon):
        return self._unbinned(parts, self._delta_of, epsilon)

    def _unbinned(self, parts, read, target):
        """read(parts, target), at most what it is with each epoch of BallsInBins an unsampled
        release, by joint convexity.
        """
        plain: dict[Any, int] = {}
        for event, n in parts:
            noise = event.event if isinstance(event, BallsInBins) else event
            plain[noise] = plain.get(noise, 0) + n
        bins = [event for event, _ in parts if isinstance(event, BallsInBins)]
        if not bins:
            return read(parts, target)
        cap = read(sorted(plain.items(), key=repr), target).upper
        bound = Bound(None, math.inf, math.inf)
        if all(in_range(event.bins, event.event.noise_multiplier) for event in bins):
            bound = read(parts, target)
        return (
            bound
            if bound.upper <= cap
            else Bound(bound.lower, cap, cap, fallback="the same without sampling")
        )

    def _epsilon_of(self, parts, delta):
        def finer(bound):  # infinitely wide where nothing is known below yet
            excess = (bound.upper - bound.lower) / max(WIDTH * bound.upper, LEAST_WIDTH)
            return 1.0 if excess <= 1 else max(0.1, 0.9 / math.sqrt(excess))

        if all(isinstance(event, Gaussian) for event, _ in parts):
            return GaussianAccountant(self.relation).epsilon_of(parts, delta)  # exact
        parts, uppers = merged(parts), {}
        return self._narrowed(
            parts,
            lambda fineness: self._epsilon_interval(parts, delta, fineness, uppers),
            FINENESS,
            finer,
            4,
            LEAST_WIDTH,
            lambda other, parts: other.epsilon_of(parts, delta).upper,
        )

    def _delta_of(self, parts, epsilon):
        def finer(bound):
            return 1.0 if bound.upper - bound.lower <= DELTA_WIDTH * bound.upper else 0.3

        if all(isinstance(event, Gaussian) for event, _ in parts):
            return GaussianAccountant(self.relation).delta_of(parts, epsilon)
        parts, directions = merged(parts), list(self._directions())
        return self._narrowed(
            parts,
            lambda fineness: self._delta_interval(parts, epsilon, fineness, directions),
            FINENESS / 2,
            finer,
            16,
            0.0,
            lambda other, parts: other.delta_of(parts, epsilon).upper,
        )

    def _narrowed(self, parts, interval, fineness, finer, room, width, fallback):
        """The intersection of interval(fineness), (Bound, points), over ever finer grids.

        finer(bound) is the factor by which to refine, 1 for enough; `room` the growth in points
        that must fit into memory; fallback(other, parts) another accountant's upper end, where no
        grid serves, or the interval stays much wider than `width`.
        """
        best, settled = Bound(None, math.inf, math.inf), False
        for _ in range(0 if _out_of_range(parts) else REFINEMENTS):
            try:
                with np.errstate(all="ignore"):  # infinity is an answer
                    bound, points = interval(fineness)
            except (ArithmeticError, ValueError):  # a NaN, or an infinity where none is an answer
                break
            gain, best = best.upper - bound.upper, _tighter(best, bound)
            if best.upper == math.inf or (settled := self.quick):
                break
            # without a lower end the last gain says how far the upper one may still be off
            factor = finer(
                best if best.lower is not None else _interval(best.upper - gain, best.upper)
            )
            if (settled := factor == 1.0) or room * points * len(parts) > MAX_POINTS:
                break
            fineness *= factor
        narrow = best.lower is not None and best.upper - best.lower <= WIDE * best.upper + width
        if best.upper < math.inf and (settled or narrow):
            return best
        known = [(getattr(event, "dominating", event), count) for event, count in parts]
        upper, name = min(
            (fallback(other, known), other.name)
            for other in (
                RenyiAccountant(self.relation),
                BasicAccountant(self.relation),
                AdvancedAccountant(self.relation),
            )
        )
        return Bound(best.lower, upper, upper, fallback=name) if upper < best.upper else best

    def _directions(self):
        # that one is symmetric
        return (REMOVE,) if self.relation is NeighbouringRelation.REPLACE_ONE else (REMOVE, ADD)

    def _epsilon_interval(self, parts, delta, fineness, uppers):
        """(Bound on epsilon, points of its grid): the larger of both directions, and that one's
        lower end.

        uppers: {direction: its upper end so far}; only where this decides is it computed again.
        """

        def grid_of(direction):
            return self.choose_grid(parts, delta=delta, direction=direction, fineness=fineness)

        for direction in [max(uppers, key=uppers.get)] if uppers else self._directions():
            upper = largest_loss(parts, direction)
            if upper > uppers.get(REMOVE, 0.0):
                grid = grid_of(direction)
                upper = min(upper, LossWindow(self._compose(parts, grid), grid).epsilon(delta))
            uppers[direction] = min(uppers.get(direction, math.inf), upper)
        upper = max(uppers.values())
        grid = replace(grid_of(max(uppers, key=uppers.get)), upper=False)
        known = [] if self.quick else _known_below(parts)
        if not known:
            return _interval(None, upper), grid.points
        window = LossWindow(self._compose(known, grid), grid)
        return _interval(window.epsilon(delta), upper), _points(window)

    def _delta_interval(self, parts, epsilon, fineness, directions):
        """(Bound on delta, points of the deciding grid): the largest of both directions on either
        side.

        directions: those that may decide. A direction whose upper end is below the other's lower
        end is removed.
        """
        uppers, lowers, points = {}, {}, {}
        known = [] if self.quick else _known_below(parts)
        for direction in directions:
            if largest_loss(parts, direction) <= epsilon:
                continue
            grid = self.choose_grid(parts, epsilon=epsilon, direction=direction, fineness=fineness)
            points[direction] = grid.points
            uppers[direction] = LossWindow(self._compose(parts, grid), grid).delta(epsilon)
            if known:
                grid = replace(grid, upper=False)
                window = LossWindow(self._compose(known, grid), grid)
                lowers[direction] = window.delta(epsilon)
                points[direction] = _points(window)
        lower = max(lowers.values(), default=0.0)
        directions[:] = [each for each in directions if uppers.get(each, 0.0) >= lower]
        upper = max(uppers.values(), default=5e-324)
        return _interval(lower if known else None, upper), points[
            max(uppers, key=uppers.get)
        ] if uppers else 0


def _points(window):
    """The points of a window's grid; as many as are allowed where a finer grid would gain
    little.
    """
    return MAX_POINTS if window.widened else window.grid.points


def _rung(count):
    return (
        count
        if count < 16
        else math.ceil(1.06 ** math.ceil(math.log(count) / math.log(1.06) - 1e-9))
    )


def merged(parts):
    """The (primitive, count) pairs with all unsampled Gaussians as one, which composes to the same,
    rounded up.
    """
    gaussians = [
        (event.noise_multiplier, count) for event, count in parts if isinstance(event, Gaussian)
    ]
    noise = combined_noise_multiplier(gaussians) * (1 - 1e-15)
    if (
        sum(count for _, count in gaussians) <= 1 or noise < 0.1
    ):  # small noise spans more of a grid than many releases
        return parts
    return [*(part for part in parts if not isinstance(part[0], Gaussian)), (Gaussian(noise), 1)]


def _known_below(parts):
    """The releases whose loss is known from below too, not by a dominating pair alone."""
    known = []
    for event, count in parts:
        if event.pure_epsilon is None and not isinstance(event, FixedSizeSampled):
            # a count above 2^53 was rounded up
            below = count if count <= 2**53 else math.nextafter(math.nextafter(count, 0), 0)
            known.append((event, below))
    return known


def _out_of_range(parts):
    """Whether noise is so small that a step's losses span too many grid points, or so large that
    they vanish.
    """
    for event, _ in parts:
        pure = event.pure_epsilon
        sigma = 1 / pure if pure else event.noise.noise_multiplier
        if not (1e-4 if pure else 0.01) <= sigma <= 1e9:
            return True
    return False


def _interval(lower, upper):
    """The Bound with these ends; `lower` may be unknown (None), or above `upper` by roundings."""
    if lower is None:
        return Bound(None, upper, upper)
    lower = min(lower, upper)
    # a third of the way: merging over a step h takes h^2/12 from each loss's variance, spreading
    # adds h^2/6
    return Bound(lower, lower + (upper - lower) / 3 if upper < math.inf else upper, upper)


def _tighter(best, bound):
    """The intersection of two intervals that both hold the truth."""
    lowers = [each.lower for each in (best, bound) if each.lower is not None]
    return _interval(max(lowers, default=None), min(best.upper, bound.upper))
