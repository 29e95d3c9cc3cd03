"""Numbers beside the pieces of their range, so that a linear layer learns a curve of each."""

from collections.abc import Sequence

from numpy.typing import NDArray

from ..backend import namespace_of
from ..errors import ParameterError, ShapeError
from ..util.validate import shape
from .layer import Layer


class Pieces(Layer):
    r"""Appends to the numbers of a row, for some of them, which piece of its range each is in.

    Shapes
        x (B, I)   edges (K, J), rising along J, of K of the I columns   y (B, O), O = I + K (J + 1)

    Forward
        [F1]  y_bo = x_bo where o < I, else w [l_o <= x_b(c_o) < u_o]    number o belongs to a piece
              of column c_o, from its edge l_o, or -infinity, to its next u_o, or infinity

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bi = dy_bi    between edges the other numbers do not change

    Source
        [F1]  as in generalized additive models: Hastie and Tibshirani 1986; pieces as in Lou et al.
              2012, "Intelligible models for classification and regression"
        [B1]  own derivation

    Guarantees
        This layer charges nothing: its edges must be public, or released.

    Raises
        ParameterError   edges that do not rise, or a place that is no whole number
        ShapeError       not as many places as rows of edges
    """

    kind = "pieces"

    def __init__(
        self, columns: Sequence[int], edges: NDArray, weight: float = 1.0, name: str | None = None
    ):
        """columns: c; edges: e, public or released; weight: w, the length of a piece's part."""
        super().__init__(name)
        shape("pieces", "edges", edges, ("K", "J"))
        self.columns, self.weight = [int(each) for each in columns], float(weight)
        if len(self.columns) != len(edges):
            raise ShapeError(
                f"pieces: expected edges for each of {len(self.columns)} columns, got {len(edges)}"
            )
        if not (edges[:, 1:] >= edges[:, :-1]).all():
            raise ParameterError("pieces: expected the edges of each column to rise")
        self.constants = {"edges": edges}

    def shape_of_y(self, input_shape):
        """(I + K (J + 1),). Raises ShapeError unless x is (B, I) with all places below I."""
        if len(input_shape) != 1 or not all(0 <= each < input_shape[0] for each in self.columns):
            raise ShapeError(
                f"{self.where}: expected input of shape (I,) with I above {max(self.columns)}, got "
                f"{input_shape}"
            )
        pieces, edges = self.constants["edges"].shape
        return (input_shape[0] + pieces * (edges + 1),)

    def compute_y(self, x, rng):
        """(y, I)."""
        xp, edges = namespace_of(x), self.constants["edges"]
        reached = (x.real[:, self.columns, None] >= edges).astype(x.dtype)
        one = xp.ones((*reached.shape[:2], 1), x.dtype)
        inside = xp.concatenate([one, reached], axis=2) - xp.concatenate([reached, 0 * one], axis=2)
        parts = inside.reshape((len(x), edges.size + len(edges))) * x.dtype.type(self.weight)
        return xp.concatenate([x, parts], axis=1), x.shape[1]  # [F1]

    def compute_dx(self, dy, numbers):
        return dy[:, :numbers]  # [B1]
