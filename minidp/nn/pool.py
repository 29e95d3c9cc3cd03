"""Pooling over windows of an image, channel by channel: the maximum."""

from math import prod
from operator import ge

from ..errors import ParameterError
from ..util.validate import in_range
from .layer import Layer
from .window import Window, pair

MOST_PIXELS = 2**16  # of a window, numbered in 16 bits


class Pool(Layer):
    """Base of pooling layers: windows over (B, H, W, C)."""

    input_shape = ("H", "W", "C")

    def __init__(self, window, stride=None, padding="valid", name=None):
        """window and stride: an integer or (vertical, horizontal); stride None means the window
        itself.

        padding: "valid", "same" (TensorFlow's rule), or the number of pixels on each side: one
        number, or (vertical, horizontal). It is smaller than the window, so that each window sees a
        pixel.
        """
        super().__init__(name)
        size = pair(window=window)
        in_range(1, MOST_PIXELS, pixels_of_a_window=prod(size))
        self.window = Window(size, size if stride is None else pair(stride=stride), padding)
        if not isinstance(padding, str) and any(map(ge, pair(0, padding=padding), size)):
            raise ParameterError(
                f"expected padding={padding!r} below the window {size}: a window would see no pixel"
            )

    def settings(self) -> dict:
        return {
            "window": self.window.size,
            "stride": self.window.stride,
            "padding": self.window.padding,
        }

    def shape_of_y(self, input_shape):
        return (*self.window.output(self.where, input_shape), input_shape[2])


class MaxPool2D(Pool):
    r"""The largest number in each window.

    Shapes
        x (B, H, W, C)   y (B, H', W', C)   windows may overlap; padding never wins

    Forward
        [F1]  y_btc = max_(p in w_t) x_bpc    w_t: the pixels that window t sees, in reading order

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bpc = sum_t [p = f_btc] dy_btc, f_btc = min_(q in w_t, x_bqc = y_btc) q

    Source
        [B1]  own derivation: each output moves with the first maximum of its window only, so each
              pixel collects the gradients of the outputs that it moves

    Guarantees
        Ties: the first maximum of a window, in reading order, gets its gradient.

    Raises
        ShapeError      x is smaller than a window
        ParameterError  window or stride below 1, a window of more than 65,536 pixels, padding of
                        another kind, or as large as the window
    """

    kind = "maxpool"

    def compute_y(self, x, rng):
        """(y, (place of each maximum in its window, shape of x))."""
        padded, shape = self.window.pad(x, -float("inf")), self.shape_of_y(x.shape[1:])
        y, place = self.window.maxima(padded, shape[:2])  # [F1]
        return y, (place, x.shape)

    def compute_dx(self, dy, kept):
        return self.window.spread(dy, *kept)  # [B1]
