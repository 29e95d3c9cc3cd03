"""Embedding: a trained row for each id."""

from numpy.typing import DTypeLike, NDArray

from ..backend import namespace_of
from ..util.validate import count
from .conv import SumInChunks
from .init import Initializer, Rng, truncated_normal
from .layer import Drawn


class Embedding(Drawn):
    r"""The row of a table that belongs to the id at each position.

    Shapes
        x (B, T) ids, whole numbers of any dtype   E (V, J)   y (B, T, J)

    Forward
        [F1]  y_btj = sum_v [id_bt = v] E_vj, id_bt = rint(x_bt)    0 for an id outside 0..V-1

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bt = 0    y does not change between ids
        [P1]  dE_bvj = sum_t [id_bt = v] dy_btj    factors OuterSum(a = rows of 0 and 1, d = dy)

    Source
        [P1]  own derivation: y_b is the product of rows of 0 and 1, one 1 at each id, and E

    Guarantees
        An id outside 0..V-1, such as -1 behind a sequence's end, raises no error, because values
        of examples never do. Noise goes to all rows of E, whichever ids a lot holds. A vocabulary
        that is made from the training data must be released and charged: take a public one.

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
        return {"E": RowsGrad(x, dy, self.vocabulary)}


class RowsGrad(SumInChunks):
    """Gradients of a table (V, J): an OuterSum of rows of 0 and 1."""

    def __init__(self, x: NDArray, d: NDArray, vocabulary: int):
        """x (B, T) ids, d (B, T, J) the gradients of the rows taken."""
        super().__init__(x, d, (vocabulary, d.shape[2]))

    def first(self, start, stop):
        return one_hot(self.x[start:stop], self.shape[0], self.d.dtype)  # [P1]

    def rows(self, start, stop):
        return RowsGrad(self.x[start:stop], self.d[start:stop], self.shape[0])


def ids_of(x: NDArray, vocabulary: int) -> tuple[NDArray, NDArray]:
    """(ids, whether each is one of 0..vocabulary-1); the others are 0."""
    xp = namespace_of(x)
    ids = xp.rint(x.real) if x.dtype.kind in "fc" else x
    known = (ids >= 0) & (ids < vocabulary)
    return xp.where(known, ids, 0).astype("int64"), known


def taken(x: NDArray, E: NDArray) -> NDArray:
    """The rows of E at the ids x, zeros for those of no row."""
    ids, known = ids_of(x, len(E))
    return E[ids] * known[..., None]  # [F1]


def one_hot(x: NDArray, vocabulary: int, dtype: DTypeLike) -> NDArray:
    """(B, T, V): 1 at each id."""
    ids, known = ids_of(x, vocabulary)
    return ((namespace_of(x).arange(vocabulary) == ids[..., None]) & known[..., None]).astype(dtype)
