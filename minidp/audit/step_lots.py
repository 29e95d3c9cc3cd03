"""Random lots: what rows add does not depend on the lot, and noise is new in every call.

A right step is linear in its lot: a release is the sum of what each row adds by itself, plus noise.
So releases of random lots are fitted, by least squares, by how often each row of a pool is in the
lot. What is left of a right step is independent normal noise, and has no part along anything that
was known before the call.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .step_noise import noises
from .step_sums import scaled_norm
from .step_trials import LOUD, SCALES, Lot, Undecided

MOST_LOTS, NUMBERS = 7000, 30_000_000  # lots; numbers of rows and releases in all of them
ROWS = 6  # of the pool, each at three scales
MOST_KEPT = 1024  # coordinates whose noise is kept
SMALL, SPECIAL = 9, (16, 32, 64, 100, 128, 256)  # rows of lots that are drawn more often
BATCHES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 25, 32, 48, 50, 64, 96, 100, 128)
FAR, MUCH = 8.3, 3  # deviations that are found nearly always; a fault in every lot, over C
OTHERS = (
    "what rows add depends on the other rows: batch statistics, a mean over the lot, sums of "
    "several rows that are clipped as one, a sum that is clipped as a whole, or a clip norm that "
    "follows the lot"
)


@dataclass(frozen=True)
class Releases:
    """Releases of random lots, less what their rows add by themselves, in units of the noise and
    over `spread`.

    added   (P, q) what each row of the pool adds, along q directions
    lots    (N,) index arrays into the pool, in the order of the calls
    left    (N, q) of each release, along the same directions
    noise   (N, k) of each release, at the coordinates `kept`
    spread  (N,) bound on the standard deviation in any direction: 1 but where rows are random
    fitted  (N, r) orthonormal columns, along which the fit leaves nothing
    """

    added: NDArray
    lots: list
    left: NDArray
    noise: NDArray
    kept: NDArray
    spread: NDArray
    fitted: NDArray

    def along(self, known):
        """(z, share): a normal number, and how much is left of (N, q) numbers known before the
        calls.
        """
        known = known / self.spread[:, None]
        whole, known = np.sum(known**2), known - self.fitted @ (self.fitted.T @ known)
        square, found = np.sum(known**2), np.sum(self.left * known)
        # of what the fit explains, rounding is left
        return (found / math.sqrt(square), found / square) if square > 1e-12 * whole else (0, 0)


def releases(trials):
    """`Releases` of random lots; raises Undecided where no rows move the step."""
    trials.once(noises)
    rows, m = range(min(ROWS, trials.copies)), trials.copies
    # the smallest that moves the sum by much, so that some rows are clipped and others are not
    half = next((scale for scale in SCALES if scaled_norm(trials, scale) > 0.4), 1)
    pool = [(row, scale) for scale in (1, half, LOUD) for row in rows] + [(0, 0)]
    added = np.array([trials.mean(Lot(0, m, scale, row))[0] for row, scale in pool]) / m
    if not (np.isfinite(added).all() and added.any()):
        raise Undecided("no rows move the release by a finite amount: see sensitivity, trained")
    _, sizes, directions = np.linalg.svd(added, full_matrices=False)
    directions = directions[sizes > 1e-9 * sizes[0]]
    added = added @ directions.T
    numbers = np.concatenate([trials.scaled(scale, row) for row, scale in pool])
    lots, kept = _drawn(trials, len(pool)), _kept(trials)
    along, noise = np.empty((len(lots), len(directions))), np.empty((len(lots), len(kept)))
    for n, lot in enumerate(lots):
        release = trials.call(numbers[lot]) / trials.unit
        along[n], noise[n] = directions @ release, release[kept]
    counts = np.array([np.bincount(lot, minlength=len(pool)) for lot in lots], float)
    rounded = trials.rounding * np.linalg.norm(counts @ added, axis=1)
    shaken = trials.random * counts.sum(axis=1) / min(part.sigma for part in trials.parts) ** 2
    spread = np.sqrt(1 + rounded**2 + shaken)
    fitted, sizes, _ = np.linalg.svd(counts / spread[:, None], full_matrices=False)
    fitted = fitted[:, sizes > 1e-9 * sizes[0]]
    left, noise = (
        each - fitted @ (fitted.T @ each)
        for each in (along / spread[:, None], noise / spread[:, None])
    )
    return Releases(added, lots, left, noise, kept, spread, fitted)


def _drawn(trials, pool):
    """Index arrays into a pool: lots of all sizes, of one row, of two or of all of the pool."""
    rng, lot = np.random.default_rng(1), trials.stated.expected_lot_size
    usual = max(1, round(lot))
    top = math.ceil(lot + 6 * math.sqrt(lot))
    row = math.prod(trials.stated.row_shape)
    most = NUMBERS // (trials.size + usual * row)
    n = max(8 * pool, min(MOST_LOTS, most, trials.stated.most_releases))
    sizes = np.full(n, usual)
    if trials.varies:
        ends = [size for each in SPECIAL for size in (each - 1, each, each + 1)]
        groups = (
            [] if trials.empty else [0],
            np.arange(1, SMALL + 1),
            np.arange(1, top + 1),
            [*(size for size in ends if size <= 2 * trials.copies), usual, 2 * usual],
        )
        groups = [np.array(group) for group in groups if len(group)]
        sizes = np.concatenate(
            [np.resize(rng.permutation(g), -(-n // len(groups))) for g in groups]
        )
        sizes = rng.permutation(sizes)[:n]
    lots = []
    for size in sizes:
        among = rng.permutation(pool)[: rng.choice((1, 2, pool))]
        lots.append(among[rng.integers(len(among), size=size)])
    return lots


def _kept(trials):
    """Coordinates of each part, in order."""
    rng, most = np.random.default_rng(0), max(1, MOST_KEPT // len(trials.parts))
    places = [np.arange(trials.size)[part.where] for part in trials.parts]
    return np.sort(
        np.concatenate([rng.permutation(each)[: min(most, len(each))] for each in places])
    )


def independence(trials):
    """What rows add does not change with the other rows, their number, order and place, nor with
    the calls before.
    """
    found = trials.once(releases)
    n, q = found.left.shape
    sizes = np.array([len(lot) for lot in found.lots])
    squares = (found.left**2).sum(axis=1)
    p = stats.chi2.sf(squares.sum(), (n - found.fitted.shape[1]) * q)
    yield p, f"sums of random lots differ from what their rows add: {OTHERS}"
    for size in np.unique(sizes):
        here = squares[sizes == size]
        for p in (
            stats.chi2.sf(here.sum(), q * len(here)),
            stats.chi2.sf(here.max(), q) * len(here),
        ):
            yield p, f"lots of {size} rows move it by other amounts than others: {OTHERS}"
    for what, known in _known(found, sizes):
        z, share = found.along(known)
        yield 2 * stats.norm.sf(abs(z)), f"{what} (by {share:+.3g} times as much): {OTHERS}"
    least = FAR * max(part.sigma for part in trials.parts) / math.sqrt(n)
    if least > MUCH:
        raise Undecided(
            f"{n} lots show a fault of {least:.2g} C in every lot; to show one of {MUCH} C, raise "
            "most_releases or give smaller rows"
        )


def _known(found, sizes):
    """What a fault would move releases by: (text, (N, q) numbers known before each call)."""
    n, pool = len(sizes), len(found.added)
    rows, lot = np.concatenate(found.lots), np.repeat(np.arange(n), sizes)
    place = np.arange(len(rows)) - np.repeat(sizes.cumsum() - sizes, sizes)
    rest = sizes[lot]  # of each row, in its lot

    def added(counted):
        """What those rows add, of all rows of all lots, that are counted."""
        counts = np.bincount(lot * pool + rows, weights=counted, minlength=n * pool)
        return counts.reshape(n, pool) @ found.added

    whole = added(np.ones(len(rows)))
    for size in np.unique(sizes[sizes > 0]):
        yield f"rows add other amounts in lots of {size}", whole * (sizes == size)[:, None]
    for batch in BATCHES:
        yield f"rows after the first {batch} add other amounts", added(place >= batch)
        text = f"what remains after batches of {batch} adds another amount"
        yield text, added(place >= rest - rest % batch if batch > 1 else place == rest - 1)
    large = rows * 3 // (pool - 1) == 2
    share = np.bincount(lot, weights=large, minlength=n) / np.maximum(sizes, 1)
    for what, factor in (
        ("with the size of the lot", sizes),
        ("with the size of the lot, inversely", 1 / np.maximum(sizes, 1)),
        ("with the share of large rows", share),
        ("from call to call", np.arange(n)),
        ("every second call", np.arange(n) % 2),
    ):
        text = f"what rows add changes {what}"
        yield text, whole * (factor - np.mean(factor))[:, None]
        yield text, added(large * factor[lot])
    yield "what a row adds changes with its place", added(place)
    yield "what a row adds changes with its place", added(place / rest)
    yield "the lot before shows", np.concatenate([whole[:1] * 0, whole[:-1]])
    counts = np.array([np.bincount(each, minlength=pool) for each in found.lots])
    yield "rows that are in a lot twice add another amount", (counts > 1) @ found.added
    behind = np.concatenate([[False], large[:-1]]) & (place > 0)
    yield "rows behind a large one add other amounts", added(behind)
