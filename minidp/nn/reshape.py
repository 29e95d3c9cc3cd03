"""Layers without trained parameters: Flatten, Standardise by public constants, Project by a fixed
matrix.
"""

from math import prod

from numpy.typing import NDArray

from ..errors import ParameterError, ShapeError
from ..util.validate import shape
from .layer import Layer


class Flatten(Layer):
    r"""All axes of an example in one.

    Shapes
        x (B, d1, d2, ...)   y (B, d1 d2 ...)

    Forward
        [F1]  y_b(k L + l) = x_bkl    k counts all axes but the last in the same way

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bkl = dy_b(k L + l)

    Source
        [B1]  own derivation: the inverse of a reordering
    """

    kind = "flatten"

    def shape_of_y(self, input_shape):
        return (prod(input_shape),)

    def compute_y(self, x, rng):
        return x.reshape((x.shape[0], prod(x.shape[1:]))), x.shape  # [F1]

    def compute_dx(self, dy, shape):
        return dy.reshape(shape)  # [B1]


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
        """mean, scale: arrays (public, or released). gives: dtype of y; None: as it comes. With
        float64 constants and gives="float32" numbers far from 0 lose nothing that is near the mean.
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


class Project(Layer):
    r"""Multiplication by a fixed matrix: principal directions released by DP-PCA, or random ones.

    Shapes
        x (B, I)   P (I, K)   y (B, K)

    Forward
        [F1]  y_bk = sum_i x_bi P_ik

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bi = sum_k dy_bk P_ik

    Source
        [F1]  Abadi et al. 2016, Section 4, "Differentially private PCA"

    Guarantees
        P is not trained. It must be public or released (`mechanism.pca`); this layer charges
        nothing.

    Raises
        ShapeError   P is not a matrix
    """

    kind = "project"

    def __init__(self, matrix: NDArray, name: str | None = None):
        """matrix: P (I, K), a host array."""
        super().__init__(name)
        shape("project", "a matrix", matrix, ("I", "K"))
        self.constants, self.input_shape = {"P": matrix}, matrix.shape[:1]

    def settings(self) -> dict:
        return {"matrix": self.constants["P"]}

    def shape_of_y(self, input_shape):
        return self.constants["P"].shape[1:]

    def compute_y(self, x, rng):
        return x @ self.constants["P"], None  # [F1]

    def compute_dx(self, dy, kept):
        return dy @ self.constants["P"].T  # [B1]
