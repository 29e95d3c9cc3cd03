"""The Gaussian noise of a release."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..backend import namespace_of, to_host
from ..errors import ParameterError
from ..exact.arithmetic import ORDINARY
from ..kernels import kernel
from ..privacy.events import Composed, Event, TotalVariation
from ..streams import Draws
from ..util.validate import in_range, non_negative

FINENESS = 20  # bits of the noise's standard deviation that its grid resolves
INTEGERS = 32  # bits of it that the grid of integer noise resolves, at least
MOST = 2.0**52  # units of such a grid: float64 holds these integers, and with noise


def noise_grid(noise_std: float) -> float:
    r"""The grid that a release is rounded to: a power of two, public as noise_std is; 0, no grid,
    without noise.

    Forward
        [F1]  g = 2^(floor(log2 noise_std) - 20), at least 2^-1000

    Source
        [F1]  own derivation: at most 2^-20 of the noise, so that rounding costs no accuracy, and
              far above the last bits of the sum and of the noise, which would tell how they were
              added
    """
    return 2.0 ** max(math.frexp(noise_std)[1] - 1 - FINENESS, -1000) if noise_std else 0.0  # [F1]


def integer_grid(noise_std: float, quantum: float) -> float:
    r"""The grid of integer noise on multiples of `quantum`, a power of two.

    Forward
        [F1]  g = min(quantum, 2^(floor(log2 noise_std) - 32))

    Source
        [F1]  own derivation: powers of two, so that a multiple of quantum is one of g, and raw / g
              is whole
    """
    return min(quantum, 2.0 ** (math.frexp(noise_std)[1] - 1 - INTEGERS))  # [F1]


def add_noise(
    raw: NDArray, noise_std: float, draws: Draws, arithmetic: str, quantum: float
) -> NDArray:
    """raw (float64, on the host) plus noise; `charged` says at what cost.

    exact: integer noise. raw holds multiples of `quantum`; holding them to 2^52 units moves no
    neighbours apart.
    """
    if arithmetic == ORDINARY:
        return add_gaussian(raw, noise_std, draws)
    grid = integer_grid(noise_std, quantum)
    return add_integers(np.clip(raw / grid, -MOST, MOST), noise_std / grid, grid, draws)


def charged(
    event: Event, numbers: int, arithmetic: str, quantum: float, *noise_stds: float
) -> Event:
    """What `numbers` released by `add_noise` cost: the event, in exact arithmetic beside its
    noise's distance.

    Raises ParameterError in exact arithmetic where noise_std is above 2^42 quanta.
    """
    if arithmetic == ORDINARY or not all(noise_stds):
        return event
    from ..host.discrete import MOST as MOST_UNITS
    from ..host.discrete import total_variation

    in_range(0, MOST_UNITS * quantum, exact_arithmetic_noise_std=max(noise_stds))
    tau = max(total_variation(std / integer_grid(std, quantum)) for std in noise_stds)
    return Composed((event, TotalVariation(tau, numbers)))


def add_integers(
    raw: NDArray,
    units: float,
    grid: float,
    draws: Draws,
    others: Sequence[NDArray] = (),
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
) -> NDArray:
    r"""grid (raw + Z), Z discrete Gaussian numbers of standard deviation `units`: released in exact
    arithmetic.

    Shapes
        raw any shape, float64 whole numbers   others like raw, added to it first   units 0, or 2^28
                                               to 2^42
        returns scale times the release, a new array of `dtype`, by default that of raw

    Forward
        [F1]  released = g (raw + Z), Z of independent coordinates

    Source
        [F1]  Abadi et al. 2016, Algorithm 1, "Add noise", in whole multiples of g; the law of Z,
              and how far it is from that of rounded Gaussian numbers, are in host.discrete

    Guarantees
        raw is whole, so raw + round(N) = round(raw + N): the Gaussian mechanism, rounded, but for
        that distance.
    """
    if raw.dtype.name != "float64":
        raise ParameterError(
            f"exact arithmetic: expected a raw sum of dtype float64, got {raw.dtype}"
        )
    if on_device([raw], draws):
        return released_on_device(
            [raw], [(1.0 if units else 0.0, 0.0)], draws, [others], grid * scale, dtype, units
        )[0]
    add = (
        (lambda flat, before, after: draws.add_integers(flat, units, before, after))
        if units
        else None
    )
    return _released(raw, others, grid * scale, dtype, add)  # [F1]


def add_gaussian(
    raw: NDArray,
    noise_std: float,
    draws: Draws,
    others: Sequence[NDArray] = (),
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
) -> NDArray:
    r"""raw + N(0, noise_std^2 I): from here on it is released.

    Shapes
        raw any shape, float32 or float64   noise_std a number, in the units of raw   others like
                                            raw, added to it first
        returns scale times the release, a new array of `dtype`, by default that of raw

    Forward
        [F1]  released = raw + noise_std z, z standard normal, independent in every coordinate, in
              float64
        [F2]  rounded to the grid of noise_std, and then to `dtype`

    Source
        [F1]  Abadi et al. 2016, Algorithm 1, "Add noise"
        [F2]  Mironov 2012, CCS, "On significance of the least significant bits for differential
              privacy": what is rounded after the noise was added costs nothing

    Guarantees
        noise_std 0 draws nothing. The noise of an array on a GPU is drawn and added there: the same
        bits. The known attacks on the low-order bits of noise find nothing; it is not a proof.

    Raises
        ParameterError   noise_std is negative, infinite or not a number
    """
    non_negative(noise_std=noise_std)
    if math.isinf(noise_std):
        raise ParameterError("expected a finite noise_std: noise needs a finite clip norm")
    if on_device([raw], draws):
        return released_on_device(
            [raw], [(noise_std, noise_grid(noise_std))], draws, [others], scale, dtype
        )[0]
    add = (
        (lambda flat, *around: draws.add_normals(flat, noise_std, noise_grid(noise_std), *around))
        if noise_std
        else None
    )  # [F2]
    return _released(raw, others, scale, dtype, add)  # [F1]


def on_device(raws: Sequence[NDArray], draws: Draws) -> bool:
    """True if `released_on_device` does it; noise of a part of an array is drawn on the host."""
    return type(draws) is Draws and draws.part is None and kernel("release", *raws) is not None


def released_on_device(
    raws: Sequence[NDArray],
    laws: Sequence[tuple[float, float]],
    draws: Draws,
    others: Sequence[Sequence[NDArray]],
    scale: float,
    dtype: DTypeLike | None,
    units: float = 0.0,
) -> list[NDArray]:
    """add_gaussian of arrays on a device, or add_integers where `units` is not 0, one after
    another, in one launch.

    laws: (noise_std, grid) of each   others: of each, added to it first
    """
    from ..host import discrete

    table, sums, xp = discrete.table(units) if units else None, [], namespace_of(*raws)
    for raw, (std, grid), rest in zip(raws, laws, others):
        total, sets = (
            xp.ascontiguousarray(sum(rest, raw), dtype="float64"),
            0 if not std else 1 if table is None else table.parts + 1,
        )
        sums.append(
            (
                total,
                xp.empty(raw.shape, dtype or raw.dtype),
                draws.take(raw.size, sets),
                sets,
                std,
                grid,
                scale,
            )
        )
    kernel("release", *raws)(sums, draws.state(), table)
    return [released for _, released, *_ in sums]


def _released(raw, others, scale, dtype, add):
    """scale times raw plus others plus what `add(flat, before, after)` adds on the host, stretch by
    stretch, as `dtype`.
    """
    sums = [np.ascontiguousarray(to_host(part)).reshape(-1) for part in (raw, *others)]
    released = np.empty(sums[0].size, dtype or raw.dtype)

    def added(place):
        stretch = sums[0][place].astype(np.float64)
        for part in sums[1:]:
            stretch += part[place]
        return stretch

    def convert(place, stretch):
        np.multiply(stretch, scale, out=released[place], casting="same_kind")

    if add:
        add(sums[0], added, convert)
    else:
        convert(slice(None), added(slice(None)))
    return namespace_of(raw).asarray(released).reshape(raw.shape)
