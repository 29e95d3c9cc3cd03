"""Noise that is correlated between steps, so that part of it cancels in their sum; and the lots
that it is accounted with.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..host.chacha import rounded
from ..privacy.events import CyclicSampled, Event
from ..streams import Draws, Stream
from ..validate import count
from .sampling import PoissonSampler, Sampler


@dataclass(frozen=True)
class CyclicSampler(PoissonSampler):
    r"""Poisson lots of one of `bands` parts of the data in turn, so that an example's steps are at
    least so many apart.

    Shapes
        a lot: sorted indices (size,), possibly empty

    Forward
        [F1]  each example's part uniform among b, drawn once, independent of all others; the lot of
              step t holds each example of part t mod b with probability min(1, b q), so that lots
              are as large as those of probability q

    Event
        [S1]  CyclicSampled(min(1, b q), event) once every b steps, ceil(T / b) times, proved for
              ADD_REMOVE: an example is in one part, whatever that is. So for independent noise and
              for `BandedNoise` of at most b bands

    Source
        [F1] [S1]  Choquette-Choo et al. 2023, arXiv:2306.08153, Algorithm 2; parts drawn
                   independently: own derivation, since
              equal parts would move other examples when one is added

    Raises
        ParameterError   b q above 1: lots would be smaller than asked for

    >>> from minidp.streams import Streams
    >>> [lot.tolist() for lot in CyclicSampler(0.25, bands=2).lots(10, steps=3, stream=Streams(1).sampling)]
    [[0, 5], [4], [0, 1, 6, 8]]
    """

    bands: int = field(default=1, kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        count(1, bands=self.bands)
        if self.max_lot_size is not None:
            raise ParameterError(
                f"expected max_lot_size={self.max_lot_size} to be None: lots of parts are not cut"
            )
        if self.bands * self.sampling_probability > 1 + 1e-9:
            raise ParameterError(
                f"expected at most {1 / self.sampling_probability:g} bands, the lots of an epoch, "
                f"got {self.bands}"
            )

    @property
    def period(self) -> int:
        """b: the event covers so many steps."""
        return self.bands

    @property
    def share(self) -> float:
        """The probability with which a lot holds an example of its part."""
        return min(1.0, self.bands * self.sampling_probability)  # [F1]

    def lots(
        self, num_examples: int, steps: int, stream: Stream, start: int = 0
    ) -> Iterator[NDArray]:
        """Yield index arrays into num_examples examples, for `steps` steps from step `start` on; of
        streams without a seed once.
        """
        part, within = stream("parts").below(self.bands, num_examples), PoissonSampler(self.share)
        parts = [np.flatnonzero(part == k) for k in range(self.bands)]
        for step in range(start, start + steps):
            own = parts[step % self.bands]  # [F1]
            yield own[next(within.lots(len(own), 1, stream, step))]

    def wrap(self, event: Event) -> CyclicSampled:
        """The event of releasing `event` from each lot of `bands` steps."""
        return CyclicSampled(self.share, event)  # [S1]


def with_bands(sampler: Sampler, bands: int | None) -> Sampler:
    """The sampler, or its lots of `bands` parts in turn. Raises ParameterError where that is not
    plain Poisson sampling.
    """
    if bands is None:
        return sampler
    if type(sampler) is not PoissonSampler or sampler.max_lot_size is not None:
        raise ParameterError(
            "bands of correlated noise: expected --sampler poisson without --max-lot-size"
        )
    return CyclicSampler(sampler.sampling_probability, bands=bands)


@dataclass(frozen=True)
class BandedNoise:
    r"""Noise sigma C_l y_t in place of sigma C_l z_t, where y = C^-1 z and C is lower-triangular
    with `bands` diagonals.

    Forward
        [F1]  C_(t, t-j) = c_j; c_0 = 1, c_j = c_(j-1) (2j - 1) / (2j) for j < b, all divided by the
              norm of (c_0 .. c_(b-1))
        [F2]  y_t = (z_t - sum_(0 < j < b) c_j y_(t-j)) / c_0 for each coordinate, z standard normal

    Sensitivity
        [S1]  as of the noise z: the releases G + y are C^-1 (C G + z). The columns of C have norm 1
              at most, and those of steps at least b apart are orthogonal, so that C G moves by an
              example's gradients of different steps in different directions

    Source
        [F1]  the square root of the matrix of prefix sums: Fichtenberger, Henzinger, Upadhyay 2023,
              arXiv:2202.11205, cut at b
        [F2] [S1]  Choquette-Choo et al. 2023, arXiv:2306.08153

    Guarantees
        y is private noise: it stays in memory. A run with a seed that is resumed draws it again
        from the first step on; without a seed a new block begins, whose noise does not follow from
        that before, and is charged as such.
    """

    bands: int

    def __post_init__(self):
        count(1, bands=self.bands)

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """(bands,) c_0 to c_(b-1)."""
        ratios = [(2 * j - 1) / (2 * j) for j in range(1, self.bands)]  # [F1]
        c = np.cumprod([1.0, *ratios])
        return c / np.linalg.norm(c)  # [F1] [S1]

    def start(self) -> Correlated:
        """The noise of a block of steps, from its first on."""
        return Correlated(self.coefficients)


class Correlated:
    """What stands for the `Draws` of one step after the other: normal numbers y in place of z.

    spread   standard deviation of y_t
    """

    def __init__(self, coefficients: NDArray[np.float64]):
        self._c, self.spread = coefficients, 0.0
        self._past: list[deque] = []  # of each array that gets noise: its last y, the newest first
        self._answer: deque[float] = deque(maxlen=len(coefficients) - 1)  # y for z = 1, 0, 0, ...

    def __reduce__(self):
        raise ParameterError(
            "correlated noise is neither pickled nor copied: it could be subtracted"
        )

    def step(self, draws: Draws) -> Correlated:
        """The noise of the next step, from its numbers."""
        self._draws, self._at = draws, 0
        answer = (
            float(not self.spread) - sum(c * w for c, w in zip(self._c[1:], self._answer))
        ) / self._c[0]
        self.spread = math.hypot(self.spread, answer)
        self._answer.appendleft(answer)
        return self

    def at(self, start: int, size: int) -> Correlated:
        """As `Draws.at`."""
        self._draws.at(start, size)
        return self

    def add_normals(
        self,
        out: NDArray,
        std: float,
        grid: float,
        before: Callable[[slice], NDArray],
        after: Callable[[slice, NDArray], None],
    ) -> None:
        """As `Draws.add_normals`. The arrays of each step come in the same order."""
        if self._at == len(self._past):
            self._past.append(deque(maxlen=len(self._c) - 1))
        past, y = self._past[self._at], np.zeros(out.size)
        self._at += 1

        def correlate(place, z):  # z becomes y
            for c, earlier in zip(self._c[1:], past):
                z -= c * earlier[place]  # [F2]
            z /= self._c[0]  # [F2]
            after(place, rounded(before(place) + std * z, grid))

        self._draws.add_normals(y, 1.0, after=correlate)
        past.appendleft(y)
