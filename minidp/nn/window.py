"""Windows that slide over images: their places, their pixels, and the adjoint operation."""

import math
from copy import copy
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from ..backend import namespace_of
from ..compiled import kernel
from ..errors import ParameterError, ShapeError
from ..util.validate import count, one_of

SHORT = 64  # numbers in a row of a window, up to which a kernel copies it faster than NumPy
Padding = str | int | tuple[int, int]


def pair(least=1, **named):
    """(vertical, horizontal) from a pair, or from one integer for both. Raises ParameterError for a
    number below `least`.
    """
    ((name, value),) = named.items()
    both = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(both) != 2:
        raise ParameterError(f"expected {name}={value!r} to be an integer or a pair of them")
    for one in both:
        count(least, **{name: one})
    return tuple(map(int, both))


@dataclass(frozen=True)
class Window:
    """Sizes (vertical, horizontal) of a window and its steps, and the padding around the image.

    padding  "valid" none; "same" TensorFlow's rule: ceil(n / stride) windows, an odd row or column
             of padding goes below or to the right; an integer: the number of rows and columns on
             each side; or (vertical, horizontal) such numbers
    """

    size: tuple
    stride: tuple
    padding: Padding

    def __post_init__(self):
        if isinstance(self.padding, str):
            one_of(("same", "valid"), padding=self.padding)
        else:
            pair(0, padding=self.padding)

    def axis(self, n, k):
        """(windows, padding before, padding after) for n pixels along axis k (0 vertical, 1
        horizontal).
        """
        size, stride = self.size[k], self.stride[k]
        if self.padding == "same":
            windows = -(-n // stride)
            total = max((windows - 1) * stride + size - n, 0)
            return windows, total // 2, total - total // 2
        margin = 0 if self.padding == "valid" else pair(0, padding=self.padding)[k]
        return (n + 2 * margin - size) // stride + 1, margin, margin

    def output(self, where, input_shape):
        """(windows vertically, horizontally) over an image (H, W, ...). Raises ShapeError if none
        fits.
        """
        counts = self.axis(input_shape[0], 0)[0], self.axis(input_shape[1], 1)[0]
        if min(counts) < 1:
            raise ShapeError(
                f"{where}: expected images of at least the window {self.size} after padding "
                f"{self.padding}, got {tuple(input_shape)}"
            )
        return counts

    def around(self, shape):
        """((above, below), (left, right)): the padding of images of `shape` (B, H, W, ...)."""
        return self.axis(shape[1], 0)[1:], self.axis(shape[2], 1)[1:]

    def pad(self, x, value=0):
        """x (B, H, W, C) padded with `value`; x itself if there is no padding."""
        shape = self._padded(x.shape)
        if shape == x.shape:
            return x
        padded = namespace_of(x).full(shape, value, dtype=x.dtype)
        self.unpad(padded, x.shape)[...] = x
        return padded

    def unpad(self, padded, shape):
        """The adjoint of `pad`: cut images of `shape` (B, H, W, C) out of their padding."""
        (top, _), (left, _) = self.around(shape)
        return padded[:, top : top + shape[1], left : left + shape[2]]

    def slices(self, counts):
        """Yield for each place in the window an index of the pixels that the windows see there, in
        a padded image.
        """
        for places in product(*map(range, self.size)):
            seen = (
                slice(at, at + (n - 1) * step + 1, step)
                for at, n, step in zip(places, counts, self.stride)
            )
            yield slice(None), *seen

    def patches(self, x):
        """The `Patches` of images x (B, H, W, C)."""
        return Patches(self, x)

    def fold(self, patches, shape):
        """The adjoint of `Patches.cut`: dx of `shape` (B, H, W, C) from patches (B, H', W', kh, kw,
        C).
        """
        wide = self.size[1]
        return self._collect(
            "fold", shape, [patches], lambda n: patches[:, :, :, n // wide, n % wide]
        )

    def maxima(self, padded, counts):
        """(y, place), each (B, H', W', C): the largest number that each window sees of padded
        images, and the first place in the window that has it. NaN is larger than any number; of
        several NaN the last counts.
        """
        xp, shape = namespace_of(padded), (padded.shape[0], *counts, padded.shape[3])
        twin = kernel("pool", padded)
        if twin:
            y, place = xp.empty(shape, padded.dtype), xp.empty(shape, xp.uint16)
            twin(xp.ascontiguousarray(padded), y, place, self.geometry)
            return y, place
        y, place = xp.full(shape, -math.inf, padded.dtype), xp.zeros(shape, xp.uint16)
        for number, seen in enumerate(self.slices(counts)):
            larger = (padded[seen] > y) | (padded[seen] != padded[seen])
            y, place = xp.where(larger, padded[seen], y), xp.where(larger, number, place)
        return y, place

    def spread(self, dy, place, shape):
        """dx of `shape` (B, H, W, C): each window's dy goes to the place that `maxima` gave."""
        xp, none = namespace_of(dy), dy.dtype.type(0)
        return self._collect(
            "pool_gradient", shape, [dy, place], lambda n: xp.where(place == n, dy, none)
        )

    def _collect(self, name, shape, arrays, part):
        """dx of `shape`: each pixel sums part(place) over the windows that see it, where place is
        the pixel's number in the window. The compiled twin `name` computes it where the arrays have
        one.
        """
        first, xp = arrays[0], namespace_of(*arrays)
        if twin := kernel(f"{name}_image", first):  # which sees the padding where it is not
            (above, _), (left, _) = self.around(shape)
            dx = xp.empty(shape, first.dtype)
            twin(*map(xp.ascontiguousarray, arrays), dx, (*self.geometry, above, left))
            return dx
        counts, twin = first.shape[1:3], kernel(name, first)
        dx = (xp.empty if twin else xp.zeros)(self._padded(shape), first.dtype)
        if twin:
            twin(*map(xp.ascontiguousarray, arrays), dx, self.geometry)
        else:
            for number, seen in enumerate(self.slices(counts)):
                dx[seen] += part(number)
        return self.unpad(dx, shape)

    def _padded(self, shape):
        """The shape of images of `shape` (B, H, W, C) with their padding."""
        (top, bottom), (left, right) = self.around(shape)
        return shape[0], shape[1] + top + bottom, shape[2] + left + right, shape[3]

    @property
    def geometry(self):
        """Size and stride in one tuple, as kernels take them."""
        return (*self.size, *self.stride)


class Patches:
    """The patches of T windows over images: rows of kh kw C numbers, copied only when they are cut.

    Each of the kh rows of a window is one run of numbers in the padded images, so a view of them
    has all patches without a copy.
    """

    def __init__(self, window, x):
        """x: images (B, H, W, C)."""
        xp, channels = namespace_of(x), x.shape[3]
        self.counts = counts = window.output("patches", x.shape[1:])
        (down, right), (rows, columns) = window.stride, window.size
        self.window, self.x = window, x
        self.shape = prod(counts), rows * columns * channels
        self.twin = kernel("patches", x)  # which sees the padding where it is not
        if self.twin:
            return
        self.padded = xp.ascontiguousarray(window.pad(x))
        example, row, pixel, channel = self.padded.strides
        self.runs = xp.lib.stride_tricks.as_strided(
            self.padded,
            (x.shape[0], *counts, rows, columns * channels),
            (example, row * down, pixel * right, row, channel),
        )

    def of(self, examples):
        """The `Patches` of a slice of the examples."""
        part = copy(self)
        part.x = self.x[examples]
        if not self.twin:
            part.padded, part.runs = self.padded[examples], self.runs[examples]
        return part

    def cut(self, examples, turned=False):
        """A copy (b, T, kh kw C) of the patches of a slice of the examples. turned: if a device's
        kernel cuts them, put positions last in memory, in which order a product over positions
        reads.
        """
        if self.twin:
            return self._cut_by_twin(self.x[examples], turned)
        runs = self.runs[examples]
        twin = kernel("short_runs", self.padded)
        if twin and runs.shape[-1] <= SHORT:
            y = np.empty(runs.shape, runs.dtype)
            twin(self.padded[examples], y, self.window.geometry)
        else:
            y = _copied(runs)
        return y.reshape((y.shape[0], *self.shape))

    def _cut_by_twin(self, x, turned):
        xp, window = namespace_of(x), self.window
        (above, _), (left, _) = window.around(x.shape)
        y = xp.empty((x.shape[0], *(self.shape[::-1] if turned else self.shape)), x.dtype)
        geometry = *window.geometry, above, left, *self.counts
        self.twin(xp.ascontiguousarray(x), y, geometry, turned)
        return y.transpose(0, 2, 1) if turned else y


def _copied(runs):
    """A copy. NumPy copies a run up to twice as fast as one item than as many numbers."""
    if namespace_of(runs) is not np:
        return runs.copy()
    items = runs.view(np.dtype((np.void, runs.shape[-1] * runs.itemsize)))
    return items.copy().view(runs.dtype)
