"""The noise of a release, and the charge for its law's distance from a Gaussian."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .. import given
from ..arrays import namespace_of, to_host
from ..errors import ParameterError
from ..exact.laws import Normals
from ..host.chacha import STRETCH
from ..privacy.events import Composed, Event, TotalVariation
from ..streams import SHARD, Draws

Law = Any  # Normals, or in exact arithmetic exact.integers.Integers


def charged(event: Event, numbers: int, *laws: Law) -> Event:
    """The event of a release of so many numbers, with the distance of its noise's laws added."""
    distance = max(law.distance for law in laws)
    return beside(event, TotalVariation(distance, numbers) if distance else None)


def beside(event: Event, variation: TotalVariation | None, releases: int = 1) -> Event:
    """An event of so many releases, with the distance of each one's noise added, if it has any."""
    if variation is None:
        return event
    parts = event.events if isinstance(event, Composed) else (event,)
    return Composed((*parts, replace(variation, count=variation.count * releases)))


def add_noise(raw: NDArray, law: Law, draws: Draws) -> NDArray:
    """raw (float64, on the host), a multiple of the law's quantum, plus its noise; `charged` gives
    the cost.
    """
    return released([law.in_units(raw)], [law], draws)[0]


def add_integers(
    raw: NDArray,
    units: float,
    grid: float,
    draws: Draws,
    others: Sequence[NDArray] = (),
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
) -> NDArray:
    r"""Release in exact arithmetic: grid (raw + Z), Z discrete Gaussian numbers whose standard
    deviation is `units`.

    Shapes
        raw any shape, float64 whole numbers   others like raw, added to it first   units 0, or 2^28
                                               to 2^42
        returns scale times the release, a new array of `dtype`, by default that of raw

    Forward
        [F1]  released = g (raw + Z)    Z of independent coordinates

    Source
        [F1]  Abadi et al. 2016, Algorithm 1, "Add noise", in whole multiples of g; the law of Z,
              and how far it is from that of rounded Gaussian numbers, are in host.discrete

    Guarantees
        raw is whole, so raw + round(N) = round(raw + N): the Gaussian mechanism, rounded, but for
        that distance.
    """
    return released([raw], [given.Integers(units, grid)], draws, [others], scale, dtype)[0]  # [F1]


def add_gaussian(
    raw: NDArray,
    noise_std: float,
    draws: Draws,
    others: Sequence[NDArray] = (),
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
) -> NDArray:
    r"""Release in ordinary arithmetic: raw + N(0, noise_std^2 I).

    Shapes
        raw any shape, float32 or float64   noise_std a number, in the units of raw   others like
                                            raw, added to it first
        returns scale times the release, a new array of `dtype`, by default that of raw

    Forward
        [F1]  released = g rint((raw + noise_std z) / g)    z standard normal, independent in every
              coordinate, in float64, and then rounded to `dtype`
        [F2]  g = 2^(floor(log2 noise_std) - 20)    the grid of noise_std (exact.laws.noise_grid)

    Source
        [F1]  Abadi et al. 2016, Algorithm 1, "Add noise"
        [F2]  Mironov 2012, CCS, "On significance of the least significant bits for differential
              privacy": what is rounded after the noise was added costs nothing

    Guarantees
        noise_std 0 draws nothing. The noise of an array on a GPU is drawn there, or on the host and
        copied: the same bits. The known attacks on the low-order bits of noise fail, which is
        evidence and no proof.

    Raises
        ParameterError   noise_std is negative, infinite or not a number
    """
    return released([raw], [Normals(noise_std)], draws, [others], scale, dtype)[0]  # [F1] [F2]


def released(
    raws: Sequence[NDArray],
    laws: Sequence[Law],
    draws: Draws,
    others: Sequence[Sequence[NDArray]] = (),
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
) -> list[NDArray]:
    """scale times each raw sum with the noise of its law; others: for each, sums that are added to
    it first.
    """
    for raw, law in zip(raws, laws):
        if isinstance(law, given.Integers) and raw.dtype.name != "float64":
            raise ParameterError(
                f"exact arithmetic: expected a raw sum of dtype float64, got {raw.dtype}"
            )
    return [
        _released([raw, *rest], law, draws, scale, dtype or raw.dtype)
        for raw, law, rest in zip(raws, laws, others or [()] * len(raws))
    ]


def _released(parts, law, draws, scale, dtype):
    """scale times the sum of the parts with noise, where they are; drawn on the host unless their
    device has a kernel.
    """
    xp = namespace_of(*parts)
    if xp is not np and not law.units:
        total = parts[0].astype("float64", order="C")
        if add_normals := given.kernel("add_normals", total):
            for part in parts[1:]:
                total += part
            if law.std:
                first = draws.take(total.size, law.sets)
                add_normals(draws.state(), first * STRETCH, law.std, law.grid, total)
            return (total * scale).astype(dtype)
    return xp.asarray(on_host(parts, law, draws, scale, dtype))


def on_host(
    parts: Sequence[NDArray],
    law: Law,
    draws: Draws,
    scale: float,
    dtype: DTypeLike,
    place: tuple[int, int] | None = None,
) -> NDArray:
    """scale times the sum of the parts with noise, stretch by stretch, as `dtype`.

    place: (start, size) where the parts are from `start` on of flat arrays of that size.
    """
    sums = [np.ascontiguousarray(to_host(part)).reshape(-1) for part in parts]
    result = np.empty(parts[0].shape, dtype)
    flat = result.reshape(-1)
    begin, size = place or (0, flat.size)
    first = draws.take(size, law.sets) if law.std else 0

    def add(at):
        span = slice(at, at + SHARD)
        stretch = sums[0][span].astype(np.float64)
        for part in sums[1:]:
            stretch += part[span]
        if law.std:
            law.add(draws, stretch, (first, begin + at))
        np.multiply(stretch, scale * law.unit, out=flat[span], casting="same_kind")

    given.map_parallel(add, range(0, flat.size, SHARD))
    return result
