"""Sums of all parameters in one array, so that a device releases them in a few operations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from numpy.typing import NDArray

from ..compiled import kernel
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

    def runs(self, noise_stds: Mapping[Key, float], draws: Draws) -> list[list]:
        """[start, stop, standard deviation, first normal number] of stretches of the array whose
        noise differs in nothing but its place. It takes the numbers that parameters one by one
        would take.
        """
        found: list[list] = []
        for key, start in self.starts.items():
            std, size = noise_stds[key], prod(self.shapes[key])
            if not std:
                continue
            begin, stop = draws.take(size) * STRETCH, start - (-size // STRETCH) * STRETCH
            if found and found[-1][1:3] == [start, std]:
                found[-1][1] = stop
            else:
                found.append([start, stop, std, begin])
        return found


@dataclass(frozen=True)
class FlatSums:
    """The raw sum of a lot and its release, each of them one array on a device."""

    layout: Layout
    raw: NDArray  # (size,) float64
    out: NDArray  # (size,) of the parameters' dtype

    def zeroed(self) -> Arrays:
        """Views of the raw sum, which is set to zero: at the start of a step, so that what an
        exception left there is in no release.
        """
        self.raw.fill(0)
        return self.layout.views(self.raw)

    def release(self, noise_stds: Mapping[Key, float], draws: Draws, scale: float) -> Arrays:
        """{key: view of scale times the raw sum with noise}, with the bits of `noise.released`."""
        add_normals = kernel("add_normals", self.raw)
        for start, stop, std, begin in self.layout.runs(noise_stds, draws):
            add_normals(draws.state(), begin, std, noise_grid(std), self.raw[start:stop])
        raw = self.raw
        raw *= scale
        self.out[...] = self.raw
        return self.layout.views(self.out)
