"""The dense layer."""
from typing import NamedTuple

from ..backend import namespace_of
from ..errors import ShapeError
from ..grads import Explicit, Outer
from ..validate import count
from .init import truncated_normal, zeros
from .layer import Layer


class DenseCache(NamedTuple):
    """x (B, I), the input."""

    x: object


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

    Guarantees
        Example b of every result depends on example b of the input only.
        An empty batch gives empty results. Inputs are not changed.

    Raises
        ShapeError            x is not (B, I), or dy is not (B, O)
        DtypeError            x is not floating point
        BackendMismatchError  x and the parameters live in different libraries
    """

    kind = "dense"

    def __init__(self, inputs, outputs, *, rng, bias=True, init=truncated_normal, dtype="float32", name=None):
        """inputs I, outputs O; rng a NumPy generator for `init(rng, (I, O), dtype)`; b starts at zero."""
        super().__init__(name)
        count(1, inputs=inputs, outputs=outputs)
        self.params = {"W": init(rng, (inputs, outputs), dtype)}
        if bias:
            self.params["b"] = zeros(rng, (outputs,), dtype)

    def output_shape(self, input_shape):
        """(O,), given (I,)."""
        inputs, outputs = self.params["W"].shape
        if tuple(input_shape) != (inputs,):
            raise ShapeError(f"{self.where}: expected input of shape ({inputs},), got {tuple(input_shape)}")
        return (outputs,)

    def forward(self, x, *, rng=None):
        """(y, cache)."""
        W = self.params["W"]
        namespace_of(x, W)
        self.check_input(x, W.shape[:1])
        y = x @ W  # [F1]
        if "b" in self.params:
            y += self.params["b"]  # [F1]
        return y, DenseCache(x)

    def backward(self, dy, cache):
        """dx (B, I)."""
        W = self.params["W"]
        self.check_gradient(dy, (cache.x.shape[0], W.shape[1]))
        return dy @ W.T  # [B1]

    def param_grads(self, dy, cache):
        """W: Outer(x, dy); b: Explicit(dy)."""
        self.check_gradient(dy, (cache.x.shape[0], self.params["W"].shape[1]))
        grads = {"W": Outer(a=cache.x, d=dy)}  # [P1]
        if "b" in self.params:
            grads["b"] = Explicit(dy)  # [P2]
        return grads
