"""Pooling by the mean over windows of an image, channel by channel."""

from ..backend import namespace_of
from ..nn.pool import Pool


class AvgPool2D(Pool):
    r"""The mean of each window over its pixels inside the image.

    Shapes
        x (B, H, W, C)   y (B, H', W', C)   n_t pixels of window t lie inside the image

    Forward
        [F1]  y_btc = (1 / n_t) sum_(p in w_t) x_bpc    w_t: the pixels that window t sees

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bpc = sum_t [p in w_t] dy_btc / n_t

    Source
        [B1]  own derivation: the adjoint of [F1]

    Guarantees
        Padding does not count, as in TensorFlow.

    Raises
        ShapeError      x is smaller than a window
        ParameterError  window or stride below 1, a window of more than 65,536 pixels, padding of
                        another kind, or as large as the window
    """

    kind = "avgpool"

    def compute_y(self, x, rng):
        """(y, (share of one pixel in its window's mean (1, H', W', 1), shape of x))."""
        counts = self.window.output(self.where, x.shape[1:])
        inside = namespace_of(x).ones((1, *x.shape[1:3], 1), x.dtype)
        share = 1 / self._sum(inside, counts)
        return self._sum(x, counts) * share, (share, x.shape)  # [F1]

    def _sum(self, x, counts):
        """The same share of dy for each pixel that a window sees."""
        padded = self.window.pad(x)
        return sum(padded[seen] for seen in self.window.slices(counts))

    def compute_dx(self, dy, kept):
        (share, shape), (b, rows, columns, c) = kept, dy.shape
        each = (dy * share)[:, :, :, None, None]
        patches = namespace_of(dy).broadcast_to(each, (b, rows, columns, *self.window.size, c))
        return self.window.fold(patches, shape)  # [B1]
