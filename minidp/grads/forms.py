"""Per-example gradients in three representations. Explicit clipping and ghost clipping run the same
code on different ones.

A layer gives the factors of its gradients; the representation computes their norms and sums. So
"explicit equals factored" is shown here, for three classes, and not for every layer.
Letters: b example, i, o sides of a product, t position.
"""

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays import (
    add_products,
    add_weighted,
    namespace_of,
    row_norms,
    to_host,
    zero_rows_unless,
)
from ..backend import explicit_fits
from ..compiled import kernel
from ..errors import ShapeError
from ..util.validate import same_batch

STRATEGIES = ("auto", "explicit", "factored")
# the norms of an example's outer products may add up to this many times the norm of their sum; if
# they add up to more, the example gets a lower weight
CANCELLING = 64
# an OuterSum is added up in blocks: the fewest and the most rows of a block, and how many blocks
# are added to each other before their sum joins the total; `mechanism.rounding` relies on them
LEAST_ROWS, MOST_ROWS = 512, 2048
TOGETHER = 2048
# norms of factors above which a gradient counts as not finite
HUGE, LARGE = 2.0**400, 2.0**60  # in float64; in float32
Key = tuple[str, str]  # (layer, parameter)
Arrays = dict[Key, NDArray]  # of parameters


class PerExampleGrad:
    """The gradients g_b of one parameter, one for each of the `n_examples` examples of a batch.

    `shape` is the parameter's shape. Subclasses define sq_norms, sq_norms_upper, add_weighted_sum
    and materialise. Norms and sums are float64 for gradients of any dtype. An example with weight 0
    contributes 0, even if its gradient or a factor of it is not finite. numpy.asarray(gradients)
    has the shape (B, *shape) and is on the host. Factors that differ in examples or positions, or
    have the wrong number of axes, raise ShapeError.
    """

    n_examples: int
    shape: tuple
    arrays: tuple = ()  # of the network's dtype that it is made of
    factored = True  # not materialised already
    factored_is_cheaper = True  # than materialising, in multiplications on the host
    may_be_explicit = True  # False where "auto" never materialises, on any device

    def __repr__(self):
        formed = ", not formed" if self.factored else ""
        return f"{type(self).__name__}: {self.n_examples} gradients of {self.shape}{formed}"

    def __array__(self, dtype=None, copy=None):
        return np.asarray(to_host(self.materialise()), dtype)

    def norms(self):
        """(B,) L2 norms."""
        return self.xp.sqrt(self.sq_norms())

    def sq_norms_upper(self):
        """(B,) squared norms, rounded up: never below the true ones, in any dtype, as long as no
        square vanishes: from norms of 1e-18 on in float32, of 1e-150 in float64. Clip norms are
        larger than that, so a shorter gradient gets weight 1 in any case.
        """
        return self.sq_norms() * (1 + self._lost)  # [N2]

    def zeros(self):
        """Zeros of the parameter's shape, float64: the sum of no gradients."""
        return self.xp.zeros(self.shape)

    def weighted_sum(self, w, rows=0):
        """sum_b w_b g_b, of the parameter's shape; rows: as in `add_weighted_sums`."""
        total = self.zeros()
        self.add_weighted_sum(total, w, rows)
        return total

    def form(self, strategy, examples=0):
        """How `strategy` clips and sums these gradients, "explicit" or "factored". "auto" takes
        what is cheaper, and on a GPU explicit ones that fit into memory: that takes fewer kernels.

        examples: number of examples whose gradients must fit, public; 0 for those of this batch.
        """
        if not self.factored or strategy == "explicit":
            return "explicit"
        if strategy == "factored" or not self.may_be_explicit:
            return "factored"
        fits = explicit_fits(self.xp, (examples or self.n_examples) * self.explicit_bytes)
        return "explicit" if fits or not self.factored_is_cheaper else "factored"

    def explicit(self):
        """The same gradients, materialised."""
        return Explicit(self.materialise()) if self.factored else self

    def sum_over_views(self, views):
        """Merge augmented views: every `views` consecutive rows belong to one example; sum them."""
        return self.explicit().sum_over_views(views)

    def rows(self, start, stop):
        """The gradients of the examples start..stop-1."""
        return type(self)(*(array[start:stop] for array in self.arrays))

    @property
    def explicit_bytes(self):
        """Bytes that materialising one example allocates."""
        return math.prod(self.shape) * self.arrays[-1].dtype.itemsize

    @property
    def xp(self):
        """The array library of the factors."""
        return namespace_of(self.arrays[-1])


class Explicit(PerExampleGrad):
    r"""Materialised gradients: one array whose first axis counts the examples.

    Shapes
        g (B, *shape)   w (B,)

    Forward
        [N1]  sq_b = sum_p g_bp^2
        [N2]  upper_b = sq_b (1 + n eps)    n the longest chain of roundings, eps their size
              (`sq_norms_upper`)
        [P1]  total = sum_b w_b g_b
        [V1]  merged_b = sum_v g_bv    v the rows of example b (`sum_over_views`)

    Source
        [N2]  Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1: a dot
              product of n non-negative terms is off by at most n eps / 2 relative, to first order;
              32 more cover what follows
    """

    factored = False

    def __init__(self, g):
        self.g, self.arrays = g, (g,)
        self.n_examples, self.shape = g.shape[0], tuple(g.shape[1:])
        self._lost = (math.prod(self.shape) + 32) * 2.0**-52

    def _matrix(self):
        """(B, P), the numbers of each example in a row."""
        return self.g.reshape((self.n_examples, math.prod(self.shape)))

    def sq_norms(self):
        """(B,) squared L2 norms."""
        return row_norms(self._matrix()) ** 2  # [N1]

    def add_weighted_sum(self, total, w, rows=0):
        """total += sum_b w_b g_b, in place."""
        if total.flags.c_contiguous:
            add_weighted(total.reshape((total.size,)), w, self._matrix())  # [P1]
        else:
            total += self.weighted_sum(w)

    def materialise(self):
        """The gradients, (B, *shape)."""
        return self.g

    def sum_over_views(self, views):
        """One gradient per example, the sum of its rows."""
        g = self.g.reshape((self.n_examples // views, views, *self.shape))
        return Explicit(g.sum(axis=1))  # [V1]


class PositionSums(Explicit):
    """Gradients of a bias: sums over positions, computed when they are needed.

    d (B, T, O) to g (B, O)
    """

    def __init__(self, d):
        self.d, self.arrays = d, (d,)
        self.n_examples, self.shape = d.shape[0], (d.shape[2],)
        self._lost = (math.prod(self.shape) + 32) * 2.0**-52

    @cached_property
    def g(self):
        """(B, O), the sums."""
        return self.xp.einsum("bto->bo", self.d)


class _Factored(PerExampleGrad):
    """Products of factors a (B, ..., I) and d (B, ..., O), summed over the axes between."""

    def __init__(self, a, d, ndim):
        name = type(self).__name__
        namespace_of(a, d)
        if a.ndim != ndim or d.ndim != ndim:
            raise ShapeError(
                f"{name}: expected factors with {ndim} axes, got a {a.shape} and d {d.shape}"
            )
        same_batch(name, a=a, d=d)
        if a.shape[1:-1] != d.shape[1:-1]:
            raise ShapeError(
                f"{name}: expected the same positions, got a {a.shape} and d {d.shape}"
            )
        self.a, self.d = self.arrays = a, d
        self.n_examples, self.shape = a.shape[0], (a.shape[-1], d.shape[-1])

    def _weighted(self, w):
        """Both factors, the smaller one multiplied by w, without rows of weight 0."""
        a, d = (zero_rows_unless(w != 0, factor) for factor in self.arrays)
        w = w.reshape(w.shape + (1,) * (a.ndim - 1))
        return (w * a, d) if self.shape[0] <= self.shape[1] else (a, w * d)


class Outer(_Factored):
    r"""Gradients that are one outer product each, such as a dense weight's: g_b = a_b (x) d_b.

    Shapes
        a (B, I)   d (B, O)   shape (I, O)   w (B,)

    Forward
        [F1]  g_bio = a_bi d_bo
        [N1]  sq_b = (sum_i a_bi^2) (sum_o d_bo^2)
        [P1]  total_io = sum_b (w_b a_bi) d_bo    in float64, or in float32 over a few rows at a
              time
        [V1]  merged_bio = sum_v a_bvi d_bvo    an OuterSum whose positions are the rows of example
              b (`sum_over_views`)

    Source
        [N1] [P1]  Goodfellow 2015, arXiv:1510.01799, section 4: rescale one factor, then one matrix
                   product

    Guarantees
        Only `materialise` makes an array of size B x I x O. An example counts as not finite if
        |a_b| or |d_b| is above 2^400, or above 2^60 in float32: its w_b is so small that rounding
        w_b a_bi to float32, a multiple of 2^-149, could double it.
    """

    may_be_explicit = False  # norms and sum of the factors are cheaper on any device

    def __init__(self, a, d):
        super().__init__(a, d, 2)
        self._lost = (sum(self.shape) + 32) * 2.0**-52

    def sq_norms(self):
        """(B,) squared L2 norms, infinite where a factor is huge."""
        a, d = row_norms(self.a), row_norms(self.d)
        most = LARGE if self._single else HUGE
        return self.xp.where(self.xp.maximum(a, d) > most, math.inf, (a * d) ** 2)  # [N1]

    @property
    def _single(self):
        """True if the sum may be computed as one float32 product."""
        return self.a.dtype == self.d.dtype == self.xp.float32

    def weighted_sum(self, w, rows=0):
        """sum_b w_b g_b, of the parameter's shape: float32 where that is the sum of a few float32
        products.
        """
        return self._add_weighted(None, w, rows)

    def add_weighted_sum(self, total, w, rows=0):
        """total += sum_b w_b g_b, in place. rows: of one product in float32; 0 for float64."""
        self._add_weighted(total, w, rows)

    def _add_weighted(self, total, w, rows):
        single = rows and self._single
        a, d = self._weighted(w.astype(self.xp.float32 if single else self.xp.float64))
        return add_products(total, a, d, rows if single else 0)  # [P1]

    def materialise(self):
        """(B, I, O), by the definition."""
        return self.xp.einsum("bi,bo->bio", self.a, self.d)  # [F1]

    def sum_over_views(self, views):
        """One gradient per example, a sum over its rows as positions."""
        examples = self.n_examples // views
        return OuterSum(*(f.reshape((examples, views, f.shape[1])) for f in self.arrays))  # [V1]


class OuterSum(_Factored):
    r"""Gradients that are a sum of outer products over positions: convolutions, sequences.

    Shapes
        a (B, T, I)   d (B, T, O)   shape (I, O)   w (B,)

    Forward
        [F1]  g_bio = sum_t a_bti d_bto
        [N1]  sq_b = sum_tu A_btu D_btu,  A_btu = sum_i a_bti a_bui,  D_btu = sum_o d_bto d_buo
        [N3]  upper_b = max(sq_b + n eps m_b^2, (m_b / 64)^2), m_b = sum_t |a_bt| |d_bt|, n = I + O
              + 2 T + 64
        [P1]  total_io = sum_bt (w_b a_bti) d_bto
        [V1]  merged_bio = sum_vt a_bvti d_bvto    the positions of all rows of an example are
              positions of that example (`sum_over_views`)

    Source
        [N1]  Rochette, Manoel, Tramel 2019, arXiv:1912.06015; Bu, Mao, Xu 2022, arXiv:2205.10683
        [N3]  own derivation: the terms of [N1] may cancel, so the bound adds up their absolute
              values, which are at most |a_t| |a_u| |d_t| |d_u|. A chain of roundings is at most n
              long, even if u and t are added one after the other. So sq_b is off by at most n eps
              m_b^2 (Higham, section 3.1). The lower limit (m_b / 64)^2 bounds the sum of the
              absolute terms of [P1], and with it their rounding, for all examples together

    Guarantees
        A term of [P1] goes through at most 2^12 additions, plus one for each 2^22 terms of the
        batch. An example with more than 2^22 positions raises ShapeError, so that the second part
        is at most one addition per example.
    """

    def __init__(self, a, d):
        super().__init__(a, d, 3)
        self.positions = a.shape[1]
        if self.positions > TOGETHER * MOST_ROWS:
            raise ShapeError(
                f"OuterSum: expected at most {TOGETHER * MOST_ROWS:,} positions of one example, "
                f"which the charged rounding of sums allows for, got {self.positions:,}"
            )

    def sq_norms(self):
        """(B,) squared L2 norms through the two Gram matrices."""
        a, d = (factor.astype(self.xp.float64) for factor in (self.a, self.d))
        terms = (a @ a.transpose(0, 2, 1)) * (d @ d.transpose(0, 2, 1))
        sq = terms.sum(axis=2).sum(axis=1)  # [N1]
        return self.xp.where(sq < 0, 0, sq)

    def sq_norms_upper(self):
        """(B,) squared norms, rounded up by the bound on what the sums lost."""
        lost = (sum(self.shape) + 2 * self.positions + 64) * 2.0**-52  # [N3]
        if twin := kernel("gram_norms", self.a, self.d):
            return twin(self.a, self.d, lost, CANCELLING)
        a, d = row_norms(self.a), row_norms(self.d)
        most = self.xp.where(
            (self.xp.maximum(a, d) > HUGE).any(axis=1), math.inf, (a * d).sum(axis=1)
        )
        return self.xp.maximum(self.sq_norms() + lost * most**2, (most / CANCELLING) ** 2)  # [N3]

    def add_weighted_sum(self, total, w, rows=0):
        """total += sum_b w_b g_b, in place, always in float64: terms of one example may cancel."""
        n = self.n_examples * self.positions
        rows = product_rows(n)
        a, d = (factor.reshape((n, factor.shape[2])) for factor in self.arrays)
        w = self.xp.repeat(w, self.positions)
        for start in range(0, n, TOGETHER * rows):
            part = self.zeros()
            for at in range(start, min(start + TOGETHER * rows, n), rows):
                here = slice(at, min(at + rows, n))
                Outer(a[here], d[here]).add_weighted_sum(part, w[here])  # [P1]
            total += part

    def materialise(self, out=None):
        """(B, I, O), by the definition: a_b^T d_b of each example; into `out` if given."""
        return self.xp.matmul(self.a.transpose(0, 2, 1), self.d, out=out)  # [F1]

    def sum_over_views(self, views):
        """One gradient per example, over the positions of all its rows."""
        rows = self.n_examples // views, views * self.positions
        return OuterSum(*(f.reshape((*rows, f.shape[2])) for f in self.arrays))  # [V1]

    @property
    def factored_is_cheaper(self):
        """True if the Gram matrices cost less than the gradients."""
        return gram_is_cheaper(self.positions, *self.shape)


def product_rows(n):
    """Rows of each product in a sum over n rows: about sqrt(n), which keeps chains of roundings
    short.
    """
    return min(max(LEAST_ROWS, math.isqrt(n)), MOST_ROWS)


def gram_is_cheaper(positions, i, o):
    """True if Gram matrices are cheaper: T^2 (I + O) multiplications, four times as slow by
    measurement, against T I O.
    """
    return 4 * positions * (i + o) < i * o
