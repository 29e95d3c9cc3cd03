"""The noise of a release, and the public grid that a release is rounded to.

Every release is a multiple of a public grid, far above the last bits of sum and noise.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..arrays import namespace_of, to_host
from ..compiled import kernel
from ..errors import ParameterError
from ..host.chacha import STRETCH
from ..streams import Draws, total_of
from ..util.validate import non_negative

FINENESS = 20  # bits of the noise's standard deviation that its grid resolves


def noise_grid(noise_std: float) -> float:
    r"""The grid that a release is rounded to: a power of two that follows from noise_std, which is
    public; 0 (no grid) without noise.

    Forward
        [F1]  g = max(2^(floor(log2 noise_std) - 20), 2^-1000) where noise_std > 0, else 0

    Source
        [F1]  own derivation: at most 2^-20 of the noise, so that rounding costs no accuracy, and
              far above the last bits of the sum and of the noise, which would show how they were
              added
    """
    return 2.0 ** max(math.frexp(noise_std)[1] - 1 - FINENESS, -1000) if noise_std else 0.0  # [F1]


def add_gaussian(
    raw: NDArray,
    noise_std: float,
    draws: Draws,
    others: Sequence[NDArray] = (),
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
) -> NDArray:
    r"""Release raw + N(0, noise_std^2 I).

    Shapes
        raw any shape, float32 or float64   noise_std a number, in the units of raw   others like
                                            raw, added to it first
        returns scale times the release, a new array of `dtype`, by default that of raw

    Forward
        [F1]  released = g rint((raw + noise_std z) / g)    z standard normal, independent in every
              coordinate, in float64, and then rounded to `dtype`
        [F2]  g = 2^(floor(log2 noise_std) - 20)    the grid (`noise_grid`, which also has limits)

    Source
        [F1]  Abadi et al. 2016, Algorithm 1, "Add noise"
        [F2]  Mironov 2012, CCS, "On significance of the least significant bits for differential
              privacy": rounding after the noise was added costs no privacy

    Guarantees
        noise_std 0 draws nothing. The noise of an array on a GPU is drawn there, or on the host and
        copied, with the same bits. The known attacks on the low-order bits of noise fail; this is
        evidence, not proof.

    Raises
        ParameterError   noise_std is negative, infinite or not a number
    """
    return released([raw], [noise_std], draws, [others], scale, dtype)[0]  # [F1] [F2]


def released(
    raws: Sequence[NDArray],
    noise_stds: Sequence[float],
    draws: Draws,
    others: Sequence[Sequence[NDArray]] = (),
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
) -> list[NDArray]:
    """Add normal noise to each raw sum, each with its own standard deviation, and multiply by
    scale. others: for each raw sum, more sums that are added to it first.
    """
    for noise_std in noise_stds:
        non_negative(noise_std=noise_std)
        if math.isinf(noise_std):
            raise ParameterError("expected a finite noise_std: noise needs a finite clip norm")
    return [
        _released([raw, *rest], noise_std, draws, scale, dtype or raw.dtype)
        for raw, noise_std, rest in zip(raws, noise_stds, others or [()] * len(raws))
    ]


def _released(parts, noise_std, draws, scale, dtype):
    """Add the parts and noise, multiply by scale, on the parts' own device; the noise is drawn on
    the host unless the device has a kernel.
    """
    xp = namespace_of(*parts)
    if xp is not np:
        total = total_of(parts)
        if add_normals := kernel("add_normals", total):
            if noise_std:
                begin = draws.take(total.size) * STRETCH
                add_normals(draws.state(), begin, noise_std, noise_grid(noise_std), total)
            return (total * scale).astype(dtype)
    return xp.asarray(on_host(parts, noise_std, draws, scale, dtype))


def on_host(
    parts: Sequence[NDArray],
    noise_std: float,
    draws: Draws,
    scale: float,
    dtype: DTypeLike,
    place: tuple[int, int] | None = None,
) -> NDArray:
    """scale times the sum of the parts with noise, as `dtype`.

    place: (start, size) if the parts begin at `start` in flat arrays of that size.
    """
    sums = [np.ascontiguousarray(to_host(part)) for part in parts]
    if not noise_std:
        return (total_of(sums) * scale).astype(dtype)
    result = np.empty(parts[0].shape, dtype)
    begin, size = place or (0, result.size)
    where = draws.take(size), begin
    draws.add_normals(result, noise_std, noise_grid(noise_std), where, sums, scale)
    return result
