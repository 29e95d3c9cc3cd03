"""Rows scaled to unit length."""
from ..arithmetic import in_pairs
from ..backend import namespace_of
from .layer import Layer


class UnitNorm(Layer):
    r"""Divides each example by its L2 norm, over all its axes.

    Shapes
        x, y (B, ...)   |x_b| the L2 norm of all numbers of example b

    Forward
        [F1]  y_b = x_b / |x_b|

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_b = (dy_b - y_b sum(dy_b y_b)) / |x_b|

    Source
        [B1]  own derivation: d|x_b| = sum(y_b dx_b), so dy_b moves with (dx_b - y_b sum(y_b dx_b)) / |x_b|, which is
              symmetric

    Guarantees
        An example of zeros stays zero, and so is its gradient. Each example is divided by its largest number before
        it is squared, so that norms of 1e30 and 1e-30 neither overflow nor vanish in float32.
    """

    kind = "unitnorm"

    def compute_y(self, x, rng):
        """(y, (y, largest number of each example, 1 / norm after division by it))."""
        axes = tuple(range(1, x.ndim))
        largest = namespace_of(x).abs(x).max(axis=axes, keepdims=True)
        zero = (largest == 0).astype(largest.dtype)
        largest = largest + zero
        scaled = x / largest
        norm = namespace_of(x).sqrt(in_pairs(scaled * scaled, axes, keepdims=True) + zero)
        y = scaled / norm  # [F1]
        return y, (y, largest, (1 - zero) / norm)

    def compute_dx(self, dy, kept):
        y, largest, inverse = kept
        along = in_pairs(dy * y, tuple(range(1, y.ndim)), keepdims=True)
        return (dy - y * along) * inverse / largest  # [B1]
