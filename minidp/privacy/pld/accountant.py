"""The loss-distribution accountant: a certified interval around the true epsilon, by FFT."""
import math
from dataclasses import dataclass, replace

import numpy as np

from ..accountant import Accountant, Bound
from ..events import Gaussian, Laplace, NeighbouringRelation, PoissonSampled, PureDP
from ..moments import pure_epsilon
from .fourier import ROUNDING, fast_length, spectrum_of, square_sum

SAFETY = 37.0           # what is cut off or wraps around is e^-37 = 1e-16 of what counts
TRUNCATION = 16.0       # noise beyond the tails kept adds at most e^-16 = 1e-7 of delta
FINENESS = 0.08         # grid step over the (tilted) standard deviation of one step's loss
WIDTH = 2e-3            # wanted width of the interval, relative to epsilon, or a fifth of 1e-4 if larger
DELTA_WIDTH = 0.02      # wanted width of an interval of delta, relative to it
MAX_POINTS = 2 ** 21
MAX_KNOTS = 2 ** 17     # of one step, about
MAX_GRIDS = 16          # kept for queries that follow
LEAST_LOG_DELTA = -690.0
NEGLIGIBLE = 60.0


@dataclass(frozen=True)
class LossGrid:
    """Where one direction's losses are put, and the exponential tilt under which they are composed."""

    direction: str
    upper: bool             # dominating masses, or dominated ones
    step: float
    gaps: tuple             # how far apart knots may be: as a share of the loss, and at most
    points: int
    tilt: float
    before: float           # the window starts this far below the mean of the tilted, composed loss
    deviations: float       # how far into the noise's tails the cells go
    right_order: float      # orders that bound what lies beyond the window
    left_order: float


class LossDistributionAccountant(Accountant):
    r"""The distribution of the privacy loss, composed by FFT, both directions, with a bound on every error.

    Bound
        With losses L = ln(dP/dQ) of the sampled Gaussian against its absence, and reversed:
        [M1]  each release as masses on a grid that dominate it (upper) or that it dominates (lower)
        [M2]  tilted by e^(t L), normalised, and folded: composition multiplies the transforms
        [C1]  delta(epsilon) = sum_(l > epsilon) mass (1 - e^(epsilon - l)), epsilon by solving it for delta
        Added to upper and taken from lower: noise beyond the tails kept (as loss infinity, or left out), mass
        that wraps around (Chernoff, at two orders), rounding of masses, transforms, powers and losses. The tilt puts
        the region that decides delta where the tilted mass is, so that these errors are relative to delta:
        delta = 1e-300 keeps its digits. Pure-DP releases enter as randomised response above, and not below.

    Valid for
        q in [0, 1], sigma in [0.01, 1e9]; composition of adaptively chosen queries with noise and sampling fixed ahead.
        The grid is refined until the interval is 0.2 per cent wide or 2e-5, as far as memory allows.

    Fails as
        a wider interval; where the upper end is lost, or sigma is out of range, the upper end is that of the
        Renyi accountant and the lower end unknown

    Source
        [M1]  upper: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022 (arXiv:2207.04380), connecting the dots;
              lower: own derivation: merging outcomes is post-processing, and cells are cut so that each merged
              outcome has a grid point's loss exactly
        [M2]  Koskela, Jalko, Honkela 2020 (arXiv:1906.03049), FFT and heterogeneous composition; tilt: own
              derivation: mass(l) e^(t l) / M(t) composes to the composed mass times e^(t l) / M(t)^T
        [C1]  Sommer, Meiser, Mohammadi 2019, Lemma 10; both directions: Zhu, Dong, Wang 2022, Theorem 11
    """

    name = "loss_distribution"

    def __init__(self, relation=NeighbouringRelation.ADD_REMOVE):
        super().__init__(relation)
        self._grids = {}

    def covers(self, primitive):
        if isinstance(primitive, PoissonSampled):
            primitive = primitive.event
        return isinstance(primitive, (Gaussian, Laplace, PureDP))

    def choose_grid(self, parts, *, epsilon=None, delta=None, direction, fineness=FINENESS):
        # Counts are rounded up to a ladder, so that runs of nearly the same length share their grid and with it
        # the cached curves. Grid and tilt only have to suit the true counts roughly.
        parts = tuple((event, _rung(count)) for event, count in parts)
        key = (parts, epsilon, delta, direction, fineness)
        if key not in self._grids:
            if len(self._grids) >= MAX_GRIDS:
                self._grids.clear()
                self._curves.clear()
            self._grids[key] = self._grid(*key)
        return self._grids[key]

    def _grid(self, parts, epsilon, delta, direction, fineness):
        from . import saddle as saddles
        from .cells import sampled

        steps = sum(count for _, count in parts)
        log_delta = LEAST_LOG_DELTA if delta is None else math.log(delta)
        deviations = _deviations(steps, log_delta)
        samples = [(*sampled(event, direction, deviations), count) for event, count in parts]
        if delta is None:
            saddle = saddles.find(samples, epsilon=epsilon)
            # where delta(epsilon) would underflow, it is bounded from where it does not
            log_delta = min(max(saddle.log_delta, LEAST_LOG_DELTA), 0.0)
            deviations = _deviations(steps, log_delta)
            samples = [(*sampled(event, direction, deviations), count) for event, count in parts]
        if delta is not None or log_delta == LEAST_LOG_DELTA:
            saddle = saddles.find(samples, log_delta=log_delta)
        else:
            saddle = saddles.find(samples, epsilon=epsilon)
        (right, right_order), (left, left_order) = saddles.window(samples, saddle, SAFETY)
        step = fineness * math.sqrt(saddle.variance / steps)
        span = max(losses[-1] - losses[0] for losses, _, _ in samples)
        step = max(step, 1.01 * (right - left) / MAX_POINTS, abs(span) / MAX_POINTS)
        points = fast_length((right - left) / step + 4)
        before = saddle.centre - left + 0.5 * (points * step - (right - left))
        gaps = (fineness / 4, max(3 * fineness / max(saddle.tilt, 1e-9), abs(span) / MAX_KNOTS))
        return LossGrid(direction, True, step, gaps, points, min(saddle.tilt, 300.0 / step), before,
                        deviations, right_order, left_order)

    def cost_curve(self, event, grid):
        from .cells import masses_of
        from .kernels import tilted_masses

        masses = masses_of(event, grid.direction, grid.upper, grid.step, grid.gaps, grid.deviations)  # [M1]
        losses = masses.losses(grid.step)
        mass, shift = tilted_masses(masses.log_mass, losses, grid.tilt)                      # [M2]
        spectrum, error = spectrum_of(mass, masses.knots, grid.points)
        size = np.maximum(np.abs(spectrum), 1e-300)
        logs = np.log(size) + 1j * np.angle(spectrum)
        relative = error / (size + error) + 6 * ROUNDING * (1 + np.abs(logs))
        rounding = 1e-13 + 4 * ROUNDING * (grid.deviations ** 2 + grid.tilt * np.max(np.abs(losses)) + abs(shift))
        summary = [shift, -math.log1p(-math.exp(masses.infinite)), masses.offset, rounding, float(np.sum(mass * losses)),
                   _log_moment(mass, losses, grid.right_order),
                   _log_moment(mass, losses, -grid.left_order)]
        return np.concatenate([logs, np.log(size + error) + 1j * relative, summary])

    def _cached_cost(self, event, grid):
        # long curves are few and large: keep the short ones only
        return super()._cached_cost(event, grid) if grid.points <= 2 ** 16 else self.cost_curve(event, grid)

    def epsilon_of(self, parts, delta):
        if _out_of_range(parts):
            upper = self._fallback().epsilon_of(parts, delta).upper
            return Bound(None, upper, upper)
        if math.fsum(count * getattr(event, "sampling_probability", 1.0) for event, count in parts) <= delta:
            return Bound(0.0, 0.0, 0.0)         # delta alone covers that the example is in any lot
        best, fineness = None, FINENESS
        for _ in range(5):
            bound, points = self._interval(parts, delta, fineness)
            best = _tighter(best, bound)
            if best.lower is None or best.upper == math.inf:
                break
            excess = (best.upper - best.lower) / max(WIDTH * best.upper, 2e-5)
            if excess <= 1 or 4 * points > MAX_POINTS:
                break
            fineness *= max(0.1, 0.9 / math.sqrt(excess))
        if best.upper == math.inf:
            upper = self._fallback().epsilon_of(parts, delta).upper
            best = Bound(best.lower, upper, upper)
        return best

    def _fallback(self):
        from ..renyi import RenyiAccountant

        return RenyiAccountant(self.relation)

    def _interval(self, parts, delta, fineness):
        from .cells import ADD, REMOVE, largest_loss

        grids, uppers = [], []
        for direction in (REMOVE, ADD):
            if uppers and largest_loss(parts, direction) <= uppers[0]:
                continue
            grids.append(self.choose_grid(parts, delta=delta, direction=direction, fineness=fineness))
            uppers.append(self.to_epsilon(self._compose(parts, grids[-1]), grids[-1], delta).upper)
        upper = max(uppers)
        known = [(event, count) for event, count in parts if pure_epsilon(event) is None]
        grid = replace(grids[uppers.index(upper)], upper=False)
        if not known:
            return Bound(None, upper, upper), grid.points
        lower = min(self.to_epsilon(self._compose(known, grid), grid, delta).lower, upper)
        return Bound(lower, _between(lower, upper), upper), grid.points

    def _read(self, total, grid):
        half = grid.points // 2 + 1
        logs, sizes, summary = total[:half], total[half:2 * half], total[2 * half:].real
        shift, infinite, offset, rounding, centre, log_right, log_left = summary
        infinite = -math.expm1(-infinite) if grid.upper else 0.0
        first = math.ceil((centre - grid.before - offset) / grid.step)
        counts = np.flatnonzero(sizes.real > -NEGLIGIBLE)         # the rest of the spectrum is e^-60 at most
        spectrum = np.zeros(half, np.complex128)
        spectrum[counts] = np.exp(logs[counts])
        mass = np.roll(np.fft.irfft(spectrum, grid.points), -(first % grid.points))
        left = offset + first * grid.step
        right = left + grid.points * grid.step
        beyond_right = math.exp(min(log_right - grid.right_order * right, 0.0))
        beyond_left = math.exp(min(log_left + grid.left_order * left, 0.0))
        errors = np.exp(sizes[counts].real) * np.minimum(sizes[counts].imag, 1.0)
        norm = math.sqrt(2 * square_sum(errors) / grid.points) + math.exp(-NEGLIGIBLE)
        norm += 8 * ROUNDING * math.log2(grid.points) * math.sqrt(square_sum(mass))
        weighted = norm * math.sqrt(_weightsquare_sum(grid))
        log_factor = shift - grid.tilt * centre
        if grid.upper:
            plain = beyond_right * math.exp(min(-grid.tilt * (right - centre), 700.0))
        else:
            weighted, plain = weighted + beyond_left + beyond_right, 0.0
        return mass, left, centre, log_factor, infinite, rounding, weighted, plain

    def to_epsilon(self, total, grid, delta):
        """One direction's and one side's epsilon: `upper` or `lower` is certain, the other side open."""
        from .kernels import crossing

        mass, left, centre, log_factor, infinite, rounding, weighted, plain = self._read(total, grid)
        if infinite >= delta:
            return Bound(0.0, math.inf, math.inf)
        target = _exp(math.log(delta - infinite) - log_factor)
        epsilon = float(crossing(mass, grid.step, left, grid.tilt, centre,                   # [C1]
                                 math.exp(rounding if grid.upper else -rounding), weighted, plain, target,
                                 grid.upper))
        pad = 1e-14 * (1 + abs(epsilon)) + 0.01 * rounding
        if grid.upper:
            return Bound(0.0, epsilon, max(0.0, epsilon + pad))
        return Bound(max(0.0, epsilon - pad), epsilon, math.inf)

    def delta_of(self, parts, epsilon):
        if _out_of_range(parts):
            upper = self._fallback().delta_of(parts, epsilon).upper
            return Bound(None, upper, upper)
        best, fineness = None, FINENESS / 2
        for _ in range(5):
            bound, points = self._delta_interval(parts, epsilon, fineness)
            best = _tighter(best, bound)
            if best.lower is None or best.upper - best.lower <= DELTA_WIDTH * best.upper or 16 * points > MAX_POINTS:
                break
            fineness *= 0.3
        return best

    def _delta_interval(self, parts, epsilon, fineness):
        from .cells import ADD, REMOVE, largest_loss

        uppers, lowers, points = [5e-324], [0.0], 0
        known = [(event, count) for event, count in parts if pure_epsilon(event) is None]
        for direction in (REMOVE, ADD):
            if largest_loss(parts, direction) <= epsilon:
                continue
            grid = self.choose_grid(parts, epsilon=epsilon, direction=direction, fineness=fineness)
            points = max(points, grid.points)
            uppers.append(self.to_delta(self._compose(parts, grid), grid, epsilon).upper)
            if known:
                grid = replace(grid, upper=False)
                lowers.append(self.to_delta(self._compose(known, grid), grid, epsilon).lower)
        upper = max(uppers)
        if not known:
            return Bound(None, upper, upper), points
        lower = min(max(lowers), upper)
        return Bound(lower, _between(lower, upper), upper), points

    def to_delta(self, total, grid, epsilon):
        """One direction's and one side's delta, as `to_epsilon`."""
        from .kernels import delta_at

        mass, left, centre, log_factor, infinite, rounding, weighted, plain = self._read(total, grid)
        pad = 1e-14 * (1 + epsilon) + 0.01 * rounding
        epsilon = max(0.0, epsilon - pad) if grid.upper else epsilon + pad
        error = weighted * _exp(-grid.tilt * (epsilon - centre)) + plain
        value = delta_at(mass, grid.step, left, grid.tilt, centre, epsilon)
        if not grid.upper:
            delta = (value * math.exp(-rounding) - error) * _exp(log_factor)
            return Bound(max(0.0, delta), delta, 1.0)
        delta = (value * math.exp(rounding) + error) * _exp(log_factor) + infinite
        return Bound(0.0, delta, min(1.0, max(delta, 5e-324)))


def _rung(count):
    return count if count < 16 else math.ceil(1.06 ** math.ceil(math.log(count) / math.log(1.06) - 1e-9))


def _deviations(steps, log_delta):
    """How many standard deviations of noise to keep, so that what is cut off is e^-TRUNCATION of delta."""
    return math.sqrt(2 * (TRUNCATION + math.log(steps) - log_delta))


def _exp(exponent):
    return math.exp(min(exponent, 700.0))


def _weightsquare_sum(grid):
    """At least the sum over j = 1 .. points of (e^(-tilt h j) (1 - e^(-h j)))^2, by geometric series."""
    def series(rate):
        return grid.points if rate == 0 else math.expm1(-rate * grid.points) / math.expm1(-rate) * math.exp(-rate)

    first = series(2 * grid.tilt * grid.step)
    sum_of_three = first - 2 * series((2 * grid.tilt + 1) * grid.step) + series((2 * grid.tilt + 2) * grid.step)
    return max(sum_of_three, 0.0) + 1e-13 * first


def _out_of_range(parts):
    """Whether noise is so small that a step's losses span too many grid points, or so large that they vanish."""
    for event, _ in parts:
        pure = pure_epsilon(event)
        sigma = 1 / pure if pure else getattr(event, "event", event).noise_multiplier
        if not (1e-4 if pure else 0.01) <= sigma <= 1e9:
            return True
    return False


def _tighter(best, bound):
    """The intersection of two intervals that both hold the truth."""
    if best is None or bound.lower is None:
        return bound
    lower, upper = max(best.lower, bound.lower), min(best.upper, bound.upper)
    return Bound(lower, _between(lower, upper), upper)


def _between(lower, upper):
    # merging over a step h takes h^2/12 from each loss's variance, spreading adds h^2/6
    return lower + (upper - lower) / 3 if upper < math.inf else upper


def _log_moment(mass, losses, order):
    """ln of the sum of mass * e^(order * loss)."""
    with np.errstate(divide="ignore"):
        logs = np.log(mass) + order * losses
    largest = np.max(logs)
    return largest + math.log(float(np.sum(np.exp(logs - largest))))
