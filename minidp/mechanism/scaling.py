"""Noisy centre and spread of features, for data whose ranges are not public."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import to_host
from ..privacy.events import Gaussian
from ..streams import Draws
from ..units import Rows, Units
from ..util.validate import count, non_negative_finite
from .noise import add_gaussian

LOWEST, HIGHEST = -30, 30  # exponents of two between which magnitudes are told apart
LEAST_SPREAD = 1 / 16  # of a feature's limit: a noisy variance may come out at nothing
BLOCK_BYTES = 2**24
BITS = 14  # of z
QUANTUM = 4.0**-BITS  # counts and moments are multiples of it


@dataclass(frozen=True)
class PrivateScaling:
    r"""Mean and spread of each feature, from two noisy releases, without public knowledge of the
    features.

    Shapes
        x (N, ...), D features in all   magnitudes (D, 61)   limits, mean, spread (D,)   moments (2,
                                        D)   all float64

    Forward
        [F1]  count_de = sum_n [e = max(-30, min(30, 1 + floor(log2 |x_nd|)))]    rows with 2^(e-1)
              <= |x_nd| < 2^e, e held between -30 and 30; 0 counts at -30
        [F2]  limit_d = 2^(e_d + 1)    e_d the exponent with the largest noisy count
        [F3]  raw_1d = sum_n z_nd, raw_2d = sum_n z_nd^2,
              z_nd = 2^-14 rint(2^14 max(-1, min(1, x_nd / limit_d)))    sums are exact
        [F4]  centre_d = limit_d m_1d, spread_d = limit_d max(1/16, sqrt(m_2d - m_1d^2))    m =
              noisy moments / N, held between -1 and 1
        [F5]  released_kd = q rint((raw_kd + sigma S z_kd) / q)    z_kd ~ N(0, 1), independent, in
              both releases, S the sensitivity: rounded to a grid q

    Sensitivity
        [S1]  S_1 = sqrt D    of the counts, if a row is added, removed or zeroed
        [S2]  S_2 = sqrt(2 D)    of the moments

    Event
        [S3]  each release Gaussian(sigma), all rows used (q = 1); the second may depend on the
              first

    Source
        [F1]  in the manner of Karwa and Vadhan 2018, arXiv:1711.03908, section 3: a noisy histogram
              of magnitudes
        [S1]  own derivation: a row adds 1 to one count of each feature
        [S2]  own derivation, for each feature: z^2 + z^4 <= 2; the means of a person's rows are in
              the convex hull of such points, and the cut shortens them

    Guarantees
        Of a person with m rows each counts 1 / m, rounded down to a multiple of 2^-28, and her
        moments are the means over her rows, cut to such multiples towards zero.
        A row that is not finite is left out of both, and so is a person with such a row. N is the
        public number of rows, or of persons.
    """

    noise_multiplier: float

    def __post_init__(self):
        non_negative_finite(scaling_noise_multiplier=self.noise_multiplier)

    def event(self) -> Gaussian:
        """The event of each of the two releases."""
        return Gaussian(self.noise_multiplier)  # [S3]

    def count_sensitivity(self, features: int) -> float:
        """L2 sensitivity of the counts."""
        return math.sqrt(features)  # [S1]

    def moment_sensitivity(self, features: int) -> float:
        """L2 sensitivity of the moments."""
        return math.sqrt(2 * features)  # [S2]

    def release_limits(self, x: Any, draws: Draws, units: Units | None = None) -> NDArray:
        """(D,) powers of two that bound most values of each feature; draws: the numbers of this
        release alone; units: of these rows; None: each row is one.
        """
        raw = raw_magnitudes(x, units)
        released = self._release(raw, self.count_sensitivity(len(raw)), draws)
        return 2.0 ** (released.argmax(axis=1) + LOWEST + 1)  # [F2]

    def release_moments(
        self,
        x: Any,
        limits: NDArray,
        draws: Draws,
        units: Units | None = None,
    ) -> NDArray:
        """(2, D) sums of z and z^2 with noise."""
        return self._release(
            raw_moments(x, limits, units), self.moment_sensitivity(len(limits)), draws
        )

    def _release(self, raw, sensitivity, draws):
        noise_std = self.noise_multiplier * sensitivity * (1 + 2.0**-50)  # rounded up
        return add_gaussian(raw, noise_std, draws)  # [F5]


def centre_and_spread(
    limits: NDArray, moments: NDArray, dataset_size: int
) -> tuple[NDArray, NDArray]:
    """(mean, spread), (D,) each, of what was released."""
    count(1, dataset_size=dataset_size)
    first, second = np.clip(moments / dataset_size, -1, 1)
    spread = np.sqrt(np.maximum(second - first**2, LEAST_SPREAD**2))  # [F4]
    return limits * first, limits * spread  # [F4]


def raw_magnitudes(x: Any, units: Units | None = None) -> NDArray:
    """(D, exponents) counts of x; private until noise is added."""
    raw = np.zeros((math.prod(x.shape[1:]), HIGHEST - LOWEST + 1))
    feature = np.arange(len(raw))
    for rows, share in _finite_units(x, units):
        exponents = (
            np.where(rows == 0, LOWEST, np.clip(np.frexp(rows)[1], LOWEST, HIGHEST)) - LOWEST
        )
        counts = np.floor(share / QUANTUM) * QUANTUM
        for each, counted in zip(exponents[share > 0], counts[share > 0]):
            raw[feature, each] += counted  # [F1]
    return raw


def raw_moments(x: Any, limits: NDArray, units: Units | None = None) -> NDArray:
    """(2, D) sums of x / limits and its square, held between -1 and 1; private until noise is
    added.
    """
    count(0, 2 ** (62 - 2 * BITS), rows=x.shape[0])  # whose sum an int64 holds
    raw = np.zeros((2, len(limits)), np.int64)
    for rows, share in _finite_units(x, units):
        z = np.rint(np.clip(rows / limits, -1, 1) * 2.0**BITS).astype(np.int64)
        z[share == 0] = 0
        held = (share > 0).sum(axis=1)[:, None]
        raw[0] += _mean(z.sum(axis=1) << BITS, held).sum(axis=0)  # [F3]
        raw[1] += _mean((z * z).sum(axis=1), held).sum(axis=0)  # [F3]
    return np.clip(raw, -(2**53), 2**53) * QUANTUM  # float64 has these exactly


def _mean(total, held):
    """Whole-number means, towards zero."""
    return np.sign(total) * (np.abs(total) // held)


def _finite_units(x, units):
    """(rows (B, T, D) float64 on the host, share (B, T)) of the units whose rows are all finite, in
    blocks of bounded memory.
    """
    size = math.prod(x.shape[1:])
    units = Rows(x.shape[0]) if units is None else units
    for rows, share in units.blocks(x, max(1, BLOCK_BYTES // (8 * max(1, size)))):
        rows = to_host(rows).reshape((*share.shape, size)).astype(np.float64)
        finite = np.isfinite(rows).all(axis=(1, 2))
        yield rows[finite], share[finite]
