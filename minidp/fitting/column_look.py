"""A private look at the columns of a table: where their numbers lie, from noisy histograms."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import to_host
from ..mechanism.noise import add_gaussian
from ..privacy.events import Gaussian
from ..streams import Draws
from ..units import Rows, Units
from ..util.validate import non_negative_finite

SMALLEST, LARGEST = -30, 64  # exponents of the powers of two that a first look tells apart
QUANTUM = 2.0**-28  # counts are multiples of it
BLOCK_BYTES = 2**24
MOST = 0.95  # of a column, in cells whose counts noise alone could not give
LEAST_WIDTH = 2.0**-40  # of a range, beside its ends
LEAST_SPREAD = 1 / 16  # of a range: a noisy variance may come out at nothing
MERGED, FEWEST = 4, 8  # cells that become one where a range is sought, and as few as they may be
UNSURE, MOST_UNSURE = 0.01, 0.025  # of a column: noise that is little, and too much
EVEN = 0.3  # of the edges of pieces, from the range; the rest from the units in it


@dataclass(frozen=True)
class ColumnLook:
    r"""Histograms of all columns of numbers, released with noise, on finer cells each time.

    Shapes
        x (N, ...), D numbers a row   edges (D, J), rising along J   counts (D, J + 1) float64

    Forward
        [F1]  raw_dj = sum_n share_n [l_dj <= x_nd < u_dj]    cell j of column d begins at the edge
              l, or -infinity, and ends at the next edge u, or infinity; numbers that are not finite
              are in no cell
        [F2]  released = q rint((raw + sigma S z) / q)    z ~ N(0, 1), independent; rounded to a
              grid q

    Sensitivity
        [S1]  S = sqrt D    if a unit is added, removed or set to zero

    Event
        [S2]  each release Gaussian(sigma), all units used (q = 1); the edges of one may depend on
              those before it

    Source
        [F1]  similar to Karwa and Vadhan 2018, arXiv:1711.03908, section 3
        [S1]  own derivation: cells of a column do not overlap, and the shares of a unit's rows add
              up to at most 1. So a unit moves the counts of each column by at most 1 in L1, and
              therefore in L2

    Guarantees
        Each row of a unit with m rows counts 1 / m, rounded down to a multiple of 2^-28, so that
        sums are exact in any order. Every finite number is in a cell.

    Raises
        ParameterError   the noise multiplier is negative or not finite
    """

    noise_multiplier: float

    def __post_init__(self):
        non_negative_finite(noise_multiplier_of_a_look=self.noise_multiplier)

    def event(self) -> Gaussian:
        """The event of each release."""
        return Gaussian(self.noise_multiplier)  # [S2]

    def noise_std(self, columns: int) -> float:
        """The standard deviation of the noise on each count, rounded up."""
        return self.noise_multiplier * sensitivity(columns) * (1 + 2.0**-50)

    def release(
        self, x: Any, edges: NDArray, draws: Draws, units: Units | None = None
    ) -> NDArray[np.float64]:
        """(D, J + 1) noisy counts. draws: random numbers for this release alone; units: persons of
        these rows; None if each row is a unit.
        """
        raw = raw_counts(x, edges, units)
        return add_gaussian(raw, self.noise_std(len(edges)), draws)  # [F2]


def sensitivity(columns: int) -> float:
    """L2 sensitivity of the counts of `columns` columns together."""
    return math.sqrt(columns)  # [S1]


def raw_counts(x: Any, edges: NDArray, units: Units | None = None) -> NDArray[np.float64]:
    """(D, J + 1) counts of x; private until noise is added."""
    columns, inner = edges.shape
    raw = np.zeros((columns, inner + 1))
    units = Rows(x.shape[0]) if units is None else units
    for rows, share in units.blocks(x, max(1, BLOCK_BYTES // (8 * columns))):
        numbers = to_host(rows).reshape((-1, columns)).astype(np.float64)
        counted = np.floor(share.ravel() / QUANTUM) * QUANTUM
        for each, column in enumerate(numbers.T):
            known = (counted > 0) & np.isfinite(column)
            cells = np.searchsorted(edges[each], column[known], side="right")
            raw[each] += np.bincount(cells, counted[known], inner + 1)  # [F1]
    return raw


def widest(columns: int) -> NDArray:
    """(D, J) edges of the cells of the first look, before anything is known of the columns: plus
    and minus powers of two.
    """
    powers = 2.0 ** np.arange(SMALLEST, LARGEST)
    return np.tile(np.concatenate([-powers[::-1], powers]), (columns, 1))


def equal(low: NDArray, high: NDArray, cells: int) -> NDArray:
    """(D, cells + 1) the edges of equal cells between low and high (D,)."""
    return np.linspace(low, high, cells + 1, axis=1)


# What follows is computed from noisy counts and the public number of units, size, and so costs
# nothing.


def clear_counts(counts: NDArray, noise_std: float) -> NDArray:
    """Counts (D, J + 1), set to 0 if they may be noise alone."""
    least = (1 + math.sqrt(2 * math.log(counts.size))) * noise_std
    return np.where(counts > least, counts, 0)


def magnitudes(counts: NDArray, noise_std: float, size: int) -> tuple[NDArray, NDArray]:
    """(low, high) (D,), the range of most of each column, from counts in the `widest` cells. It
    spans the clear cells if they hold most of the column. Otherwise it reaches to both sides of 0,
    twice as far as the power of two with the largest count.
    """
    low, high = _hull(counts, widest(len(counts)), clear_counts(counts, noise_std) > 0)
    both = (counts + counts[:, ::-1])[:, counts.shape[1] // 2 :]  # of both signs
    limit = 2.0 ** (both.argmax(axis=1) + SMALLEST + 1)
    known = _mostly(counts, noise_std, size)
    return _apart(np.where(known, low, -limit), np.where(known, high, limit))


def narrowed(
    counts: NDArray, edges: NDArray, noise_std: float, size: int
) -> tuple[NDArray, NDArray]:
    """(low, high) (D,) of the clear cells if they hold most of the column, otherwise of all
    cells.
    """
    clear = clear_counts(counts, noise_std) > 0
    clear[~_mostly(counts, noise_std, size)] = True
    return _apart(*_hull(counts, edges, clear))


def narrowed_coarsely(
    counts: NDArray, edges: NDArray, noise_std: float, size: int
) -> tuple[NDArray, NDArray]:
    """The same for a single column (1, J + 1). Its cells are merged by fours until the clear ones
    hold most of it, and one cell is added on either side. If there is too much noise, all cells
    count.
    """
    low, high, known = edges[:, 0], edges[:, -1], False
    while counts.shape[1] > FEWEST:
        clear = clear_counts(counts, noise_std)
        total, unsure = clear.sum(), noise_std * math.sqrt(max((clear > 0).sum(), 1))
        if known and unsure > MOST_UNSURE * size:
            break
        if total > max(size / 2, MOST * size - (0 if known else 2 * unsure)):
            inside = np.convolve(clear[0] > 0, np.ones(3), "same")[None] > 0
            return _apart(*_hull(counts, edges, inside))
        # with so little noise, missing counts lie elsewhere
        known = known or total > size / 2 and unsure < UNSURE * size
        counts, edges = _merged(counts, edges)
        noise_std *= math.sqrt(MERGED)
    return _apart(low, high)


def _merged(counts, edges):
    """Counts and edges of merged cells, each of several old ones; the two outermost cells are not
    merged.
    """
    inner = counts[:, 1:-1]
    inner = np.pad(inner, ((0, 0), (0, -inner.shape[1] % MERGED)))
    inner = inner.reshape((len(counts), -1, MERGED)).sum(axis=2)
    kept = np.concatenate([edges[:, :-1:MERGED], edges[:, -1:]], axis=1)
    return np.concatenate([counts[:, :1], inner, counts[:, -1:]], axis=1), kept


def shares_of(counts: NDArray, noise_std: float, size: int) -> NDArray:
    """(D, J + 1) the share of each cell. Only clear cells count if they hold most of the column;
    otherwise all cells count, and some shares may be below 0.
    """
    clear = clear_counts(counts, noise_std)
    kept = np.where(_mostly(counts, noise_std, size)[:, None], clear, counts)
    return kept / np.maximum(kept.sum(axis=1, keepdims=True), max(noise_std, 1))


def centre_and_spread(shares: NDArray, edges: NDArray) -> tuple[NDArray, NDArray]:
    """(mean, standard deviation) (D,) of columns whose units lie evenly in each cell."""
    ends = _ends(edges)
    middle, width = (ends[:, 1:] + ends[:, :-1]) / 2, np.diff(ends, axis=1)
    mean = (shares * middle).sum(axis=1)
    variance = (shares * ((middle - mean[:, None]) ** 2 + width**2 / 12)).sum(axis=1)
    noisy, one_cell = (shares < 0).any(axis=1), 1 / (edges.shape[1] * math.sqrt(12))
    least = (edges[:, -1] - edges[:, 0]) * np.where(noisy, LEAST_SPREAD, one_cell)
    return np.clip(mean, edges[:, 0], edges[:, -1]), np.sqrt(np.maximum(variance, least**2))


def piece_edges(shares: NDArray, edges: NDArray, pieces: int) -> NDArray:
    """(D, pieces - 1) the edges of pieces that hold equal parts of a column, or rather of a mixture
    of it and of its range: a column that is seldom anything but 0 has pieces beyond 0 too.
    """
    ends = _ends(edges)
    along = (ends - ends[:, :1]) / (ends[:, -1:] - ends[:, :1])
    below = np.pad(np.cumsum(shares, axis=1), ((0, 0), (1, 0)))
    below = np.maximum.accumulate(np.clip(below, 0, 1), axis=1)
    parts = EVEN * along + (1 - EVEN) * below
    at = np.arange(1, pieces) / pieces
    return np.array([np.interp(at, *each) for each in zip(parts, ends)])


def _mostly(counts, noise_std, size):
    """(D,) whether the clear cells hold most of all units: a sum of noisy cells tells less."""
    return clear_counts(counts, noise_std).sum(axis=1) > MOST * size


def _ends(edges):
    """(D, J + 2) the ends of cells; the outermost cells are points."""
    return np.concatenate([edges[:, :1], edges, edges[:, -1:]], axis=1)


def _hull(counts, edges, inside):
    """(low, high) (D,) from the first to the last of these cells."""
    ends, rows = _ends(edges), np.arange(len(counts))
    last = counts.shape[1] - inside[:, ::-1].argmax(axis=1)
    return ends[rows, inside.argmax(axis=1)], ends[rows, last]


def _apart(low, high):
    """(low, high), with high raised if needed so that float64 can distinguish the two."""
    least = np.maximum(np.maximum(np.abs(low), np.abs(high)) * LEAST_WIDTH, 2.0**SMALLEST)
    return low, np.maximum(high, low + least)
