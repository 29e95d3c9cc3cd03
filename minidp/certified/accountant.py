"""The loss-distribution accountant: a certified interval around the true epsilon, by FFT."""

import math
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ..host.threads import map_parallel
from ..privacy.accountant import Accountant
from ..privacy.events import NeighbouringRelation
from ..privacy.ladder import FEW
from .choose import answer
from .fourier import ROUNDING, spectrum_of
from .grid import grid_for
from .interval import DeltaAt, EpsilonAt
from .loss_kernels import tilted_masses
from .losses import ComposedLoss, log_moment
from .masses import masses_of

CACHED_POINTS = 2**16  # costs on longer grids are few and large, and not kept
MAX_GRIDS = 16  # kept for queries that follow
MAX_SUMS = 12  # likewise, of many kinds of releases
AT_ONCE = 32  # transforms in memory


class LossDistributionAccountant(Accountant):
    r"""Composes the distribution of the privacy loss by FFT, in both directions, with a bound on
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
        [M2]  m_l = p_l e^(t L_l) / sum_k p_k e^(t L_k)    masses p, tilted and normalised, are
              folded: composition multiplies the transforms
        delta(epsilon) and epsilon(delta) of the composed masses: `delta_at` and `crossing` of
        `loss_kernels`. Added to upper and taken from lower: noise beyond the tails kept (as loss
        infinity, or left out), mass that wraps around (Chernoff, at two orders), rounding of
        masses, transforms, powers and losses. The tilt makes these errors relative to delta: 1e-300
        keeps its digits. Pure-DP releases enter above only, as randomised response. Unsampled
        Gaussians compose to one, whose curve is exact.

    Valid for
        q in [0, 1], sigma in [0.01, 1e9]; composition of adaptively chosen queries with noise and
        sampling fixed ahead. The grid is refined until the interval is 0.2 per cent wide or 2e-5,
        as far as memory allows.

    Fails as
        a wider interval, with the upper end of the Renyi, basic or advanced accountant if that is
        lower (`Bound.fallback` names it); if sigma is out of range, or numbers leave float64, that
        upper end with an unknown lower end

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
    short = "pld"
    note = "certified interval by FFT"
    one_sided = False

    def __init__(
        self,
        relation: NeighbouringRelation = NeighbouringRelation.ADD_REMOVE,
        *,
        quick: bool = False,
    ):
        super().__init__(relation)
        self.quick = quick  # only upper ends, from the first grid
        self._grids: dict[Any, Any] = {}
        self._sums: dict[Any, Any] = {}  # {grid: ({event: count}, their ComposedLoss)}
        self._tried: set[Any] = set()

    def choose_grid(self, parts, epsilon, delta, direction, fineness):
        """The upper LossGrid for one target: epsilon, or delta; the other is None."""
        # counts are rounded up to a ladder, so that runs of nearly the same length share their grid
        # and cached costs
        parts = tuple((event, _rung(count)) for event, count in parts)
        key = (parts, epsilon, delta, direction, fineness)
        if key not in self._grids:
            if len(self._grids) >= MAX_GRIDS:
                self._grids.clear()
                self._costs.clear()
            self._grids[key] = self._kept(grid_for(*key))
        return self._grids[key]

    def _kept(self, grid):
        """A grid with stored sums that serves this question, too, and was not yet tried for it;
        otherwise `grid`.
        """
        for kept in reversed(self._sums):
            if kept not in self._tried and kept.covers(grid):
                self._tried.add(kept)
                return kept
        return grid

    def composed(self, parts, grid):
        """The sum of the parts' losses on the grid. Sums of many parts are stored, so that a longer
        run adds only its new parts.
        """
        if len(parts) <= FEW:
            return super().composed(parts, grid)
        counted, total = self._sums.pop(grid, ({}, None))
        new = {event: count - counted.get(event, 0) for event, count in parts}
        if not counted.keys() <= new.keys() or min(new.values()) < 0:
            new, total = dict(parts), None
        added = [(event, count) for event, count in new.items() if count]
        for start in range(0, len(added), AT_ONCE):
            some = added[start : start + AT_ONCE]
            costs = map_parallel(lambda part: self.cost_curve(part[0], grid) * part[1], some)
            total = reduce(add, costs if total is None else [total, *costs])
        while len(self._sums) >= MAX_SUMS:
            del self._sums[next(iter(self._sums))]
        self._sums[grid] = dict(parts), total
        return total

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
        )

    def cached_cost(self, event, grid):
        if grid.points > CACHED_POINTS:
            return self.cost_curve(event, grid)
        return super().cached_cost(event, grid)

    def epsilon_of(self, parts, delta):
        self._tried.clear()
        return answer(EpsilonAt, self, parts, delta)

    def delta_of(self, parts, epsilon):
        self._tried.clear()
        return answer(DeltaAt, self, parts, epsilon)


def _rung(count):
    if count < 16:
        return count
    return math.ceil(1.06 ** math.ceil(math.log(count) / math.log(1.06) - 1e-9))
