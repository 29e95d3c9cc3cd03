"""Functions of each coordinate (or, for Softmax, of each example's last axis); no parameters."""

from ..backend import namespace_of
from ..compiled import by_twin
from ..util.validate import positive_finite
from .layer import Layer


class _Activation(Layer):
    """Base of activations: the output has the input's shape and determines the derivative."""

    examples = [((), (2, 3))]

    def compute_y(self, x, rng):
        y = self._value(x, namespace_of(x))
        return y, y

    def compute_dx(self, dy, y):
        return self._gradient(dy, y, namespace_of(dy, y))


class ReLU(_Activation):
    r"""The positive part of each coordinate.

    Shapes
        x, y (B, ...)

    Forward
        [F1]  y = 0 where x <= 0, else x

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx = dy where y > 0, else 0     (the kink at 0 counts as 0)

    Source
        [B1]  own derivation: the derivative of max(x, 0) is 1 where x > 0 and 0 where x < 0
    """

    kind = "relu"

    def _value(self, x, xp):
        y = by_twin("relu", x)
        return xp.where(x <= 0, x.dtype.type(0), x) if y is None else y  # [F1]

    def _gradient(self, dy, y, xp):
        dx = by_twin("relu_gradient", dy, y)
        return xp.where(y > 0, dy, dy.dtype.type(0)) if dx is None else dx  # [B1]


class Clamp(_Activation):
    r"""Limits each coordinate to the range from -limit to limit.

    Shapes
        x, y (B, ...)   limit > 0, a public number

    Forward
        [F1]  y = min(max(x, -limit), limit)

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx = dy where -limit < y < limit, else 0     (the kinks count as 0)

    Source
        [B1]  own derivation: the derivative is 1 between the limits and 0 beyond them

    Raises
        ParameterError   limit is not positive and finite
    """

    kind = "clamp"
    examples = [((0.5,), (2, 3))]

    def __init__(self, limit: float, name: str | None = None) -> None:
        """limit: the largest absolute value of a coordinate."""
        super().__init__(name)
        positive_finite(limit=limit)
        self.limit = limit

    def _value(self, x, xp):
        limits = xp.full(x.shape[1:], self.limit, x.dtype)
        return xp.minimum(xp.maximum(x, -limits), limits)  # [F1]

    def _gradient(self, dy, y, xp):
        return dy * (abs(y) < y.dtype.type(self.limit))  # [B1]


class Tanh(_Activation):
    r"""Hyperbolic tangent of each coordinate.

    Shapes
        x, y (B, ...)

    Forward
        [F1]  y = tanh(x)

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx = dy (1 - y^2)

    Source
        [B1]  own derivation: d tanh(x)/dx = 1 - tanh(x)^2
    """

    kind = "tanh"

    def _value(self, x, xp):
        return xp.tanh(x)  # [F1]

    def _gradient(self, dy, y, xp):
        return dy * (1 - y * y)  # [B1]


class Sigmoid(_Activation):
    r"""Logistic function of each coordinate.

    Shapes
        x, y (B, ...)

    Forward
        [F1]  y = 1 / (1 + exp(-x))    computed as (1 + tanh(x / 2)) / 2, which does not overflow

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx = dy y (1 - y)

    Source
        [F1]  own derivation: 1 + tanh(x/2) = 2 exp(x/2) / (exp(x/2) + exp(-x/2)) = 2 / (1 +
              exp(-x))
        [B1]  own derivation: dy/dx = exp(-x) y^2 = y (1 - y)
    """

    kind = "sigmoid"

    def _value(self, x, xp):
        return (xp.tanh(x * 0.5) + 1) * 0.5  # [F1]

    def _gradient(self, dy, y, xp):
        return dy * (y * (1 - y))  # [B1]


class Softmax(_Activation):
    r"""Probabilities over the last axis of each example.

    Shapes
        x, y (B, ..., K)

    Forward
        [F1]  y_bk = exp(x_bk - m_b) / sum_j exp(x_bj - m_b), m_b = max_k x_bk

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bk = y_bk (dy_bk - sum_j dy_bj y_bj)

    Source
        [B1]  own derivation: dy_j/dx_k = y_j ([j = k] - y_k), summed over j with dy_j

    Guarantees
        Rows sum to 1; large logits do not overflow. For a loss use SoftmaxCrossEntropy on the
        logits.
    """

    kind = "softmax"

    def _value(self, x, xp):
        y = xp.exp(x - x.max(axis=-1, keepdims=True))
        return y / y.sum(axis=-1, keepdims=True)  # [F1]

    def _gradient(self, dy, y, xp):
        return y * (dy - (dy * y).sum(axis=-1, keepdims=True))  # [B1]
