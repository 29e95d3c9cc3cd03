"""Layers without trained parameters: Flatten, and Project by a fixed matrix."""

from math import prod

from numpy.typing import NDArray

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
    examples = [((), (2, 3, 2))]

    def shape_of_y(self, input_shape):
        return (prod(input_shape),)

    def compute_y(self, x, rng):
        return x.reshape((x.shape[0], prod(x.shape[1:]))), x.shape  # [F1]

    def compute_dx(self, dy, shape):
        return dy.reshape(shape)  # [B1]


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
