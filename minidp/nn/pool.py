"""Pooling over windows of an image: the maximum or the mean, channel by channel."""
from math import prod
from typing import NamedTuple

import numpy as np

from ..backend import namespace_of
from ..errors import ShapeError
from ..validate import inexact, one_of, shape
from .layer import Layer
from .window import Window, pair


class MaxPoolCache(NamedTuple):
    """shape of the input, B included; place (B, H', W', C) of the first maximum within each window."""

    shape: tuple
    place: object


class AvgPoolCache(NamedTuple):
    """shape of the input, B included; share (H', W', 1) of one pixel in its window's mean."""

    shape: tuple
    share: object


class _Pool(Layer):
    """What the two have in common: windows over (B, H, W, C)."""

    def __init__(self, window, stride=None, padding="valid", name=None):
        """window and stride: an integer or (vertical, horizontal); stride None means the window itself."""
        super().__init__(name)
        one_of(("valid", "same"), padding=padding)
        size = pair(window=window)
        self.window = Window(size, size if stride is None else pair(stride=stride), padding)

    def output_shape(self, input_shape):
        """(H', W', C), given (H, W, C)."""
        if len(input_shape) != 3:
            raise ShapeError(f"{self.where}: expected input of shape (H, W, C), got {tuple(input_shape)}")
        return (*self.window.output(self.where, input_shape), input_shape[2])

    def _counts(self, x):
        inexact(self.where, x=x)
        shape(self.where, "x", x, ("B", "H", "W", "C"))
        return self.output_shape(x.shape[1:])[:2]


class MaxPool2D(_Pool):
    r"""The largest number in each window.

    Shapes
        x (B, H, W, C)   y (B, H', W', C)   windows may overlap; padding never wins

    Forward
        [F1]  y_btc = max over the pixels p of window t of x_bpc

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bpc = sum over the windows t whose first maximum is p of dy_btc

    Source
        [F1]  own derivation: the definition
        [B1]  own derivation: each output moves with the first maximum of its window only, so each pixel
              collects the gradients of the outputs that it moves

    Guarantees
        Ties: the first maximum of a window, in reading order, gets its gradient.

    Raises
        ShapeError      x is not (B, H, W, C), or smaller than a window
        DtypeError      x is not floating point
        ParameterError  window or stride below 1, padding neither valid nor same

    Checked by
        [F1]  tests/nn/test_layers.py::test_forward_equals_loop
        [B1]  tests/nn/test_layers.py::test_input_gradient
        [B1]  tests/nn/test_pool.py::test_ties_give_the_gradient_to_the_first_maximum
    """

    kind = "maxpool"

    def forward(self, x, *, rng=None):
        """(y, cache)."""
        counts = self._counts(x)
        xp, padded = namespace_of(x), self.window.pad(x, -float("inf"))
        y = place = None
        for n, (_, index) in enumerate(self.window.slices(counts)):
            seen = padded[index]
            if y is None:
                y, place = seen.copy(), xp.zeros(seen.shape, dtype=self._places)
            else:
                xp.maximum(place, (seen > y) * self._places(n), out=place)
                xp.maximum(y, seen, out=y)  # [F1]
        return y, MaxPoolCache(tuple(x.shape), place)

    @property
    def _places(self):
        """The smallest type that counts a window's pixels."""
        return np.min_scalar_type(prod(self.window.size) - 1).type

    def backward(self, dy, cache):
        """dx (B, H, W, C)."""
        self.check_gradient(dy, cache.place.shape)
        columns = self.window.size[1]
        part = lambda k, l: dy * (cache.place == k * columns + l)  # [B1]
        return self.window.fold(part, cache.shape, dy.dtype, namespace_of(dy, cache.place))


class AvgPool2D(_Pool):
    r"""The mean of each window over its pixels inside the image.

    Shapes
        x (B, H, W, C)   y (B, H', W', C)   n_t pixels of window t lie inside the image

    Forward
        [F1]  y_btc = (1 / n_t) sum over the pixels p of window t inside the image of x_bpc

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bpc = sum over the windows t that see p of dy_btc / n_t

    Source
        [F1]  own derivation: the definition
        [B1]  own derivation: the adjoint of [F1]

    Guarantees
        Padding does not count, as in TensorFlow.

    Raises
        ShapeError      x is not (B, H, W, C), or smaller than a window
        DtypeError      x is not floating point
        ParameterError  window or stride below 1, padding neither valid nor same

    Checked by
        [F1]  tests/nn/test_layers.py::test_forward_equals_loop
        [B1]  tests/nn/test_layers.py::test_input_gradient
    """

    kind = "avgpool"

    def forward(self, x, *, rng=None):
        """(y, cache)."""
        counts = self._counts(x)
        xp, padded = namespace_of(x), self.window.pad(x)
        down, across = (self.window.inside(n, k) for k, n in enumerate(x.shape[1:3]))
        share = xp.asarray([[[1 / (i * j)] for j in across] for i in down], dtype=x.dtype)
        y = sum(padded[index] for _, index in self.window.slices(counts)) * share  # [F1]
        return y, AvgPoolCache(tuple(x.shape), share)

    def backward(self, dy, cache):
        """dx (B, H, W, C)."""
        self.check_gradient(dy, (cache.shape[0], *self.output_shape(cache.shape[1:])))
        spread = dy * cache.share
        return self.window.fold(lambda k, l: spread, cache.shape, dy.dtype, namespace_of(dy))  # [B1]
