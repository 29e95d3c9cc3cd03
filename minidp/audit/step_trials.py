"""Releases of a step on chosen lots, in units of the noise that it states, and what they show."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special, stats

from ..errors import ParameterError, ShapeError
from ..util.validate import positive_finite

LEVEL = 1e-4  # of all tests of a report together
MISSED = 1e-3  # chance that a fault of the size FAULT is missed
FAULT = 1.25  # times what is stated: a fault that the trials are to find
SCALES = (0.01, 0.1, 1, 10, 100, 1000)
LAW = 5000  # numbers that tell Laplace's law from a Gaussian's
SPREAD = 600  # numbers that tell FAULT times the noise
FEWEST = 16


@dataclass(frozen=True)
class Finding:
    """What one test found. verdict: "holds", "violated", "not decided" or "note"."""

    name: str
    verdict: str
    text: str
    level: float


@dataclass(frozen=True)
class Part:
    """Coordinates that are clipped together, and the norm that one row may have in units of the
    noise.
    """

    name: str
    where: slice
    size: int
    bound: float


class Undecided(Exception):
    """Why a test could not decide, and what would let it."""


class Trials:
    """Calls the step; each lot's releases are kept, (n, d) in units of the stated noise."""

    def __init__(self, stated):
        self.stated, self.calls, self.kept = stated, 0, {}
        make = stated.make_rows or self._normal_rows
        self.copies = self._copies()
        self.rows = np.asarray(make(self.copies, 0 if stated.seed is None else stated.seed))
        if self.rows.shape != (self.copies, *stated.row_shape):
            raise ShapeError(
                f"make_rows: expected rows ({self.copies}, *{tuple(stated.row_shape)}), got "
                f"{self.rows.shape}"
            )
        self.size = self.call(self.rows[:1]).size
        self.parts, self.unit = self._parts()
        smallest = min(part.size for part in self.parts)
        self.for_noise = max(FEWEST, -(-SPREAD // smallest))
        self.for_law = max(self.for_noise, -(-LAW // self.size))
        self.for_shift = self.needed(self.copies * (FAULT - 1), 6)

    def _copies(self):
        stated = self.stated
        if not self.varies:
            return max(1, round(stated.expected_lot_size))
        given = (stated.parts or {"": (None, None, stated.noise_multiplier)}).values()
        return int(min(1024, max(64, 64 * max(sigma for _, _, sigma in given))))

    def _normal_rows(self, n, seed):
        shape = (n, *self.stated.row_shape)
        return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)

    def _parts(self):
        stated, unit, parts = self.stated, np.zeros(self.size), []
        given = stated.parts or {"all": (slice(None), stated.clip_norm, stated.noise_multiplier)}
        for name, (where, clip_norm, sigma) in given.items():
            positive_finite(clip_norm=clip_norm, noise_multiplier=sigma)
            if unit[where].any() or not unit[where].size:
                raise ParameterError(f"parts: {name} is empty or overlaps another part")
            unit[where] = sigma * clip_norm / stated.expected_lot_size
            parts.append(Part(name, where, unit[where].size, 1 / sigma))
        if not unit.all():
            raise ParameterError(f"parts: expected them to cover all {self.size} coordinates")
        return parts, unit

    def call(self, rows, step=None):
        """One release, (d,) float64."""
        self.calls += 1
        with np.errstate(all="ignore"):
            released = np.asarray((step or self.stated.step)(rows.copy()))
        if released.dtype.kind != "f":
            raise ParameterError(f"step: expected floating-point numbers, got {released.dtype}")
        self.dtype = released.dtype
        released = released.astype(np.float64).ravel()
        if self.kept and released.size != self.size:
            raise ShapeError(f"step: gave {self.size} numbers, and {released.size} at another call")
        return released

    def of(self, lot, n=0):
        """At least n releases of a lot by its name; all that there are."""
        rows, kept = self.lot(lot), self.kept.setdefault(lot, [])
        n = min(max(n, self.for_shift if not kept else 0), self.stated.most_releases)
        kept += [self.call(rows) / self.unit for _ in range(n - len(kept))]
        return np.array(kept)

    def lot(self, name):
        """Rows of a lot: "none", "one", "made", "made twice", (copies, scale), (copies, scale,
        "with made").
        """
        if isinstance(name, tuple):
            copies, scale, *others = name
            one = (self.rows[:1] * scale).astype(self.rows.dtype)
            repeated = np.repeat(one, copies, axis=0)
            return np.concatenate([self.rows, repeated]) if others else repeated
        return {
            "none": self.rows[:0],
            "one": self.rows[:1],
            "made": self.rows,
            "made twice": np.concatenate([self.rows, self.rows]),
        }[name]

    def combined(self, weights, where):
        """(mean, variance) of a sum of lots' means, {lot: weight}: variances at least as stated."""
        mean, variance = 0.0, 0.0
        for lot, weight in weights.items():
            found = self.of(lot)[:, where]
            mean = mean + weight * found.mean(axis=0)
            variance += weight**2 * max(1.0, found.var(axis=0, ddof=1).mean()) / len(found)
        return mean, variance

    def longer(self, weights, part, bound):
        """(p, estimated norm): whether a sum of lots' means is longer than `bound`."""
        mean, variance = self.combined(weights, part.where)
        square = float(mean @ mean)
        p = float(stats.ncx2.sf(square / variance, part.size, bound**2 / variance))
        return p, math.sqrt(max(square - part.size * variance, 0))

    def needed(self, copies, variance):
        """Releases of each lot after which a shift of so many C is found in every part."""
        wanted = -special.ndtri(LEVEL / 1000) - special.ndtri(MISSED)

        def found(n, part):
            excess = n * (copies * part.bound) ** 2 / variance
            return excess > wanted * math.sqrt(2 * part.size + 4 * excess)

        n = FEWEST
        while not all(found(n, part) for part in self.parts):
            n = math.ceil(1.2 * n)
        return n

    def enough(self, needed, had):
        """Raises Undecided where a fault of the stated size may have been missed."""
        if needed > had:
            raise Undecided(
                f"{needed} releases of each lot would decide, {had} were made: raise most_releases"
            )

    @property
    def varies(self):
        """Whether lots may have any size."""
        return self.stated.relation == "add_remove"

    @cached_property
    def empty(self):
        """The error that the step raises for an empty lot, or None."""
        try:
            self.of("none", self.for_law)
        except Exception as error:  # the user's code may raise anything: that is what is reported
            return error
        return None

    @property
    def quiet(self):
        """The lot whose releases show the noise: the empty one where the step takes it."""
        if not self.varies:
            return "made"
        return "one" if self.empty else "none"
