"""Projections of the input: differentially private PCA (Section 4 of the paper) and a random
one.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import namespace_of, to_host, zero_rows_unless
from ..errors import ParameterError
from ..host.threads import single_blas
from ..privacy.events import Gaussian
from ..streams import Draws
from ..units import Rows, Units
from ..util.validate import count, inexact, non_negative_finite, shape
from .noise import add_gaussian

BATCH_ROWS = 8192
# of a unit row's coordinates. Sums of products over that many rows are whole numbers below 2^53, so
# they are exact in every order
BITS = 16
QUANTUM = 4.0**-BITS  # second moments are multiples of it


@dataclass(frozen=True)
class PrivatePCA:
    r"""Top principal directions of the noisy second-moment matrix of unit rows ("Analyze Gauss").

    Shapes
        x (N, D)   raw second moments (D, D) float64   projection (D, dimensions) float32, on the
                   host

    Forward
        [F1]  a_ni = 2^-16 trunc(2^16 x_ni / |x_n|) where 0 < |x_n| < inf, else 0    cut to 16 bits:
              sums are exact; a row that is zero or not finite becomes zero
        [F2]  G_ij = sum_n a_ni a_nj
        [F3]  released_ii = q_ii rint((G_ii + sigma_p z_ii) / q_ii),
              released_ij = q_ij rint((G_ij + sigma_p z_ij / sqrt 2) / q_ij) where i < j,
              else released_ji    z_ij ~ N(0, 1), i <= j, all independent: rounded to grids q
        [F4]  the eigenvectors of the `dimensions` largest eigenvalues, as columns

    Sensitivity
        [S1]  S = 1    of G in the Frobenius norm: |a a^T|_F = |a|^2 <= 1, if a row is added,
              removed or zeroed

    Event
        [S2]  m = sigma_p / S    Gaussian(m), all rows used. In the orthonormal basis E_ii, (E_ij +
              E_ji)/sqrt 2 of the symmetric matrices, the noise has variance sigma_p^2 in each
              direction.

    Source
        [F1]  Abadi et al. 2016, Section 4, "Differentially private PCA"
        [F3]  Dwork, Talwar, Thakurta, Zhang 2014, "Analyze Gauss", Algorithm 1, with the noise of
              the 2016 code (tensorflow/models, dp_pca), whose mean with its transpose has sigma_p /
              sqrt 2 off the diagonal
        [S1]  own derivation: a person adds a positive semi-definite matrix of trace at most 1,
              whose norm is at most 1

    Guarantees
        If a person has m rows, each a_n is divided by sqrt m before it is cut; if one of these rows
        is not finite, all of them become zero. Nothing else is computed from the data: no mean, no
        scale. The projection applies to the original rows, not to the unit rows. sigma_p = 0 draws
        no noise and is not private.

    Raises
        ParameterError   sigma_p is negative or not finite, dimensions above D
        ShapeError       x is not a matrix

    >>> from minidp.streams import Streams
    >>> x, streams = np.random.default_rng(0).standard_normal((1000, 20)), Streams(1)
    >>> model = PrivatePCA(3, noise_multiplier=8.0)
    >>> model.event()  # goes to a ledger first
    Gaussian(noise_multiplier=8.0)
    >>> model.release(model.raw_second_moments(x), streams.noise("pca")).shape
    (20, 3)
    """

    dimensions: int
    noise_multiplier: float

    def __post_init__(self):
        count(1, dimensions=self.dimensions)
        non_negative_finite(pca_noise_multiplier=self.noise_multiplier)

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity of the second-moment matrix."""
        return 1.0  # [S1]

    def event(self) -> Gaussian:
        """The event of `release`."""
        return Gaussian(self.noise_multiplier / self.sensitivity)  # [S2]

    def raw_second_moments(self, x: NDArray, units: Units | None = None) -> NDArray[np.float64]:
        """G (D, D), float64 on the host; private until `release` adds noise. units: persons of
        these rows; None if each row is a unit.
        """
        if x.dtype != "float16":  # which is float64 below
            inexact("PrivatePCA", x=x)
        shape("PrivatePCA", "x", x, ("N", "D"))
        if self.dimensions > x.shape[1]:
            raise ParameterError(
                f"expected pca_dim={self.dimensions} to be at most the {x.shape[1]} inputs"
            )
        count(0, 2 ** (62 - 2 * BITS), rows=x.shape[0])
        raw = np.zeros((x.shape[1], x.shape[1]), np.int64)
        units = Rows(x.shape[0]) if units is None else units
        for some, share in units.blocks(x, BATCH_ROWS):
            rows = unit_rows(some, share) * 2.0**BITS
            raw += to_host(rows.T @ rows).astype(np.int64)  # [F2]
        # limited to what float64 holds exactly, which brings no two neighbours further apart
        return np.clip(raw, -(2**53), 2**53).astype(np.float64) * QUANTUM

    def noisy_second_moments(self, raw: NDArray, draws: Draws) -> NDArray[np.float64]:
        """(D, D) second moments with noise. Only this is released; results computed from it cost
        nothing more.
        """
        released, sigma = np.empty_like(raw), self.noise_multiplier
        diagonal, above = np.diag_indices(len(raw)), np.triu_indices(len(raw), 1)
        off = sigma * math.sqrt(0.5)
        off = math.nextafter(off, math.inf) if off else 0.0  # rounded up
        released[diagonal] = add_gaussian(raw[diagonal], sigma, draws)  # [F3]
        released[above] = released[above[::-1]] = add_gaussian(raw[above], off, draws)  # [F3]
        return released

    def release(self, raw: NDArray, draws: Draws) -> NDArray[np.float32]:
        """The projection (D, dimensions), from noisy second moments."""
        return principal_directions(self.noisy_second_moments(raw, draws), self.dimensions)


def unit_rows(x: NDArray, share: NDArray) -> NDArray:
    """float64 rows scaled to norm 1 and cut to multiples of 2^-BITS, towards zero; zero and
    non-finite rows become zero.

    share: (B, T) on the host, the squared norms of the rows of B units with up to T rows each. If
    one row of a unit is not finite, all of its rows become zero.
    """
    xp = namespace_of(x)
    x = x.astype(xp.float64)
    largest = xp.abs(x).max(axis=1)  # not finite where a row holds something that is not
    finite = xp.isfinite(largest)
    largest = xp.where(finite & (largest > 0), largest, x.dtype.type(1))
    # so that squares neither overflow nor vanish
    x = zero_rows_unless(finite, x) / largest[:, None]
    slack = 1 + (x.shape[1] + 8) * 2.0**-52
    norms = xp.sqrt((x * x).sum(axis=1) * slack)
    x = x / xp.where(norms > 0, norms, 1)[:, None]
    share = xp.asarray(share)
    share = xp.where(finite.reshape(share.shape).all(axis=1)[:, None], share, 0.0)
    x = x * xp.sqrt(share).ravel()[:, None]
    return xp.trunc(x * 2.0**BITS) * 2.0**-BITS  # [F1]


def principal_directions(symmetric: NDArray, dimensions: int) -> NDArray[np.float32]:
    """(D, dimensions) float32: eigenvectors of the largest eigenvalues, largest first.

    Their signs are arbitrary; the entry of largest size is made positive, so that a run can be
    repeated.
    """
    with single_blas():  # the same bits on any number of threads
        vectors = np.linalg.eigh(symmetric).eigenvectors[:, : -dimensions - 1 : -1]  # [F4]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(dimensions)])
    return np.ascontiguousarray(vectors * signs, dtype=np.float32)


def random_projection(inputs: int, dimensions: int, rng: Draws) -> NDArray[np.float32]:
    """Random projection (inputs, dimensions) float32, entries N(0, 1/dimensions), which keeps
    squared norms on average (Johnson and Lindenstrauss).

    It does not look at the data, so nothing is charged. Section 5.2 of the paper reports about
    92.5% with one.
    """
    count(1, inputs=inputs, dimensions=dimensions)
    return (rng.standard_normal((inputs, dimensions)) / math.sqrt(dimensions)).astype(np.float32)
