"""A trained row for each place in a sequence."""

from numpy.typing import DTypeLike

from ..grads.forms import Explicit
from ..util.validate import count
from .init import Initializer, Rng, truncated_normal
from .layer import Drawn


class Positions(Drawn):
    r"""Adds a trained row to each position of a sequence.

    Shapes
        x, y (B, T, J)   P (T, J)

    Forward
        [F1]  y_btj = x_btj + P_tj

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_btj = dy_btj
        [P1]  dP_btj = dy_btj

    Source
        [F1]  Vaswani et al. 2017, arXiv:1706.03762, section 3.5, "learned positional embeddings"

    Raises
        ShapeError   x is not (B, T, J)
    """

    kind = "positions"

    def __init__(
        self,
        positions: int,
        width: int,
        *,
        rng: Rng = None,
        init: Initializer = truncated_normal,
        dtype: DTypeLike = "float32",
        name: str | None = None,
    ):
        """positions T, width J; rng for `init(rng, (T, J), dtype)`, by default a new one."""
        count(1, positions=positions, width=width)
        super().__init__(name, rng, init, dtype, P=(positions, width))
        self.input_shape = self.positions, self.width = self.params["P"].shape

    def compute_y(self, x, rng):
        return x + self.params["P"], None  # [F1]

    def compute_dx(self, dy, kept):
        return dy  # [B1]

    def compute_grads(self, dy, kept):
        return {"P": Explicit(dy)}  # [P1]
