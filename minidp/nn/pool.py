"""Pooling over windows of an image: the maximum or the mean, channel by channel."""
from math import prod
from typing import NamedTuple

from ..backend import namespace_of
from ..errors import ShapeError
from ..validate import inexact, one_of, shape
from .layer import Layer
from .window import Window, pair


class MaxPoolCache(NamedTuple):
    """shape of the input, B included; which places of the windows' rows, and then of their columns, won (`_Line`)."""

    shape: tuple
    columns: list
    rows: list


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
        self._counts(x)
        padded = self.window.pad(x, -float("inf"))
        across, down = self._lines(x.shape)
        largest, columns = self._largest(across, padded)
        y, rows = self._largest(down, largest)
        return y, MaxPoolCache(tuple(x.shape), columns, rows)

    def backward(self, dy, cache):
        """dx (B, H, W, C)."""
        b, h, w, c = cache.shape
        self.check_gradient(dy, (b, *self.output_shape((h, w, c))))
        across, down = self._lines(cache.shape)
        dx = self._routed(across, self._routed(down, dy, cache.rows), cache.columns)
        (_, top, _), (_, left, _) = self.window.axis(h, 0), self.window.axis(w, 1)
        return dx[:, top : top + h, left : left + w]

    @staticmethod
    def _largest(line, x):
        """(y, for each place in a window but the first, the windows in which it is larger than all before it)."""
        xp = namespace_of(x)
        whole, largest = line.room(xp.empty, x.dtype)
        first, *others = line.places(xp.ascontiguousarray(x))
        won = []
        if not others:
            largest[...] = first
        for seen in others:
            won.append(seen > first)
            first = xp.maximum(first, seen, out=largest)  # [F1]
        return xp.ascontiguousarray(line.cut(whole)), won

    @staticmethod
    def _routed(line, dy, won):
        """dx; the last place that won is the first of the largest."""
        xp = namespace_of(dy)
        whole, rest = line.room(xp.zeros, dy.dtype)
        line.cut(whole)[...] = dy
        moves = []
        for mask in reversed(won):
            moved = mask.astype(rest.dtype)  # converted first, which NumPy does slowly while it multiplies
            moved *= rest  # [B1]
            rest -= moved  # [B1]
            moves.append(moved)
        if line.flat:  # what stays at the first place lies there already
            dx, (_, *others) = whole, line.places(whole)
        else:
            dx = xp.zeros(line.shape, dtype=dy.dtype)
            first, *others = line.places(dx)
            line.put(first, rest)
        for seen, moved in zip(reversed(others), moves):
            line.put(seen, moved)
        return dx

    def _lines(self, shape):
        """The windows along each row, and along the columns of what they leave: reading order, so that ties are."""
        b, h, w, c = shape
        (rows, *margin), (columns, *border) = self.window.axis(h, 0), self.window.axis(w, 1)
        h, w = h + sum(margin), w + sum(border)
        (tall, wide), (down, across) = self.window.size, self.window.stride
        return _Line((b, h, w, c), 2, wide, across, columns), _Line((b, h, columns, c), 1, tall, down, rows)


class _Line:
    """Windows along one axis of arrays of `shape`: `count` of them, of `size`, at steps of `stride`.

    Where the step is 1, what all windows see at their k-th place is the whole array shifted by k (`flat`), and is
    worked on in one stretch, several times as fast as line by line. What windows see beyond the end of their line
    is in there too, until it is cut off; its gradient is zero.
    """

    def __init__(self, shape, axis, size, stride, count):
        self.shape, self.size, self.stride, self.count = shape, size, stride, count
        self.flat = stride == 1
        self._lead = (slice(None),) * axis
        self._inner = prod(shape[axis + 1 :])
        self._used = max(prod(shape) - (size - 1) * self._inner, 0)

    def places(self, x):
        """Views of x: what the windows see at each of their places."""
        if self.flat:
            x, starts = x.reshape((x.size,)), range(0, self.size * self._inner, self._inner)
            return [x[start : start + self._used] for start in starts]
        steps = (slice(k, k + (self.count - 1) * self.stride + 1, self.stride) for k in range(self.size))
        return [x[(*self._lead, step)] for step in steps]

    def room(self, make, dtype):
        """An array that holds a number for each window (`cut`), and what of it fits `places`."""
        if self.flat:
            whole = make(self.shape, dtype=dtype)
            return whole, whole.reshape((whole.size,))[: self._used]
        axis = len(self._lead)
        whole = make((*self.shape[:axis], self.count, *self.shape[axis + 1 :]), dtype=dtype)
        return whole, whole

    def cut(self, whole):
        """The numbers of the windows in an array from `room`."""
        return whole[(*self._lead, slice(0, self.count))]

    def put(self, place, values):
        """Add values to one of the `places` of an array of zeros."""
        if self.stride >= self.size:  # no pixel is in two windows
            place[...] = values
        else:
            place += values


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
