"""The mean of bounded rows, released with noise, to be subtracted from them."""

import math

import numpy as np
from numpy.typing import NDArray

from ..backend import to_host
from ..errors import ParameterError
from ..grads.forms import Explicit
from ..mechanism.clip import ClipGroup
from ..mechanism.rounding import in_blocks, products
from ..mechanism.sanitizer import Sanitizer
from ..streams import Draws
from ..util.validate import MOST_COUNT, count, non_negative_finite

MEAN = ("rows", "mean")
ROWS = 1024  # at a time


def mean_sanitizer(noise_multiplier: float, row_norm: float = 1.0) -> Sanitizer:
    """The sanitizer for `noisy_mean`: it clips rows to the norm `row_norm`. Charge its `event`."""
    return Sanitizer([ClipGroup("all", [MEAN], row_norm, noise_multiplier)])


def noisy_mean(rows: NDArray, sanitizer: Sanitizer, size: int, draws: Draws) -> NDArray:
    """Mean of rows (N, D) with noise, shrunk towards zero by `shrunk`: (D,) float64 on the host.

    size: the public N. The noise covers the rounding of the sum, so that the sanitizer's event
    needs no factor: the noise of more than about 380,000 rows is multiplied by
    `rounding.in_blocks`. Raises ParameterError for more rows than the public size allows.
    """
    count(1, MOST_COUNT, size=size)
    factor = _noise_factor(rows.shape[0], size)
    raw = np.zeros(rows.shape[1:])
    # blocks are summed one by one, which keeps chains of roundings short for any number of rows
    for start in range(0, rows.shape[0], ROWS):
        raw += to_host(sanitizer.add_clipped({MEAN: Explicit(rows[start : start + ROWS])})[MEAN])
    released = sanitizer.release({MEAN: raw / factor}, draws)[MEAN] * factor / size
    return shrunk(released, sanitizer.groups[0].noise_std * factor / size)


def _noise_factor(rows, size):
    """The factor of the noise that covers the rounding of a sum of so many rows."""
    most = 2 * products(size, "explicit").most
    factor = in_blocks(most, ROWS)
    if in_blocks(rows, ROWS) > factor:
        raise ParameterError(
            f"noisy_mean: got {rows:,} rows for the public size={size:,}: the sum of so many is "
            f"rounded by more than is charged for {most:,} rows; set size to the public number of "
            "rows"
        )
    return factor


def shrunk(mean: NDArray, noise_std: float) -> NDArray:
    r"""Shrink a released vector towards zero by the part of its length that noise explains.

    This costs nothing, because the vector has been released. A vector of noise alone becomes zero,
    and subtracting it then changes nothing.

    Shapes
        mean (D,)   noise_std a number, of each coordinate

    Forward
        [F1]  m <- m max(0, 1 - max(0, D - 2) s^2 / |m|^2)    D <= 2 changes nothing

    Source
        [F1]  James and Stein 1961, in the positive-part form of Baranchik 1970
    """
    non_negative_finite(noise_std=noise_std)
    square = float((mean * mean).sum())
    explained = max(len(mean) - 2, 0) * noise_std**2
    return mean * (
        max(0.0, 1 - explained / square) if math.isfinite(square) and square > 0 else 0.0
    )  # [F1]


def shrunk_by_column(
    w: NDArray, columns: NDArray, noise_std: float, part: float
) -> tuple[NDArray[np.float64], list[int]]:
    """(shrunk weights, numbers of columns that may be noise alone) of released weights (I, K) of K
    classes.

    The mean of the weights over the classes is subtracted, which changes no probability. The
    weights of each column are shrunk by `shrunk` as if they had `part` of the noise's variance. A
    column may be noise alone if its squares sum to less than two standard deviations above the sum
    of squared noise. columns: (I,) the column of each input.
    """
    w = w - w.mean(axis=1, keepdims=True, dtype=np.float64)
    # subtracting the mean removed its part of the noise
    std = noise_std * math.sqrt(1 - 1 / w.shape[1])
    noise = []
    for each in np.unique(columns):
        mine = columns == each
        alone = w[mine].size * std**2
        if (w[mine] ** 2).sum() <= alone * (1 + 2 * math.sqrt(2 / (mine.sum() * (w.shape[1] - 1)))):
            noise.append(int(each))
        w[mine] = shrunk(w[mine].ravel(), math.sqrt(part) * std).reshape((-1, w.shape[1]))
    return w, noise
