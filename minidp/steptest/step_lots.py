"""Releases of random lots, fitted by the rows in them.

A right step is linear in its lot: a release is the sum of what each row adds by itself, plus noise.
So releases of random lots are fitted by least squares; the regressors are the counts of each row of
a pool in the lot. The residuals of a right step are independent normal noise, and have no part
along anything that was known before the call.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from .step_noise import noises
from .step_sums import HALF, NEARLY, middle_scale
from .step_trials import LOUD, Lot, Undecided

MOST_LOTS, NUMBERS = 5700, 30_000_000  # lots; numbers of rows and releases in all of them
FAINT = 60  # calls of lots that move the release by little
ROWS = 6  # of the pool, each at three scales
MOST_KEPT, RUN = 1024, 32  # coordinates whose noise is kept, and how many are neighbours
SMALL, SPECIAL = 9, (16, 32, 64, 100, 128, 256)  # rows of lots that are drawn more often


@dataclass(frozen=True)
class Releases:
    """Residuals of the releases of N random lots, which have n rows together: the parts that their
    rows add are subtracted, and the rest is in units of the noise and divided by `spread`.

    adds          (P, q) what each row of the pool adds, along q directions
    sizes         (N,) rows of each lot
    rows, lot     (n,) each row's index into the pool, and its lot
    left          (N, q) of each release, along the same directions
    noise, kept   (N, k + ...) of each release, at the coordinates (k,), and then the sums of the
                  others in each part
    spread        (N,) bound on standard deviations: 1 but where rows are random, or round much
    fitted        (N, r) orthonormal columns, along which the fit leaves nothing
    """

    adds: NDArray
    sizes: NDArray
    rows: NDArray
    lot: NDArray
    left: NDArray
    noise: NDArray
    kept: NDArray
    spread: NDArray
    fitted: NDArray

    @property
    def place(self):
        """(n,) the place of each row in its lot."""
        return np.arange(len(self.rows)) - (self.sizes.cumsum() - self.sizes)[self.lot]

    @property
    def large(self):
        """(n,) True for rows that add about as much as any row, as clipped rows do."""
        norms = np.linalg.norm(self.adds, axis=1)
        return (norms > NEARLY * norms.max())[self.rows]

    def counts(self, weights=None):
        """(N, P) the count of each row of the pool in each lot, or sums of weights (n,)."""
        shape = len(self.sizes), len(self.adds)
        at = self.lot * len(self.adds) + self.rows
        return np.bincount(at, weights, math.prod(shape)).reshape(shape)

    def added(self, weights):
        """(N, q) the part that the rows of each lot add, each times its weight (n,)."""
        return self.counts(weights) @ self.adds

    def along(self, known):
        """(z, share): a normal number, and the share of (N, q) numbers known before the calls that
        the fit leaves.
        """
        known = known / self.spread[:, None]
        whole, known = np.sum(known**2), known - self.fitted @ (self.fitted.T @ known)
        square, found = np.sum(known**2), np.sum(self.left * known)
        # of what the fit explains, rounding is left
        return (found / math.sqrt(square), found / square) if square > 1e-12 * whole else (0, 0)


def releases(trials):
    """`Releases` of random lots. Raises Undecided if no rows move the step."""
    trials.once(noises)
    m, rows = trials.copies, range(min(ROWS, trials.copies))
    pool = [*product((1, middle_scale(trials), LOUD), rows), (0, 0)]
    n = trials.for_sum if min(trials.reached(HALF).values()) > 0.5 else max(trials.for_sum, FAINT)
    adds = np.array([trials.mean(Lot(0, m, scale, row), n)[0] for scale, row in pool]) / m
    if not (np.isfinite(adds).all() and adds.any()):
        raise Undecided("no rows move the release by a finite amount: see sensitivity, trained")
    _, sizes, directions = np.linalg.svd(adds, full_matrices=False)
    directions = directions[sizes > 1e-9 * sizes[0]]
    adds = adds @ directions.T
    numbers = np.concatenate([trials.scaled(scale, row) for scale, row in pool])
    lots = _drawn(trials, len(pool))
    kept, others = _kept(trials, len(lots) // 4)
    along, noise = np.empty((len(lots), len(directions))), []
    for n, lot in enumerate(lots):
        release = trials.call(numbers[lot]) / trials.unit
        along[n] = directions @ release
        sums = [release[each].sum() / math.sqrt(len(each)) for each in others]
        noise.append([*release[kept], *sums])
    counts = np.array([np.bincount(lot, minlength=len(pool)) for lot in lots], float)
    trials.lots = sizes = counts.sum(axis=1).astype(int)
    rounded = trials.rounding * np.linalg.norm(counts @ adds, axis=1)
    shaken = trials.random * sizes / min(part.sigma for part in trials.parts) ** 2
    spread = np.sqrt(1 + rounded**2 + shaken)
    fitted, weights, _ = np.linalg.svd(counts / spread[:, None], full_matrices=False)
    fitted = fitted[:, weights > 1e-9 * weights[0]]
    left, noise = (
        each - fitted @ (fitted.T @ each)
        for each in (along / spread[:, None], np.array(noise) / spread[:, None])
    )
    where = np.repeat(np.arange(len(lots)), sizes)
    return Releases(adds, sizes, np.concatenate(lots), where, left, noise, kept, spread, fitted)


def _drawn(trials, pool):
    """Index arrays into a pool: lots of all sizes, of one row, of two or of all of the pool."""
    rng, lot = np.random.default_rng(1), trials.stated.expected_lot_size
    usual, top = max(1, round(lot)), math.ceil(lot + 6 * math.sqrt(lot))
    most = NUMBERS // (trials.size + usual * math.prod(trials.stated.row_shape))
    n = max(8 * pool, min(MOST_LOTS, most, trials.stated.most_releases))
    sizes = np.full(n, usual)
    if trials.varies:
        ends = [size + by for size in SPECIAL if size < 2 * trials.copies for by in (-1, 0, 1)]
        least = [1] if trials.empty else [0]
        groups = least, range(1, SMALL + 1), range(1, top + 1), [*ends, usual, 2 * usual]
        sizes = np.concatenate([rng.permutation(np.resize(each, -(-n // 4))) for each in groups])
        rng.shuffle(sizes)
    lots = []
    for size in sizes:
        among = rng.permutation(pool)[: rng.choice((1, 2, pool))]
        lots.append(among[rng.integers(len(among), size=size)])
    return lots


def _kept(trials, most):
    """(runs of adjacent coordinates of each part, in order, at most `most` in all; the remaining
    coordinates of each part that has any).
    """
    rng, found = np.random.default_rng(0), []
    most = min(MOST_KEPT, most) // RUN // len(trials.parts)
    for part in trials.parts:
        places = np.arange(trials.size)[part.where]
        runs = np.array_split(places, -(-part.size // RUN))
        found += [runs[i] for i in rng.permutation(len(runs))[: max(1, most)]]
    kept = np.sort(np.concatenate(found))
    parts = (np.arange(trials.size)[part.where] for part in trials.parts)
    others = (np.setdiff1d(places, kept) for places in parts)
    return kept, [each for each in others if len(each)]
