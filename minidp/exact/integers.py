"""The law of noise in exact arithmetic: discrete Gaussian numbers in whole units of a grid."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..host.discrete import table, total_variation
from ..streams import Draws

INTEGERS = 32  # bits of the noise's standard deviation that its grid resolves, at least
MOST = 2.0**52  # units of such a grid: float64 holds these integers, and with noise


def integer_grid(noise_std: float, quantum: float) -> float:
    r"""The grid of integer noise on multiples of `quantum`, a power of two.

    Forward
        [F1]  g = min(quantum, 2^(floor(log2 noise_std) - 32))

    Source
        [F1]  own derivation: powers of two, so that a multiple of quantum is one of g, and raw / g
              is whole
    """
    return min(quantum, 2.0 ** (math.frexp(noise_std)[1] - 1 - INTEGERS))  # [F1]


@dataclass(frozen=True)
class Integers:
    """Discrete Gaussian numbers of deviation `units`: 0, or 2^28 to 2^42, times `unit`."""

    units: float
    unit: float

    @property
    def std(self) -> float:
        """What numbers drawn with deviation `units` are multiplied by before they are added."""
        return 1.0 if self.units else 0.0

    @property
    def grid(self) -> float:
        """What a release is a multiple of."""
        return self.unit

    @property
    def distance(self) -> float:
        return total_variation(self.units) if self.units else 0.0

    def in_units(self, raw: NDArray) -> NDArray:
        """Multiples of the unit, held to 2^52 of them, which moves no neighbours apart."""
        return np.clip(raw / self.unit, -MOST, MOST)

    @property
    def sets(self) -> int:
        """Sets of random blocks for 512 numbers."""
        return table(self.units).parts + 1

    def add(self, draws: Draws, out: NDArray, place: tuple[int, int]) -> None:
        """Add the noise to a part of a host array in place, as `Draws.add_integers` does."""
        draws.add_integers(out, self.units, place)
