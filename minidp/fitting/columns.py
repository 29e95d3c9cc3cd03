"""How `fit` treats the columns of a table: a private look if it can be afforded, and pieces of each
column's range, so that a linear model learns a curve for each.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import to_host
from ..data.arrays import Inputs
from ..data.schema import Schema
from ..privacy.events import Event
from ..run import Run
from ..units import Units
from .column_look import (
    ColumnLook,
    centre_and_spread,
    equal,
    magnitudes,
    narrowed,
    narrowed_coarsely,
    piece_edges,
    shares_of,
    widest,
)

FARTHEST = 4.0  # spreads from its mean that a column is limited to
LEAST_SHARE, NOISE_OF_SEARCH = 0.03, 0.02  # of mu^2; and of noise, where ranges are sought
# what a look aims at: noise on a count as a share of N, at most that of mu^2, and that noise at
# most; of a regression, which needs centres and spreads more
AIM, AIM_OF_NUMBERS = (0.01, 0.2, 0.06), (0.01, 0.33, 0.1)
NAMES = ("first_look", "second_look", "third_look", "fourth_look", "fifth_look")
SEARCHED = 4096, 64  # cells in which a range is sought: with little noise, and with more
CELLS = 8, 256  # of the last histograms, at least and at most
NOISE_OF_SUMS = 0.05  # of noise on the sum of so many cells
MOST_COLUMNS = 200  # an array with more is taken for images
# mu N for each piece, squared, and the length of a piece's part: after a look, and within bounds
LOOKED, BOUNDED = (160.0, 2.0), (40.0, 0.6)
ENOUGH, ENOUGH_EACH = 200.0, 5.0  # mu N for pieces at all, and for each column
FEWEST_PIECES, MOST_PIECES = 3, 16
LEAST_GAP = 1e-3  # between knots


class Look:
    """Noisy histograms from which each column's centre, spread and quantiles follow.

    places      numbers of the columns among the inputs, each with the number of its indicator of
                gaps, or None
    bounded     True if the numbers are within [-1, 1]; for all columns, or (D,)
    affordable  True if its noise is small enough compared with N
    aim         like AIM; with more noise than its last number, a look is not affordable
    alone       True for a single column, whose range is sought even if that costs much
    wide        whether a column's bounds are so far apart that they say next to nothing

    Numbers may lie far from 0. So ranges are sought first where that costs little, twice where
    the numbers have no bounds, or where that costs nothing, and three times within wide bounds.
    """

    def __init__(
        self,
        places: list[tuple[int, int | None]],
        size: int,
        mu: float,
        bounded: Any,
        aim: tuple[float, float, float],
        alone: bool = False,
        wide: bool = False,
    ) -> None:
        self.places, self.size, self.bounded = places, size, np.asarray(bounded)
        self.narrowed = narrowed_coarsely if alone else narrowed
        wanted, most, limit = aim
        # noise, as a share of N, of one release for all of mu
        whole = math.sqrt(len(places)) / (mu * size)
        self.searches = int(alone or whole * math.sqrt(3 / most) < NOISE_OF_SEARCH)
        if self.searches:
            free = 4 * (whole / wanted) ** 2 < LEAST_SHARE
            near = whole * math.sqrt(4 / most) < NOISE_OF_SEARCH and not self.bounded.all()
            self.searches += free or near and not alone
            if wide and whole * math.sqrt(5 / most) < NOISE_OF_SEARCH:
                self.searches = 3
        self.rounds = 2 - bool(self.bounded.all()) + self.searches
        share = min(most, max(LEAST_SHARE, self.rounds * (whole / wanted) ** 2))
        noise = whole * math.sqrt(self.rounds / share)
        self.searched = SEARCHED[noise > NOISE_OF_SEARCH]
        self.affordable = noise <= limit
        self.cells = int(np.clip((NOISE_OF_SUMS / noise) ** 2 if noise else np.inf, *CELLS))
        self.mechanism = ColumnLook(noise * size / math.sqrt(len(places)))

    def events(self) -> list[Event]:
        """The charge of each release."""
        return [self.mechanism.event()] * self.rounds

    def release(
        self, run: Run, numbers: Any, units: Units, pieces: int, of: str = ""
    ) -> tuple[NDArray, NDArray, NDArray]:
        """(centre, spread, edges): centre and spread are (D,); edges of pieces are (D, pieces - 1),
        in spreads from the centre.

        numbers: an array (N, D), or `Numbers`; of: beginning of the names of the releases
        """
        columns, names = len(self.places), iter(NAMES)
        noise = self.mechanism.noise_std(columns)
        what_of = "of the target" if of else f"of {columns} columns"

        def counts(edges, what):
            name = of + next(names)
            found = run.release_first(
                name,
                self.mechanism.event(),
                f"noisy histograms {what_of}, {what}",
                lambda: self.mechanism.release(numbers, edges, run.streams.noise(name), units),
            )
            return to_host(found)  # a resumed run has it on the network's device

        low, high = np.full((2, columns), [[-1.0], [1.0]])
        if not self.bounded.all():
            found = counts(widest(columns), "by powers of two")
            ends = zip((low, high), magnitudes(found, noise, self.size))
            low, high = (np.where(self.bounded, *both) for both in ends)
        for _ in range(self.searches):
            edges = equal(low, high, self.searched)
            low, high = self.narrowed(
                counts(edges, "to find where they lie"), edges, noise, self.size
            )
        edges = equal(low, high, self.cells)
        found = counts(edges, "for their centres, spreads and pieces")
        shares = shares_of(found, noise, self.size)
        centre, spread = centre_and_spread(shares, edges)
        parts = piece_edges(shares, edges, max(pieces, 1))
        return centre, spread, (parts - centre[:, None]) / spread[:, None]


class Numbers:
    """The columns of numbers among inputs, with NaN for gaps."""

    def __init__(self, inputs: Inputs, places: list[tuple[int, int | None]]) -> None:
        self.inputs, self.places = inputs, places
        self.shape, self.xp = (inputs.shape[0], len(places)), inputs.xp

    def take(self, indices: Any, axis: int = 0) -> NDArray:
        """The rows at an array of indices."""
        rows = self.inputs.take(indices)
        rows = rows.reshape((len(rows), -1))
        numbers = rows[:, [place for place, _ in self.places]]
        for each, (_, gap) in enumerate(self.places):
            if gap is not None:
                numbers[:, each][rows[:, gap] == 1] = np.nan
        return numbers


def places_of(schema: Schema | None, shape: tuple[int, ...]) -> list[tuple[int, int | None]]:
    """The places of the columns of numbers in an encoded row, or of all numbers without a schema;
    each with the place of its indicator of gaps, or None.
    """
    if schema is None:
        return [(place, None) for place in range(math.prod(shape))]
    found, place = [], 0
    for column in schema.inputs:
        if column.look:
            found.append((place, place + 1 if column.gaps else None))
        place += column.width
    return found


def pieces_of(size: int, mu: float, columns: int, *, looked: bool) -> tuple[int, float]:
    """(number, weight) of the pieces of each column; 0 if there are too few rows for pieces."""
    each, weight = LOOKED if looked else BOUNDED
    number = int(np.clip(math.sqrt(mu * size / each), FEWEST_PIECES, MOST_PIECES))
    return (number if mu * size >= max(ENOUGH, ENOUGH_EACH * columns) else 0), weight


def knots_of(edges: NDArray) -> NDArray:
    """(D, J + 2) different knots at the edges (D, J) of pieces and beyond them."""
    gaps = np.diff(edges, axis=1)
    knots = np.concatenate(
        [edges[:, :1] - gaps[:, :1], edges, edges[:, -1:] + gaps[:, -1:]], axis=1
    )
    steps = LEAST_GAP * np.arange(knots.shape[1])
    return np.maximum.accumulate(knots - steps, axis=1) + steps
