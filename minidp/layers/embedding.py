"""Embedding: a trained row for each id."""

import math

from numpy.typing import DTypeLike, NDArray

from ..arrays import namespace_of, row_norms, zero_rows_unless
from ..grads.forms import CANCELLING, HUGE, TOGETHER, PerExampleGrad, product_rows
from ..nn.conv import in_chunks
from ..nn.init import Initializer, Rng, truncated_normal
from ..nn.layer import Drawn
from ..util.validate import count, same_batch


class Embedding(Drawn):
    r"""The row of a table that belongs to the id at each position.

    Shapes
        x (B, T) ids, whole numbers of any dtype   E (V, J)   y (B, T, J)

    Forward
        [F1]  y_btj = sum_v [id_bt = v] E_vj, id_bt = rint(x_bt)    0 for an id outside 0..V-1

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bt = 0    y does not change between ids
        [P1]  dE_bvj = sum_t [id_bt = v] dy_btj    factors RowsGrad(x, d = dy)

    Source
        [P1]  own derivation: y_b is the product of a 0/1 matrix, whose row t has a single 1 at id
              t, and E

    Guarantees
        An id outside 0..V-1, such as -1 after the end of a sequence, raises no error, because
        values of examples never do. Noise goes to all rows of E, whichever ids a lot has. A
        vocabulary from the training data would have to be released and charged, so use a public
        one.

    Raises
        ShapeError   x is not (B, T)
    """

    kind = "embedding"
    takes_ids = True
    input_shape = ("T",)

    def __init__(
        self,
        vocabulary: int,
        width: int,
        *,
        rng: Rng = None,
        init: Initializer = truncated_normal,
        dtype: DTypeLike = "float32",
        name: str | None = None,
    ):
        """vocabulary V, width J; rng for `init(rng, (V, J), dtype)`: `Streams().init` or a NumPy
        generator, by default a new one.
        """
        count(1, vocabulary=vocabulary, width=width)
        super().__init__(name, rng, init, dtype, E=(vocabulary, width))
        self.vocabulary, self.width = self.params["E"].shape

    def shape_of_y(self, input_shape):
        return (*input_shape, self.width)

    def compute_y(self, x, rng):
        return taken(x, self.params["E"]), x

    def compute_dx(self, dy, x):
        dx = namespace_of(dy).empty(x.shape, dy.dtype)
        dx[...] = 0  # [B1]
        return dx

    def compute_grads(self, dy, x):
        return {"E": RowsGrad(x, dy, self.vocabulary)}  # [P1]


class RowsGrad(PerExampleGrad):
    r"""Gradients of a table (V, J) in which each example uses few rows.

    Shapes
        x (B, T) ids   d (B, T, J) the gradients of the rows taken   w (B,)

    Forward, over positions whose id is in 0..V-1
        [N1]  sq_b = sum_tu [id_bt = id_bu] sum_j d_btj d_buj
        [N3]  upper_b = max(sq_b + n eps m_b^2, (m_b / 64)^2), m_b = sum_t |d_bt|, n = J + 2 T + 64
        [P1]  total_vj = sum_bt w_b [id_bt = v] d_btj

    Source
        [N1] [P1]  own derivation: grads.forms.OuterSum, where each row a_bt has a single 1 and
                   otherwise 0
        [N3]  grads.forms.OuterSum [N3]

    Guarantees
        A term of [P1] goes through at most as many additions as a term of OuterSum.
    """

    def __init__(self, x: NDArray, d: NDArray, vocabulary: int):
        same_batch("RowsGrad", x=x, d=d)
        self.ids, known = ids_of(x, vocabulary)
        self.x = x
        self.d = namespace_of(d).where(known[..., None], d, d.dtype.type(0))
        self.n_examples, self.shape = x.shape[0], (vocabulary, d.shape[2])
        self.arrays = x, self.d

    def sq_norms(self) -> NDArray:
        """(B,) squared L2 norms; positions of an example with the same id share a row."""
        sq, positions = self.xp.empty(self.n_examples), self.ids.shape[1]
        for start, stop in in_chunks(self.d, 3 * positions**2):
            ids, d = self.ids[start:stop], self.d[start:stop].astype("float64")
            meet = ids[:, :, None] == ids[:, None, :]
            sq[start:stop] = (meet * (d @ d.transpose(0, 2, 1))).sum(axis=2).sum(axis=1)  # [N1]
        return self.xp.where(sq < 0, 0, sq)

    def sq_norms_upper(self):
        """(B,) squared norms, rounded up by the bound on what the sums lost."""
        lost = (self.shape[1] + 2 * self.ids.shape[1] + 64) * 2.0**-52
        lengths = row_norms(self.d)
        huge = (lengths > HUGE).any(axis=1)
        most = self.xp.where(huge, math.inf, lengths.sum(axis=1))
        return self.xp.maximum(self.sq_norms() + lost * most**2, (most / CANCELLING) ** 2)  # [N3]

    def add_weighted_sum(self, total: NDArray, w: NDArray, rows: int = 0) -> None:
        """total += sum_b w_b g_b, in place, in float64; only the rows of ids that occur change."""
        n, width = self.ids.size, self.shape[1]
        met, places = self.xp.unique(self.ids, return_inverse=True)
        places = places.reshape((n, 1)) * width + self.xp.arange(width)
        weighted = zero_rows_unless(w != 0, self.d) * w[:, None, None]
        weighted, rows = weighted.reshape((n, width)), product_rows(n)
        for start in range(0, n, TOGETHER * rows):
            part = self.xp.zeros(len(met) * width)
            for at in range(start, min(start + TOGETHER * rows, n), rows):
                here = slice(at, min(at + rows, n))
                part += self.xp.bincount(places[here].ravel(), weighted[here].ravel(), len(part))
            total[met] += part.reshape((len(met), width))  # [P1]

    def materialise(self) -> NDArray:
        """(B, V, J)."""
        g = self.xp.zeros((self.n_examples, *self.shape), self.d.dtype)
        examples = self.xp.arange(self.n_examples)
        for t in range(self.ids.shape[1]):
            g[examples, self.ids[:, t]] += self.d[:, t]
        return g

    def sum_over_views(self, views):
        """One gradient per example, over the positions of all its rows."""
        examples, positions = self.n_examples // views, views * self.ids.shape[1]
        d = self.d.reshape((examples, positions, self.shape[1]))
        return RowsGrad(self.x.reshape((examples, positions)), d, self.shape[0])

    def rows(self, start, stop):
        return RowsGrad(self.x[start:stop], self.d[start:stop], self.shape[0])


def ids_of(x: NDArray, vocabulary: int) -> tuple[NDArray, NDArray]:
    """(ids, known): known is True for an id in 0..vocabulary-1; other ids become 0."""
    xp = namespace_of(x)
    ids = xp.rint(x.real) if x.dtype.kind in "fc" else x
    known = (ids >= 0) & (ids < vocabulary)
    return xp.where(known, ids, 0).astype("int64"), known


def taken(x: NDArray, E: NDArray) -> NDArray:
    """Rows of E for the ids x; zeros for an unknown id."""
    ids, known = ids_of(x, len(E))
    return E[ids] * known[..., None]  # [F1]
