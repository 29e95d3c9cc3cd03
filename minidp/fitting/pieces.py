"""Piecewise-linear features: a linear layer above them learns a curve for each column."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of
from ..compiled import kernel, offer
from ..errors import ParameterError, ShapeError
from ..nn.layer import Layer
from ..util.validate import shape


def _twin():
    """The compiled twin of `compute_y`; None where nothing is compiled."""
    from ..host import jit  # here, because it loads Numba

    if jit.OFF:
        return None
    from .pieces_kernel import pieces

    return pieces


offer(np, {"pieces": (("float32",), _twin)})


class Pieces(Layer):
    r"""Appends J hat functions for each of K columns: how near the column's number is to each knot.
    A linear layer above then learns a curve of straight pieces between the knots.

    Shapes
        x (B, I)   knots (K, J), rising along J, of K of the I columns   y (B, O), O = I + K J

    Forward
        [F1]  y_bo = x_bo where o < I, else w max(0, min((v_bo - l_o) / (m_o - l_o), (u_o - v_bo) /
              (u_o - m_o))), v_bo = max(f_o, min(g_o, x_b(c_o)))    number o belongs to the knot m_o
              of column c_o, between its neighbours l_o and u_o, beyond the ends any; v is held
              between the column's first and last knot

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bi = dy_bi + sum_o [c_o = i] s_bo dy_bo, s_bo = w [f_o < x_b(c_o) < g_o] [l_o <
              x_b(c_o) < u_o] ([x_b(c_o) < m_o] / (m_o - l_o) - [x_b(c_o) > m_o] / (u_o - m_o))

    Source
        [F1]  linear splines, de Boor 1978, "A practical guide to splines"; one curve for each
              column as in generalized additive models, Hastie and Tibshirani 1986
        [B1]  own derivation: the slope on each side of a knot

    Guarantees
        The numbers of a column sum to w. This layer charges nothing: its knots must be public, or
        released.

    Raises
        ParameterError   knots that do not rise, or a column that is named twice
        ShapeError       not as many columns as rows of knots, or fewer than two knots
    """

    kind = "pieces"

    def __init__(
        self, columns: Sequence[int], knots: NDArray, weight: float = 1.0, name: str | None = None
    ):
        """columns: places of the K columns among the I; knots: public or released; weight: w."""
        super().__init__(name)
        shape("pieces", "knots", knots, ("K", "J"))
        self.columns, self.weight = [int(each) for each in columns], float(weight)
        if len(self.columns) != len(knots) or knots.shape[1] < 2:
            raise ShapeError(
                f"pieces: expected two or more knots for each of {len(self.columns)} columns, got "
                f"{tuple(knots.shape)}"
            )
        if not (knots[:, 1:] > knots[:, :-1]).all() or len(set(self.columns)) < len(knots):
            raise ParameterError("pieces: expected different columns, and knots that rise in each")
        self.constants = {"knots": knots}

    def shape_of_y(self, input_shape):
        """(I + K J,). Raises ShapeError unless x is (B, I) with all columns among the I."""
        if len(input_shape) != 1 or not all(0 <= each < input_shape[0] for each in self.columns):
            raise ShapeError(
                f"{self.where}: expected input of shape (I,) with I above {max(self.columns)}, got "
                f"{input_shape}"
            )
        return (input_shape[0] + self.constants["knots"].size,)

    def compute_y(self, x, rng):
        """(y, x)."""
        if twin := kernel("pieces", x, self.constants["knots"]):
            y = np.empty((len(x), x.shape[1] + self.constants["knots"].size), x.dtype)
            columns = np.array(self.columns, np.int64)
            twin(x, columns, *self.around(), x.dtype.type(self.weight), y)
            return y, x
        xp, (before, knots, after) = namespace_of(x), self.around()
        v = x[:, self.columns, None]
        first, last = knots[:, :1], knots[:, -1:]
        v = xp.where(v.real < first, first, xp.where(v.real > last, last, v))
        rising, falling = (v - before) / (knots - before), (after - v) / (after - knots)
        near = xp.where(v.real < knots, rising, falling)
        near = near * (near.real > 0) * x.dtype.type(self.weight)
        y = xp.concatenate([x, near.reshape((len(x), knots.size))], axis=1)  # [F1]
        return y, x

    def compute_dx(self, dy, x):
        before, knots, after = self.around()
        v = x[:, self.columns, None]
        up = ((v > before) & (v < knots)) / (knots - before)
        down = ((v > knots) & (v < after)) / (after - knots)
        slope = (up - down) * ((v > knots[:, :1]) & (v < knots[:, -1:])) * self.weight
        mine = dy[:, x.shape[1] :].reshape(slope.shape)
        dx = dy[:, : x.shape[1]].copy()
        dx[:, self.columns] += (slope * mine).sum(axis=2)  # [B1]
        return dx

    def around(self) -> tuple[NDArray, NDArray, NDArray]:
        """(neighbour before, knot, neighbour after) (K, J) each."""
        knots = self.constants["knots"]
        xp = namespace_of(knots)
        first, last = knots[:, :1] - 1, knots[:, -1:] + 1
        before = xp.concatenate([first, knots[:, :-1]], axis=1)
        return before, knots, xp.concatenate([knots[:, 1:], last], axis=1)
