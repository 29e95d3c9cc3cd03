"""Pooling over windows of an image: the maximum or the mean, channel by channel."""
from typing import NamedTuple

from ..backend import compiled, namespace_of
from ..errors import ShapeError
from ..validate import inexact, one_of, shape
from .layer import Layer
from .window import Window, pair


class MaxPoolCache(NamedTuple):
    """shape of the input, B included; padded input; y, the maxima."""

    shape: tuple
    padded: object
    y: object


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
        [B1]  own derivation: each output moves with the first maximum of its window only, so each pixel
              collects the gradients of the outputs that it moves

    Guarantees
        Ties: the first maximum of a window, in reading order, gets its gradient.

    Raises
        ShapeError      x is not (B, H, W, C), or smaller than a window
        DtypeError      x is not floating point
        ParameterError  window or stride below 1, padding neither valid nor same
    """

    kind = "maxpool"

    def forward(self, x, *, rng=None):
        """(y, cache)."""
        counts, padded, y = self._counts(x), self.window.pad(x, -float("inf")), None
        for _, seen in self.window.slices(counts):
            y = padded[seen].copy() if y is None else namespace_of(x).maximum(y, padded[seen], out=y)  # [F1]
        return y, MaxPoolCache(tuple(x.shape), padded, y)

    def backward(self, dy, cache):
        """dx (B, H, W, C)."""
        self.check_gradient(dy, cache.y.shape)
        dx = namespace_of(dy).zeros(cache.padded.shape, dtype=dy.dtype)
        rest = dy.copy()  # what no pixel has taken yet: the first maximum takes it all
        if compiled(dy, cache.padded):
            from ..host import kernels

            padded = namespace_of(dy).ascontiguousarray(cache.padded)
            kernels.take_by_maxima(padded, cache.y, rest, dx, *self.window.size, *self.window.stride)
            return self.window.unpad(dx, cache.shape)
        for _, seen in self.window.slices(dy.shape[1:3]):
            taken = (cache.padded[seen] == cache.y).astype(dy.dtype)
            taken *= rest
            rest -= taken
            dx[seen] += taken  # [B1]
        return self.window.unpad(dx, cache.shape)


class AvgPool2D(_Pool):
    r"""The mean of each window over its pixels inside the image.

    Shapes
        x (B, H, W, C)   y (B, H', W', C)   n_t pixels of window t lie inside the image

    Forward
        [F1]  y_btc = (1 / n_t) sum over the pixels p of window t inside the image of x_bpc

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bpc = sum over the windows t that see p of dy_btc / n_t

    Source
        [B1]  own derivation: the adjoint of [F1]

    Guarantees
        Padding does not count, as in TensorFlow.

    Raises
        ShapeError      x is not (B, H, W, C), or smaller than a window
        DtypeError      x is not floating point
        ParameterError  window or stride below 1, padding neither valid nor same
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
        b, rows, columns, c = dy.shape
        spread = (dy * cache.share)[:, :, :, None, None]
        patches = namespace_of(dy).broadcast_to(spread, (b, rows, columns, *self.window.size, c))
        return self.window.fold(patches, cache.shape)  # [B1]
