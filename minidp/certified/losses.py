"""The composed privacy loss: sums over releases that give epsilon or delta, with every error
counted.
"""

import math
from dataclasses import dataclass, fields

import numpy as np

from ..errors import NumericalBoundError
from .fourier import ROUNDING, square_sum
from .loss_kernels import crossing, delta_at

MOST_EXPONENT = 700.0  # e^709 is the largest that float64 holds
# parts of the spectrum below e^-60 of the whole are dropped, and counted as an error of e^-60
NEGLIGIBLE = 60.0


@dataclass(frozen=True)
class ComposedLoss:
    """The tilted privacy loss of some releases, in logarithms. + composes two, and * count repeats
    one.

    `spectrum` has four rows on the Fourier transform of the tilted, normalised masses, each (K,)
    with K = points // 2 + 1: ln |transform|, its phase, ln(|transform| + its error), and the error
    as a share of that sum.
    """

    spectrum: np.ndarray  # (4, K)
    log_total: float  # ln of the sum of the tilted masses before they were normalised
    log_finite: float  # -ln of the probability that the loss is finite
    offset: float  # the loss of knot 0
    rounding: float  # of every mass, relative
    mean: float  # of the loss, under the tilt
    log_right: (
        float  # ln of the tilted moment e^(right_order * loss): bounds what lies far to the right
    )
    log_left: float  # ln of the tilted moment e^(-left_order * loss), for the left

    def __add__(self, other):
        return ComposedLoss(
            *(mine + theirs for mine, theirs in zip(self._values(), other._values()))
        )

    def __mul__(self, count):
        return ComposedLoss(*(value * count for value in self._values()))

    def _values(self):
        return [getattr(self, field.name) for field in fields(self)]


class LossWindow:
    """The masses of a composed loss on the window of its grid, with their errors.

    Knot k has the loss left + k * step and the composed mass e^log_factor * mass[k] * e^(-tilt
    (loss - centre)). Sums of masses weighted as in delta(epsilon) err by at most `weighted_error` *
    e^(-tilt (epsilon - centre)) + `plain_error`, besides a relative `rounding`; the loss is
    infinite with probability `infinite`.
    """

    def __init__(self, loss, grid):
        self.grid, self.centre, self.rounding = grid, loss.mean, loss.rounding
        self.infinite = -math.expm1(-loss.log_finite) if grid.upper else 0.0
        self.log_factor = loss.log_total - grid.tilt * loss.mean
        log_modulus, phase, log_size, relative_error = loss.spectrum
        kept = np.flatnonzero(log_size > -NEGLIGIBLE)
        transform = np.zeros(len(phase), np.complex128)
        transform[kept] = np.exp(log_modulus[kept] + 1j * phase[kept])
        first = math.ceil((loss.mean - grid.before - loss.offset) / grid.step)
        self.mass = np.roll(np.fft.irfft(transform, grid.points), -(first % grid.points))
        self.left = loss.offset + first * grid.step
        right = self.left + grid.points * grid.step
        # what lies beyond one end of the window wraps around to the other; Chernoff's bound says
        # how much that is
        beyond_right = math.exp(min(loss.log_right - grid.right_order * right, 0.0))
        beyond_left = math.exp(min(loss.log_left + grid.left_order * self.left, 0.0))
        errors = np.exp(log_size[kept]) * np.minimum(relative_error[kept], 1.0)
        norm = math.sqrt(2 * square_sum(errors) / grid.points) + math.exp(-NEGLIGIBLE)
        norm += 8 * ROUNDING * math.log2(grid.points) * math.sqrt(square_sum(self.mass))
        self.weighted_error = norm * math.sqrt(_weight_square_sum(grid))
        self.plain_error, self.beyond_left = 0.0, beyond_left
        # mass beyond the right end is missed; mass beyond the left end only adds
        if grid.upper:
            self.plain_error = beyond_right * math.exp(
                min(-grid.tilt * (right - self.centre), MOST_EXPONENT)
            )
        else:
            self.weighted_error = self.weighted_error + beyond_left + beyond_right
        if math.isnan(
            self.log_factor
            + self.weighted_error
            + self.plain_error
            + self.rounding
            + square_sum(self.mass)
        ):
            # a NaN is below all
            raise NumericalBoundError("pld: the masses of a release left float64")

    def epsilon(self, delta):
        """The epsilon at `delta`: proved to be large enough on an upper grid, and not too large on
        a lower grid.
        """
        if self.infinite >= delta:
            return math.inf
        grid, sign = self.grid, 1 if self.grid.upper else -1
        log_target = math.log(delta - self.infinite) - self.log_factor
        if log_target > MOST_EXPONENT and not grid.upper:
            return 0.0
        target = math.exp(min(log_target, MOST_EXPONENT))  # an upper end may aim at less
        epsilon = float(
            crossing(
                self.mass,
                grid.step,
                self.left,
                grid.tilt,
                self.centre,
                math.exp(sign * self.rounding),
                self.weighted_error,
                self.plain_error,
                target,
                grid.upper,
            )
        )
        return max(0.0, epsilon + sign * self._pad(abs(epsilon)))

    def delta(self, epsilon):
        """The delta at `epsilon`: proved to be large enough on an upper grid, and not too large on
        a lower grid.
        """
        grid, sign = self.grid, 1 if self.grid.upper else -1
        epsilon = max(0.0, epsilon - sign * self._pad(epsilon))
        log_weight = -grid.tilt * (epsilon - self.centre)
        # epsilon is far outside the range of the grid
        if max(log_weight, self.log_factor) > MOST_EXPONENT:
            return 1.0 if grid.upper else 0.0
        missed = self.beyond_left if grid.upper and epsilon < self.left else 0.0
        error = (self.weighted_error + missed) * math.exp(log_weight) + self.plain_error
        value = delta_at(self.mass, grid.step, self.left, grid.tilt, self.centre, epsilon)
        delta = (value * math.exp(sign * self.rounding) + sign * error) * math.exp(
            self.log_factor
        ) + self.infinite
        return min(1.0, max(delta, 5e-324)) if grid.upper else max(0.0, delta)

    def _pad(self, epsilon):
        """The rounding errors of the losses."""
        return 1e-14 * (1 + epsilon) + 0.01 * self.rounding


def log_moment(mass, losses, order):
    """ln of the sum of mass * e^(order * loss)."""
    with np.errstate(divide="ignore"):
        logs = np.log(mass) + order * losses
    largest = np.max(logs)
    return largest + math.log(float(np.sum(np.exp(logs - largest))))


def _weight_square_sum(grid):
    """An upper bound on the sum over j = 1 .. points of (e^(-tilt h j) (1 - e^(-h j)))^2, by
    geometric series.
    """

    def series(rate):
        return (
            grid.points
            if rate == 0
            else math.expm1(-rate * grid.points) / math.expm1(-rate) * math.exp(-rate)
        )

    first = series(2 * grid.tilt * grid.step)
    sum_of_three = (
        first
        - 2 * series((2 * grid.tilt + 1) * grid.step)
        + series((2 * grid.tilt + 2) * grid.step)
    )
    return max(sum_of_three, 0.0) + 1e-13 * first
