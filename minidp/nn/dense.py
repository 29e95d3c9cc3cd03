"""The dense layer."""

from numpy.typing import DTypeLike, NDArray

from ..backend import namespace_of
from ..errors import ShapeError
from ..grads.forms import Explicit, Outer, OuterSum, PerExampleGrad
from ..util.validate import count
from .init import Initializer, Rng, truncated_normal
from .layer import Drawn, matmul


class Dense(Drawn):
    r"""Affine map of each example, or of each position of a sequence, y = x W + b.

    Shapes
        x (B, I) or (B, T, I)   W (I, O)   b (O,)   y (B, O) or (B, T, O)   float32 or float64; for
        (B, I) and (B, O) read T = 1

    Forward
        [F1]  y_bto = sum_i x_bti W_io + b_o

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bti = sum_o dy_bto W_io
        [P1]  dW_bio = sum_t x_bti dy_bto     factors Outer(a = x, d = dy), or OuterSum
        [P2]  db_bo  = sum_t dy_bto

    Source
        [P1]  Goodfellow 2015, arXiv:1510.01799, section 4; Li et al. 2021, arXiv:2110.05679,
              section 4

    Raises
        ShapeError   x is neither (B, I) nor (B, T, I)
    """

    kind = "dense"
    examples = [((4, 3), (4,), (5,))]

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        rng: Rng = None,
        bias: bool = True,
        init: Initializer = truncated_normal,
        dtype: DTypeLike = "float32",
        name: str | None = None,
    ):
        """inputs I, outputs O; rng for `init(rng, (I, O), dtype)`: `Streams().init` or a NumPy
        generator, by default a new one; b starts at zero.
        """
        count(1, inputs=inputs, outputs=outputs)
        b = (outputs,) if bias else None
        super().__init__(name, rng, init, dtype, W=(inputs, outputs), b=b)
        self.inputs, self.outputs = self.params["W"].shape
        self.bias = bool(bias)

    @property
    def known_shape(self):
        return (self.inputs,)  # of no sequence

    def shape_of_y(self, input_shape):
        if len(input_shape) not in (1, 2) or input_shape[-1] != self.inputs:
            raise ShapeError(
                f"{self.where}: expected input of shape ({self.inputs},) or (T, {self.inputs}), "
                f"got {input_shape}"
            )
        return (*input_shape[:-1], self.outputs)

    def compute_y(self, x, rng):
        y = matmul(x, self.params["W"])  # [F1]
        if "b" in self.params:
            y += self.params["b"]  # [F1]
        return y, x

    def compute_dx(self, dy, x):
        return matmul(dy, self.params["W"].T)  # [B1]

    def compute_grads(self, dy, x):
        return affine_grads(x, dy, "b" in self.params)


def affine_grads(x: NDArray, dy: NDArray, bias: bool = True) -> dict[str, PerExampleGrad]:
    """Gradients of W and of the bias b of y = x W + b, with or without an axis of positions in x,
    dy.
    """
    one = x.ndim == 2
    weight = Outer(a=x, d=dy) if one else OuterSum(a=x, d=dy)  # [P1]
    if not bias:
        return {"W": weight}
    b = dy if one else namespace_of(dy).einsum("bto->bo", dy)  # [P2]
    return {"W": weight, "b": Explicit(b)}
