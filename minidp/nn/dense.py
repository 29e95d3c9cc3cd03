"""The dense layer."""

from numpy.typing import DTypeLike

from ..grads.forms import Explicit, Outer
from ..util.validate import count
from .init import Initializer, Rng, generator, truncated_normal, zeros
from .layer import Layer


class Dense(Layer):
    r"""Affine map of each example, y = x W + b.

    Shapes
        x (B, I)   W (I, O)   b (O,)   y (B, O)   float32 or float64

    Forward
        [F1]  y_bo = sum_i x_bi W_io + b_o

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bi  = sum_o dy_bo W_io
        [P1]  dW_bio = x_bi dy_bo             factors Outer(a = x, d = dy)
        [P2]  db_bo  = dy_bo

    Source
        [P1]  Goodfellow 2015, arXiv:1510.01799, section 4
    """

    kind = "dense"

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
        super().__init__(name)
        rng = generator(self.where, rng)
        count(1, inputs=inputs, outputs=outputs)
        self.params = {"W": init(rng, (inputs, outputs), dtype)}
        if bias:
            self.params["b"] = zeros(rng, (outputs,), dtype)
        self.inputs, self.outputs = self.params["W"].shape
        self.bias, self.input_shape = bool(bias), (self.inputs,)

    def shape_of_y(self, input_shape):
        return (self.outputs,)

    def compute_y(self, x, rng):
        y = self.matmul(x, self.params["W"])  # [F1]
        if "b" in self.params:
            y += self.params["b"]  # [F1]
        return y, x

    def compute_dx(self, dy, x):
        return self.matmul(dy, self.params["W"].T)  # [B1]

    def compute_grads(self, dy, x):
        grads = {"W": Outer(a=x, d=dy)}  # [P1]
        if "b" in self.params:
            grads["b"] = Explicit(dy)  # [P2]
        return grads
