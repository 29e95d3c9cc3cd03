"""Scaling by constants that are public or released."""

from numpy.typing import NDArray

from ..errors import ParameterError, ShapeError
from ..nn.layer import Layer


class Standardise(Layer):
    r"""Shift and scale by constants that are public, or released and charged elsewhere.

    Shapes
        x, y (B, ...)   mean, scale broadcast to one example

    Forward
        [F1]  y_b = (x_b - mean) / scale

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_b = dy_b / scale

    Source
        [B1]  own derivation: the mean does not depend on x

    Guarantees
        This layer charges nothing. A mean or scale that is computed from the training data must be
        released with noise and charged before it is used here (fitting/outputs.py does so).

    Raises
        ParameterError   scale is not positive and finite everywhere
    """

    kind = "standardise"

    def __init__(
        self, mean: NDArray, scale: NDArray, gives: str | None = None, name: str | None = None
    ):
        """mean, scale: arrays, public or released. gives: dtype of y; None for NumPy's rule. With
        float64 constants and gives="float32", differences from a large mean keep their digits.
        """
        super().__init__(name)
        self.gives = gives
        if not ((scale > 0).all() and (scale < float("inf")).all()):
            raise ParameterError("standardise: expected scale to be positive and finite everywhere")
        self.constants = {"mean": mean, "scale": scale}

    def shape_of_y(self, input_shape):
        """The input's shape. Raises ShapeError if a constant does not broadcast to it."""
        for name, constant in self.constants.items():
            if constant.ndim > len(input_shape) or any(
                have not in (1, want) for have, want in zip(constant.shape[::-1], input_shape[::-1])
            ):
                raise ShapeError(
                    f"{self.where}: expected {name} to broadcast to {input_shape}, got "
                    f"{constant.shape}"
                )
        return input_shape

    def compute_y(self, x, rng):
        y = (x - self.constants["mean"]) / self.constants["scale"]  # [F1]
        return y if self.gives is None else y.astype(self.gives), None

    def compute_dx(self, dy, kept):
        return dy / self.constants["scale"]  # [B1]
