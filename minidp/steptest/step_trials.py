"""Releases of a step on chosen lots, in units of the noise that it states."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from ..errors import ParameterError
from ..util.validate import positive_finite, shape

LEVEL = 1e-4  # of all tests of a report together
MISSED = 1e-3  # chance that a fault of the size FAULT is missed
FAULT = 1.25  # times what is stated: a fault that the trials are to find
SPREAD = 600  # numbers that tell FAULT times the noise
FEWEST, LEAST = 16, 8  # releases whose noise is tested; numbers that give its spread
SCALES = (0.01, 0.1, 1, 10, 100, 1000)  # of row 0
LOUD = SCALES[-1]
RAISED = (Exception, SystemExit)  # by the user's code, which may raise anything
MOST_ROWS = 20_000_000  # numbers of a lot of copies
FAR = 8.3  # deviations that are found nearly always
MANY = 1e6  # squared deviations, of which the non-central law is a normal one
ROUNDING = 1e-5  # of what rows move: sums in float32 are no fault
LARGEST = 100_000  # numbers of a release


def _at(row, at, value):
    """A row (1, n) with another number at a place."""
    return np.where(np.arange(row.shape[1]) == at, value, row)


CHANGES: dict[str, Callable[[Any, int], Any]] = {  # of a row (1, n), some at a place of it
    "": lambda row, at: row,
    "all positive": lambda row, at: abs(row),
    "all negative": lambda row, at: -abs(row),
    "all equal": lambda row, at: row * 0 + abs(row).max(),
    "0 but at": lambda row, at: row - _at(row, at, 0),
    "1000 times larger at": lambda row, at: _at(row, at, LOUD * row),
    "NaN at": lambda row, at: _at(row, at, np.nan),
    "infinite at": lambda row, at: _at(row, at, np.inf),
}
PLACES = 12  # of a row, each changed by itself
BEFORE = 12  # calls whose rows may have moved what a step keeps


class Lot(NamedTuple):
    """The first rows of `make_rows`, and copies of one of them, changed, times a number; after
    calls of copies of it times another number.
    """

    made: int = 0
    copies: int = 0
    scale: float = 1
    row: int = 0
    change: str = ""
    at: int = 0
    after: float = 0

    @property
    def rows(self):
        """The number of rows."""
        return self.made + self.copies

    def __str__(self):
        made = f"{self.made} made rows" if self.made else "an empty lot"
        times = "" if self.scale == 1 else f" times {self.scale:g}"
        change = f", {self.change}" if self.change else ""
        change += f" {self.at}" if change.endswith(" at") else ""
        after = f" after {BEFORE} calls of it times {self.after:g}" if self.after else ""
        copies = f"{self.copies} copies of row {self.row}{change}{times}{after}"
        if not self.copies:
            return made
        return f"{made} and {copies}" if self.made else copies


@dataclass(frozen=True)
class Part:
    """Coordinates that are clipped together; sigma: noise divided by the largest norm of one
    row.
    """

    name: str
    where: slice
    size: int
    sigma: float


def _spacing(numbers):
    """Of floating-point numbers near 1 with as many bits as these have: float16 and bfloat16 keep
    few, in an array of any dtype.
    """
    mantissa = np.frexp(numbers[np.isfinite(numbers)])[0]
    for digits in (8, 11):
        if np.array_equal(np.ldexp(mantissa, digits) % 1, np.zeros(len(mantissa))):
            return 2.0 ** (1 - digits) if mantissa.any() else 0.0
    return 0.0


class Undecided(Exception):
    """Why a test could not decide, and what would help."""


class Trials:
    """Calls the step; keeps the mean of each lot's releases."""

    def __init__(self, stated):
        self.stated, self.calls, self.means, self.size = stated, 0, {}, 0
        self.sizes: set[int] = set()  # of the lots that were tried
        self.lots: Any = ()  # sizes of the random ones
        self.varies = stated.relation == "add_remove"  # lots may have any size
        sigmas = [sigma for _, _, sigma in stated.clipped.values()]
        m = min(1024, max(64, 64 * max(sigmas))) if self.varies else stated.expected_lot_size
        wide = max(16, MOST_ROWS // math.prod(stated.row_shape))
        self.copies = max(1, min(round(m), wide if self.varies else round(m)))
        self.integers = False
        self.rows = stated.rows(self.copies)
        shape("check_step", "make_rows", self.rows, (self.copies, *stated.row_shape))
        self.size, self.shape = 0, ()
        self.integers = self.rows.dtype.kind in "iub"
        first = self.call(self.rows)
        self.size = first.size
        if self.size > LARGEST:
            raise ParameterError(
                f"step: it returns {self.size:,} numbers, and at most {LARGEST:,} can be tested in "
                "about a minute: check the same code with a smaller model, where the same lines "
                "clip, add noise and divide"
            )
        self.parts, self.unit = self._parts()
        self.first = first / self.unit  # the very first release
        self.spacing = _spacing(first)
        self.rounding = max(ROUNDING, self.spacing / 4)  # of what rows move
        self.made: dict = {}  # what `once` made
        self.remarks: dict[str, str] = {}  # of tests that hold
        self.random = False  # whether what a row adds is random
        self.empty = None
        try:
            self.call(self.rows[:0])
        except RAISED as error:  # what an empty lot raises is tested by itself
            self.empty = error
        smallest = min(part.size for part in self.parts)
        self.for_law = max(FEWEST, -(-SPREAD // smallest))
        least = max(4, -(-LEAST // smallest))
        self.for_sum = max(least, self.needed(self.copies, FAULT * self.copies))
        self.short = 0  # releases that a test would have needed, beyond most_releases
        fewest = 1 if self.empty else 0  # rows: the noise shows where there are fewest
        self.quiet = Lot(fewest if self.varies else self.copies)

    def _parts(self):
        unit, parts = np.zeros(self.size), []
        for name, (where, clip_norm, sigma) in self.stated.clipped.items():
            positive_finite(clip_norm=clip_norm, noise_multiplier=sigma)
            if unit[where].any() or not unit[where].size:
                raise ParameterError(f"parts: {name} is empty or overlaps another part")
            unit[where] = sigma * clip_norm / self.stated.expected_lot_size
            parts.append(Part(name, where, unit[where].size, sigma))
        if not unit.all():
            raise ParameterError(f"parts: expected them to cover all {self.size} coordinates")
        return parts, unit

    def needed(self, low, high):
        """Number of releases of a lot that distinguish sums of `high` C from sums of `low` C in any
        part; the square of their mean is non-central chi-square.
        """
        far = special.ndtri(LEVEL / 1000) + special.ndtri(MISSED)
        sizes, sigmas = np.array([(part.size, part.sigma) for part in self.parts]).T
        apart = far / (high**2 - low**2) * sigmas
        return math.ceil((4 * (high * apart) ** 2 - np.sqrt(2 * sizes) * apart * sigmas).max())

    def call(self, rows, step=None):
        """One release, (d,) float64."""
        self.calls += 1
        self.sizes.add(len(rows))
        given = (step or self.stated.step)(rows.copy())
        if not hasattr(given, "shape"):
            raise ParameterError(
                "step: expected one array of all coordinates, such as numpy.concatenate([each."
                f"ravel() for each in grads]), got {type(given).__name__}"
            )
        released = np.asarray(given)
        if released.dtype.kind != "f":
            raise ParameterError(f"step: expected floating-point numbers, got {released.dtype}")
        self.shape = self.shape or released.shape
        released = released.astype(np.float64).ravel()
        if not released.size or self.size not in (0, released.size):
            expected = self.size or "some"
            raise ParameterError(f"step: expected {expected} numbers, got {released.size}")
        return released

    def releases(self, lot, n, step=None):
        """New releases of a lot, one after the other, with its rows in the same mixed order."""
        copies = np.repeat(self.scaled(*lot[2:6]), lot.copies, axis=0)
        rows = np.concatenate([self.rows[: lot.made], copies])
        rows = np.random.default_rng(0).permutation(rows)
        if n > self.stated.most_releases:
            self.short, n = n, self.stated.most_releases
        for _ in range(n):
            for _ in range(BEFORE if lot.after else 0):
                self.call(np.repeat(self.scaled(lot.after, lot.row), lot.copies, axis=0), step)
            yield self.call(rows, step) / self.unit

    @property
    def places(self):
        """Places of a row."""
        size = self.rows[0].size
        return np.unique(np.linspace(0, size - 1, PLACES).astype(int)).tolist()

    def scaled(self, scale, row=0, change="", at=0):
        """A row, changed, times a number; integers stay within those that `make_rows` gives."""
        shape, row = self.rows[:1].shape, self.rows[row : row + 1].reshape((1, -1)).astype(float)
        row = CHANGES[change](row, at) * scale
        if self.integers:
            row = np.clip(np.round(row), self.rows.min(), self.rows.max())
        return row.astype(self.rows.dtype).reshape(shape)

    def once(self, make):
        """The result of make(self), which is called only once; releases that it was short of count
        each time.
        """
        if make not in self.made:
            self.made[make] = make(self), self.short
        made, short = self.made[make]
        self.short = max(self.short, short)
        return made

    def untried(self, left_out):
        """A text on faults that the calls cannot show; left_out: names of tests."""
        rare, rarer = (1 - (1 - share) ** self.calls for share in (1e-3, 1e-4))
        sizes = sorted(self.sizes)
        few = ", ".join(map(str, sizes[:8])) + (f" ... {sizes[-1]}" if len(sizes) > 8 else "")
        text = (
            f"Tried: {self.calls:,} calls with lots of {few} rows, which are rows of make_rows "
            "(by default normal numbers in float32), multiples of one of them, and one of them "
            "with numbers of one sign, equal, alone, large or not finite. Not tried: other rows "
            "and lot sizes; a fault that needs them does not show. A fault that comes in one of "
            f"1,000 calls came up here with probability {rare:.2g}, in one of 10,000 with "
            f"{rarer:.2g}; it shows only if one call reveals it. "
        )
        if len(self.lots):
            far = FAR * max(part.sigma for part in self.parts)
            sizes, times = np.unique(self.lots, return_counts=True)
            some = range(0, len(sizes), -(-len(sizes) // 6))
            least = (f"{sizes[i]}: {far / math.sqrt(times[i]):.2g}" for i in some)
            text += (
                "In random lots a fault shows from about "
                f"{far / math.sqrt(len(self.lots)):.2g} C on if it is in every lot, and in lots of "
                f"one size alone (rows: C) from {', '.join(least)} on. "
            )
        return (
            f"{text}Not asked for: {', '.join(left_out) or 'nothing'}. Tree noise, weight decay in "
            "the release and other correlated or biased releases are not what is tested: an "
            "accusation may be of these."
        )

    def mean(self, lot, n=None):
        """(mean, variance of the mean in each part) of a lot's releases; at least as stated."""
        n = n or self.for_sum
        key = lot, n
        if n > self.stated.most_releases:  # fewer releases decide nothing but what is obvious
            self.short, n = n, FEWEST
        if key not in self.means:
            mean, squares = np.zeros(self.size), [0.0] * len(self.parts)
            for n, release in enumerate(self.releases(lot, n), 1):
                apart = release - mean
                mean = mean + apart / n
                if n == 1:
                    continue
                for i, part in enumerate(self.parts):
                    noise = apart[part.where]
                    squares[i] += noise @ noise * (n - 1) / n
            spreads = [square / part.size / (n - 1) for square, part in zip(squares, self.parts)]
            self.means[key] = mean, [max(1.0, spread) / n for spread in spreads]
        return self.means[key]

    def moved(self, most, *lots, n=None):
        """[(p, text, part, norm)]: whether a sum of lots' means, of (weight, lot), is longer than
        `most` times C in a part; its norm over C.
        """
        what = " less ".join(
            str(lot) if abs(weight) == 1 else f"{-weight} times {lot}" for weight, lot in lots
        )
        means = [(weight, *self.mean(lot, n)) for weight, lot in lots]
        for i, part in enumerate(self.parts):
            mean = sum(weight * each[part.where] for weight, each, _ in means)
            variance = sum(weight**2 * each[i] for weight, _, each in means)
            if self.random:
                # in the worst direction, where rows add their clip norms at random
                n = n or self.for_sum
                variance += sum(w**2 * lot.rows for w, lot in lots) / part.sigma**2 / n
            rounding = self.rounding * max(np.linalg.norm(each[part.where]) for _, each, _ in means)
            square, allowed = float(mean @ mean), most / part.sigma + rounding
            if allowed**2 > MANY * variance:  # so many deviations that the law is a normal one
                far = math.sqrt(square) - math.hypot(allowed, math.sqrt(part.size * variance))
                p = stats.norm.sf(far / math.sqrt(variance))
            else:
                p = stats.ncx2.sf(square / variance, part.size, allowed**2 / variance)
            norm = math.sqrt(square) * part.sigma if math.isfinite(square) else math.inf
            text = f"{what} move {part.name} by {norm:.4g} C, at most {most} C is right"
            yield p, text, part.name, norm

    def reached(self, share):
        """{part: chance that rows which move it by a share of C each move it as little}."""
        chances, m = dict.fromkeys((part.name for part in self.parts), 0.0), self.copies
        for lot in (Lot(m), *(Lot(0, m, scale) for scale in SCALES)):
            for p, _, part, _ in self.moved(m * share, (1, lot)):
                chances[part] = max(chances[part], 1 - p)
        return chances
