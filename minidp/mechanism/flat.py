"""Sums of all parameters in one array, so that a device releases them in one start of a kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from numpy.typing import NDArray

from .. import device
from ..device.launching import PARTS
from ..grads.forms import Arrays, Key
from ..host.chacha import STRETCH
from ..streams import Draws
from .noise import noise_grid


@dataclass(frozen=True)
class Layout:
    """Where each parameter lies in one array of `size` numbers: in the order of `shapes`, from a
    multiple of STRETCH on, as its numbers of the noise do. What lies between means nothing.
    """

    shapes: Mapping[Key, tuple[int, ...]]
    starts: Mapping[Key, int]
    size: int

    @classmethod
    def of(cls, params: Arrays, keys: Sequence[Key]) -> "Layout":
        """The layout of parameters in the order of the keys."""
        starts, size = {}, 0
        for key in keys:
            starts[key] = size
            size += -(-params[key].size // STRETCH) * STRETCH
        return cls({key: params[key].shape for key in keys}, starts, size)

    def views(self, flat: NDArray) -> Arrays:
        """{key: its part of the array, in its own shape}."""
        return {
            key: flat[self.starts[key] :][: prod(shape)].reshape(shape)
            for key, shape in self.shapes.items()
        }

    def laws(
        self, noise_stds: Mapping[Key, float], draws: Draws
    ) -> list[tuple[float, float, int, int]]:
        """(standard deviation, grid, first set of normal numbers, stretch behind the last) of
        consecutive stretches of the array, with the numbers that parameters one by one would take.
        """
        found: list[tuple[float, float, int, int]] = []
        for key, start in self.starts.items():
            std, size, at = noise_stds[key], prod(self.shapes[key]), start // STRETCH
            first, end = draws.take(size) if std else 0, at - (-size // STRETCH)
            if found and std == found[-1][0]:  # its numbers follow those of the parameter before
                first = found.pop()[2]
            found.append((std, noise_grid(std), first, end))
        return found


@dataclass(frozen=True)
class FlatSums:
    """The raw sum of a lot and its release, each of them one array on a device.

    layout, raw (size,) float64, out (size,) of the parameters' dtype
    """

    layout: Layout
    raw: NDArray
    out: NDArray

    def begin(self) -> "RawSum":
        """The raw sum of a step, of nothing yet. What a step before it left is overwritten by the
        first batch, so that what an exception left there is in no release.
        """
        return RawSum(self.layout.views(self.raw))

    def release(
        self,
        raw_sum: Arrays,
        noise_stds: Mapping[Key, float],
        draws: Draws,
        scale: float,
        theta: NDArray | None = None,
        rate: float = 0.0,
    ) -> None:
        """Write scale times the raw sum with noise to `out`, with the bits of `noise.released`.

        theta: parameters in one array, from which rate times the release is then subtracted.
        """
        for key, view in self.layout.views(self.raw).items():
            if not _same(raw_sum[key], view):
                view[...] = raw_sum[key]
        laws = self.layout.laws(noise_stds, draws)
        for at in range(0, len(laws), PARTS):
            some = laws[at : at + PARTS]
            start = laws[at - 1][3] if at else 0
            here = slice(start * STRETCH, some[-1][3] * STRETCH)
            ends = [(std, grid, first, end - start) for std, grid, first, end in some]
            part = None if theta is None else theta[here]
            raw, out = self.raw[here], self.out[here]
            device.release(draws.state(), ends, raw, out, scale, part, rate)


class RawSum(dict[Key, NDArray]):
    """{key: raw sum}, empty before the first batch; `views` are where new sums may be written."""

    def __init__(self, views: Arrays) -> None:
        super().__init__()
        self.views = views


def _same(array, view):
    return array.data.ptr == view.data.ptr and array.dtype == view.dtype
