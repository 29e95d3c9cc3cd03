"""The law of noise in ordinary arithmetic; that of exact arithmetic is `integers`.

Every release is a multiple of a public grid, far above the last bits of sum and noise.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import NDArray

from ..errors import ParameterError
from ..streams import Draws
from ..util.validate import non_negative

FINENESS = 20  # bits of the noise's standard deviation that its grid resolves


def noise_grid(noise_std: float) -> float:
    r"""The grid that a release is rounded to: a power of two, public as noise_std is; 0, no grid,
    without noise.

    Forward
        [F1]  g = max(2^(floor(log2 noise_std) - 20), 2^-1000) where noise_std > 0, else 0

    Source
        [F1]  own derivation: at most 2^-20 of the noise, so that rounding costs no accuracy, and
              far above the last bits of the sum and of the noise, which would tell how they were
              added
    """
    return 2.0 ** max(math.frexp(noise_std)[1] - 1 - FINENESS, -1000) if noise_std else 0.0  # [F1]


@dataclass(frozen=True)
class Normals:
    """Normal numbers of deviation `std`, finite and at least 0; the sum is rounded to `grid`.

    In both laws a release is `unit` times (raw sum + noise). `units` is the deviation of integer
    noise, 0 for none. `distance` is a bound on the total variation distance between one number's
    law and the Gaussian that is charged; 0 where none is charged. `sets`: of random blocks, as
    `Draws.take` counts them.
    """

    std: float
    unit: ClassVar[float] = 1.0
    units: ClassVar[float] = 0.0
    distance: ClassVar[float] = 0.0
    sets: ClassVar[int] = 1

    def __post_init__(self):
        non_negative(noise_std=self.std)
        if math.isinf(self.std):
            raise ParameterError("expected a finite noise_std: noise needs a finite clip norm")

    @property
    def grid(self) -> float:
        """What a release is a multiple of; 0 for none."""
        return noise_grid(self.std)

    def in_units(self, raw: NDArray) -> NDArray:
        """A raw sum as this noise is added to it."""
        return raw

    def add(self, draws: Draws, out: NDArray, place: tuple[int, int]) -> None:
        """Add the noise to a part of a host array in place, as `Draws.add_normals` does."""
        draws.add_normals(out, self.std, self.grid, place)
