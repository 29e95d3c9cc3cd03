"""Per-example gradients as integers, for exact arithmetic.

Each gradient is cut to integers times a power of two first. The norm of what was cut is computed
from integers, and what an example contributes is truncated toward zero to whole multiples of the
grid C 2^-32, so that no contribution is longer than C and every sum of them is exact: the same in
any order, in any batches, on any threads and on both devices.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import add_whole, in_pairs, namespace_of, row_squares, zero_rows_unless
from ..kernels import kernel
from .cuts import cut

UNITS = 2.0**32  # of the grid in a clip norm
# examples of a lot: coordinates of their sum stay below 2^53, where float64 holds every integer
MOST = 2**21
BITS = 20  # of a gradient's largest coordinate
BLOCK = 2**12  # squares of such numbers, whose sum is exact
HALF = 2.0**16  # units of each of two factors


def squares(G: NDArray) -> NDArray:
    """(B,) the sums of squares of integers (B, P) of up to 2^20, in blocks that are exact and then
    in pairs.
    """
    xp, (examples, size) = namespace_of(G), G.shape
    if size <= BLOCK:
        return row_squares(G)
    whole_blocks = size // BLOCK
    blocks = G[:, : whole_blocks * BLOCK].reshape((examples, whole_blocks, BLOCK))
    rest = G[:, None, whole_blocks * BLOCK :]
    return in_pairs(xp.concatenate([row_squares(blocks), row_squares(rest)], axis=1), 1)


def cut_squares(x: NDArray) -> tuple[NDArray, NDArray]:
    """(e, squares(X)), (B,) each, X and e the cut of x (B, P) to the nearest integers of 20
    bits.
    """
    if twin := kernel("cut_squares", x):
        e, sums = twin(x, BITS, BLOCK)
        return e, sums[:, 0] if sums.shape[1] == 1 else in_pairs(sums, 1)
    X, e = cut(x, BITS, nearest=True)
    return e[:, 0], squares(X)


def contributions(x: NDArray, e: NDArray, scale: NDArray) -> NDArray:
    """trunc(scale_b X_b) of the same X (B, P), e (B,), and 0 where scale_b is."""
    if twin := kernel("contributions", x):
        twin(np.ascontiguousarray(x), e, BITS, scale, out := np.empty(x.shape))
        return out
    xp = namespace_of(x)
    X = xp.rint(xp.ldexp(x.astype(xp.float64), BITS - e[:, None]))
    return xp.trunc(scale[:, None] * zero_rows_unless(scale != 0, X))


class _Whole:
    """Gradients in whole numbers; has what sums need of `grads.PerExampleGrad`.

    Subclasses give `xp`, `shape`, sq_norms and weighted_sum.
    """

    arrays = ()  # for kernels of floating point numbers: none

    def sq_norms_upper(self):
        """(B,) squared norms; their roundings are below the margin of the clip weights."""
        return self.sq_norms()

    def add_weighted_sum(self, total, w, rows=0):
        """total += the contributions, in place."""
        total += self.weighted_sum(w)


class WholeRows(_Whole):
    r"""Explicit gradients in whole numbers.

    Shapes
        g (B, *shape)   w (B,) weights in units: clip weights times 2^32 / C   total (*shape)

    Forward
        [F1]  G_bp = rint(g_bp 2^(20 - e_b)),
              e_b = floor(log2 max_p |g_bp|) + 1 where max_p |g_bp| > 0, else 0
        [N1]  sq_b = 4^(e_b - 20) sum_p G_bp^2
        [P1]  total_p <- total_p + sum_b [w_b > 0] trunc(w_b 2^(e_b - 20) G_bp)

    Source
        [P1]  own derivation: truncated toward zero, a contribution is no longer than w_b |g_b|, at
              most 2^32 (1 - 2^-21) units; sums of whole numbers below 2^53 are exact in any order
    """

    def __init__(self, g: NDArray):
        self.n_examples, self.shape = g.shape[0], tuple(g.shape[1:])
        self.G, e = cut(
            g.reshape((self.n_examples, math.prod(self.shape))), BITS, nearest=True
        )  # [F1]
        self.e = e[:, 0] - BITS

    @property
    def xp(self) -> Any:
        return namespace_of(self.G)

    def sq_norms(self) -> NDArray:
        """(B,) squared L2 norms of what was cut."""
        return self.xp.ldexp(squares(self.G), 2 * self.e)  # [N1]

    def add_weighted_sum(self, total: NDArray, w: NDArray, rows: int = 0) -> None:
        """total += the contributions, in place."""
        add_whole(total.reshape((total.size,)), self.xp.ldexp(w, self.e), self.G)  # [P1]

    def weighted_sum(self, w: NDArray, rows: int = 0) -> NDArray:
        """The sum of the contributions."""
        total = self.xp.zeros(self.shape)
        self.add_weighted_sum(total, w)
        return total


class WholeOuter(_Whole):
    r"""Outer products in whole numbers, as factors: exact sums at the cost of one product in
    float64.

    Shapes
        a (B, I)   d (B, O)   shape (I, O)   w (B,) weights in units: clip weights times 2^32 /
                   C   total (I, O)

    Forward
        [F1]  A_bi = rint(a_bi 2^(20 - e_b)), D_bo = rint(d_bo 2^(20 - f_b)),
              e_b = floor(log2 max_i |a_bi|) + 1 where max_i |a_bi| > 0, else 0,
              f_b = floor(log2 max_o |d_bo|) + 1 where max_o |d_bo| > 0, else 0
        [N1]  sq_b = 4^(e_b + f_b - 40) sum_i A_bi^2 sum_o D_bo^2
        [P1]  total_io <- total_io + sum_b [w_b |D_b| > 0] (s_bi t_bo),
              t_bo = trunc(D_bo 2^16 / |D_b| (1 - 2^-40)),
              s_bi = trunc(A_bi w_b 2^(e_b + f_b - 40) |D_b| / 2^16 (1 - 2^-40))

    Source
        [P1]  own derivation: |t_b| <= 2^16 and |s_b| <= w_b |g_b| / 2^16, so that a contribution is
              no longer than w_b |g_b|, at most 2^32 (1 - 2^-21) units; the product's terms and sums
              are whole numbers below 2^53
    """

    def __init__(self, a: NDArray, d: NDArray):
        self.n_examples, self.shape, self.a, self.d = a.shape[0], (a.shape[1], d.shape[1]), a, d
        (self.e, self.A_sq), (self.f, self.D_sq) = cut_squares(a), cut_squares(d)  # [F1]

    @property
    def xp(self) -> Any:
        return namespace_of(self.a)

    def sq_norms(self) -> NDArray:
        """(B,) squared L2 norms of what was cut."""
        return self.xp.ldexp(self.A_sq * self.D_sq, 2 * (self.e + self.f - 2 * BITS))  # [N1]

    def weighted_sum(self, w: NDArray, rows: int = 0) -> NDArray:
        """The sum of the contributions."""
        xp, less = self.xp, 1 - 2.0**-40
        length = xp.sqrt(xp.where((w != 0) & (self.D_sq > 0), self.D_sq, 1))
        t = contributions(self.d, self.f, xp.where(w != 0, HALF / length * less, 0))  # [P1]
        # above, |g| is infinite, or A is 0 and not to meet infinity
        e = xp.minimum(self.e + self.f - 2 * BITS, 512)
        s = contributions(self.a, self.e, xp.ldexp(w * length, e) / HALF * less)  # [P1]
        return s.T @ t  # [P1]
