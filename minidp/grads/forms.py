"""Per-example gradients in three representations. Explicit and ghost clipping are the same code on
different ones.

A layer says what the factors of its gradients are; the representation knows how to norm and sum
them. So "explicit equals factored" is proved here, on three classes, and not in every layer.
Letters: b example, i, o sides of a product, t position.
"""

import math

from numpy.typing import NDArray

from ..backend import (
    add_products,
    add_weighted,
    explicit_fits,
    namespace_of,
    outer_products,
    row_norms,
    zero_rows_unless,
)
from ..errors import ShapeError
from ..exact.arithmetic import cut, in_pairs, precision
from ..host.memory import RUN
from ..kernels import kernel
from ..util.validate import one_of, same_batch

STRATEGIES = ("auto", "explicit", "factored")
# times the norm of a sum of outer products that their own norms may add up to; beyond, an example
# weighs less
CANCELLING = 64
ROWS = 512  # of such a sum in one product, at least: what `mechanism.rounding` charges counts on it
# norms of factors above which a gradient counts as not finite; LARGE in float32 products
HUGE, LARGE = (
    2.0**400,
    2.0**60,
)
Key = tuple[str, str]  # (layer, parameter)
Arrays = dict[Key, NDArray]  # of parameters


class PerExampleGrad:
    """The gradients g_b of one parameter, one for each of the `n_examples` examples of a batch.

    `shape` is the parameter's shape. Subclasses give sq_norms and sq_norms_upper, add_weighted_sum,
    materialise. Norms and sums are float64 whatever the gradients are. An example with weight 0
    contributes 0, also if its gradient or a factor of it is not finite. ShapeError is raised where
    factors differ in examples or positions, or have the wrong number of axes.
    """

    n_examples: int
    shape: tuple
    factored_is_cheaper = True  # than materialising, in multiplications on the host

    def sq_norms_upper(self):
        """(B,) squared norms, rounded up: no smaller than the true ones whatever the dtype's
        rounding.
        """
        return self.sq_norms() * (1 + self._lost)  # [N2]

    def zeros(self):
        """A sum of no gradients, float64, of the parameter's shape."""
        return self.xp.zeros(self.shape)

    def weighted_sum(self, w, rows=0):
        """sum_b w_b g_b, of the parameter's shape; rows as in add_weighted_sum."""
        total = self.zeros()
        self.add_weighted_sum(total, w, rows)
        return total

    def materialises(self, strategy, examples=0):
        """True if `strategy` trains through materialised gradients; auto does where cheaper, and on
        a GPU where they fit.

        examples: how many have to fit, a public number; 0 for those at hand.
        """
        one_of(STRATEGIES, strategy=strategy)
        if strategy == "auto":
            return (
                explicit_fits(self.xp, (examples or self.n_examples) * self.explicit_bytes)
                or not self.factored_is_cheaper
            )
        return strategy == "explicit"

    def form(self, strategy):
        """The same gradients in the representation that `strategy` trains through: Explicit, or
        these factors.
        """
        return self._explicit() if self.materialises(strategy) else self

    def _explicit(self):
        return Explicit(self.materialise())

    def materialise_exactly(self):
        """The gradients, (B, *shape), each with bits that no other example can change."""
        return self.materialise()

    def sum_over_views(self, views):
        """Merge augmented views: every `views` consecutive rows belong to one example; sum their
        gradients.
        """
        return self.form("explicit").sum_over_views(views)

    def rows(self, start, stop):
        """The same for the examples start..stop-1."""
        return type(self)(self.a[start:stop], self.d[start:stop])

    @property
    def explicit_bytes(self):
        """Bytes that materialising one example allocates."""
        return math.prod(self.shape) * self.d.dtype.itemsize

    @property
    def xp(self):
        """The array library of the factors."""
        return namespace_of(vars(self).get("g", vars(self).get("d")))


class Explicit(PerExampleGrad):
    r"""Gradients as they are: one array with an axis of examples in front.

    Shapes
        g (B, *shape)   w (B,)

    Forward
        [N1]  sq_b = sum_p g_bp^2
        [N2]  upper_b = sq_b (1 + n eps), n the longest chain of roundings, eps their size
              (`sq_norms_upper`)
        [P1]  sum = sum_b w_b g_b
        [V1]  sum_over_views: g_b = sum_v g_bv, v the rows of example b

    Source
        [N2]  Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1: a dot
              product of n non-negative terms is off by at most n eps relative, to first order; 8
              more cover what follows
    """

    def __init__(self, g, sq_norms=None):
        """sq_norms: the squared norms, where forming the gradients has computed them already."""
        self.g, self._sq_norms = g, sq_norms
        self.n_examples, self.shape = g.shape[0], tuple(g.shape[1:])
        self._lost = (math.prod(self.shape) + 32) * 2.0**-52 + (
            0 if sq_norms is None else (RUN + 8) * 2.0**-23
        )
        # formed with the longer axis last, (B, O, I) in memory: work goes along memory
        self._transposed = (
            g.ndim == 3 and not g.flags.c_contiguous and g.transpose(0, 2, 1).flags.c_contiguous
        )

    def _matrix(self):
        """(B, P), the numbers in the order in which they lie in memory."""
        g = self.g.transpose(0, 2, 1) if self._transposed else self.g
        return g.reshape((self.n_examples, math.prod(self.shape)))

    def sq_norms(self):
        """(B,) squared L2 norms."""
        return row_norms(self._matrix()) ** 2 if self._sq_norms is None else self._sq_norms  # [N1]

    def zeros(self):
        """A sum of no gradients, float64, with its axes in memory as those of the gradients."""
        return self.xp.zeros(self.shape[::-1]).T if self._transposed else super().zeros()

    def add_weighted_sum(self, total, w, rows=0):
        """total += sum_b w_b g_b, in place."""
        flat = total.T if self._transposed else total
        if flat.flags.c_contiguous:
            add_weighted(flat.reshape((flat.size,)), w, self._matrix())  # [P1]
        else:
            total += self.weighted_sum(w)

    def materialise(self):
        """The gradients, (B, *shape)."""
        return self.g

    def materialises(self, strategy, examples=0):
        """False: there is nothing left to materialise."""
        one_of(STRATEGIES, strategy=strategy)
        return False

    def sum_over_views(self, views):
        """One gradient per example, the sum of its rows."""
        return Explicit(
            in_pairs(self.g.reshape((self.n_examples // views, views, *self.shape)), 1)
        )  # [V1]

    def rows(self, start, stop):
        """The same for the examples start..stop-1."""
        return Explicit(self.g[start:stop])


class Outer(PerExampleGrad):
    r"""Gradients that are one outer product each, as those of a dense weight: g_b = a_b (x) d_b.

    Shapes
        a (B, I)   d (B, O)   shape (I, O)   w (B,)

    Forward
        [F1]  g_bio = a_bi d_bo
        [N1]  sq_b = (sum_i a_bi^2) (sum_o d_bo^2)
        [P1]  sum_io = sum_b (w_b a_bi) d_bo, in float64, or in float32 over a few rows at a time
        [V1]  sum_over_views: g_bio = sum_v a_bvi d_bvo, an OuterSum whose positions are the rows of
              example b

    Source
        [N1] [P1]  Goodfellow 2015, arXiv:1510.01799, section 4: rescale one factor, then one matrix
                   product

    Guarantees
        Only `materialise` makes an array of size B x I x O. A product in float32 leaves out
        examples with |a_b| or |d_b| above 2^60, or w_b below 2^-120: rounded to a multiple of
        2^-149, w_b or w_b a_bi may be twice as large.
    """

    def __init__(self, a, d):
        _check_factors("Outer", a, d, 2)
        self.a, self.d = a, d
        self.n_examples = a.shape[0]
        self.shape = (a.shape[1], d.shape[1])
        self._lost, self._norms = (sum(self.shape) + 32) * 2.0**-52, None

    def sq_norms(self):
        """(B,) squared L2 norms, infinite where a factor is huge."""
        a, d = self._norms = row_norms(self.a), row_norms(self.d)
        return self.xp.where(self.xp.maximum(a, d) > HUGE, math.inf, (a * d) ** 2)  # [N1]

    def weighted_sum(self, w, rows=0):
        """sum_b w_b g_b, of the parameter's shape: float32 where that is the sum of a few float32
        products.
        """
        return self.add_weighted_sum(None, w, rows)

    def add_weighted_sum(self, total, w, rows=0):
        """total += sum_b w_b g_b, in place; returns it, new for None. rows: of one product in
        float32; 0 for float64.
        """
        single = rows and self.a.dtype == self.d.dtype == self.xp.float32
        if single:
            longest = self.xp.maximum(*(self._norms or map(row_norms, (self.a, self.d))))
            w = self.xp.where((longest <= LARGE) & (w >= LARGE**-2), w, 0)
        a, d = (zero_rows_unless(w != 0, factor) for factor in (self.a, self.d))
        w = w[:, None].astype(self.xp.float32 if single else self.xp.float64)
        a, d = (w * a, d) if self.shape[0] <= self.shape[1] else (a, w * d)
        return add_products(total, a, d, rows if single else 0)  # [P1]

    def materialise(self):
        """(B, I, O), by the definition."""
        return self.xp.einsum("bi,bo->bio", self.a, self.d)  # [F1]

    def _explicit(self):
        """Through the compiled twin of [F1] where there is one."""
        return (
            Explicit(*outer_products(self.a, self.d))
            if kernel("form_outer", self.a, self.d)
            else super()._explicit()
        )

    def sum_over_views(self, views):
        """One gradient per example, a sum over its rows as positions."""
        examples = self.n_examples // views
        return OuterSum(
            *(f.reshape((examples, views, f.shape[1])) for f in (self.a, self.d))
        )  # [V1]


class OuterSum(PerExampleGrad):
    r"""Gradients that are a sum of outer products over positions: convolutions, sequences.

    Shapes
        a (B, T, I)   d (B, T, O)   shape (I, O)   w (B,)

    Forward
        [F1]  g_bio = sum_t a_bti d_bto
        [N1]  sq_b = sum_tu A_btu D_btu,  A_btu = sum_i a_bti a_bui,  D_btu = sum_o d_bto d_buo
        [N3]  upper_b = max(sq_b + n eps m_b^2, (m_b / 64)^2), m_b = sum_t |a_bt| |d_bt|, n = I + O
              + 2 log2 T + 32
        [P1]  sum_io = sum_bt (w_b a_bti) d_bto
        [V1]  sum_over_views: the positions of all rows of an example are positions of that example

    Source
        [N1]  Rochette, Manoel, Tramel 2019, arXiv:1912.06015; Bu, Mao, Xu 2022, arXiv:2205.10683
        [N3]  own derivation: the terms of [N1] may cancel, so their roundings count against
              absolute values. All are below |a_t| |a_u| |d_t| |d_u|, and chains of roundings are no
              longer than n: what sq_b loses is at most n eps m_b^2 (Higham, section 3.1; sums over
              t and u in pairs; chains of the CUDA twin may have 2 T more, and so has its n). The
              least value also bounds what the terms of [P1] add up to, and so their roundings, for
              all examples together
    """

    def __init__(self, a, d):
        _check_factors("OuterSum", a, d, 3)
        if a.shape[1] != d.shape[1]:
            raise ShapeError(
                f"OuterSum: expected the same positions, got a {a.shape} and d {d.shape}"
            )
        self.a, self.d = a, d
        self.n_examples, self.positions = a.shape[:2]
        self.shape = (a.shape[2], d.shape[2])

    def sq_norms(self):
        """(B,) squared L2 norms through the two Gram matrices."""
        a, d = (factor.astype(self.xp.float64) for factor in (self.a, self.d))
        terms = (a @ a.transpose(0, 2, 1)) * (d @ d.transpose(0, 2, 1))
        sq = in_pairs(terms, (1, 2))  # [N1]
        return self.xp.where(sq < 0, 0, sq)

    def sq_norms_upper(self):
        """(B,) squared norms, rounded up by the bound on what the sums lost."""
        if twin := kernel("gram_norms", self.a, self.d):
            return twin(self.a, self.d, CANCELLING)
        a, d = row_norms(self.a), row_norms(self.d)
        most = self.xp.where(
            (self.xp.maximum(a, d) > HUGE).any(axis=1), math.inf, (a * d).sum(axis=1)
        )
        lost = (sum(self.shape) + 2 * (self.positions - 1).bit_length() + 32) * 2.0**-52
        return self.xp.maximum(self.sq_norms() + lost * most**2, (most / CANCELLING) ** 2)  # [N3]

    def add_weighted_sum(self, total, w, rows=0):
        """total += sum_b w_b g_b, in place, always in float64: terms of one example may cancel."""
        a, d = (zero_rows_unless(w != 0, factor) for factor in (self.a, self.d))
        a, d = (
            (w[:, None, None] * a, d)
            if self.shape[0] <= self.shape[1]
            else (a, w[:, None, None] * d)
        )
        a, d = (
            factor.reshape((self.n_examples * self.positions, factor.shape[2])) for factor in (a, d)
        )
        # as many rows as blocks: a short chain of roundings
        part, rows = (
            self.zeros(),
            max(ROWS, math.isqrt(a.shape[0])),
        )
        for at in range(0, a.shape[0], rows):
            add_products(part, a[at : at + rows], d[at : at + rows], 0)  # [P1]
        total += part

    def materialise(self, out=None):
        """(B, I, O), by the definition: the matrix product a_b^T d_b of each example; into `out` if
        given.
        """
        return self.xp.matmul(self.a.transpose(0, 2, 1), self.d, out=out)  # [F1]

    def materialise_exactly(self):
        """(B, I, O) float64: the product of factors that were cut, each example's to integers and a
        power of two.
        """
        bits, xp = precision(self.positions), self.xp
        (a, e), (d, f) = (
            cut(factor.reshape((self.n_examples, self.positions * size)), bit, nearest=True)
            for factor, size, bit in zip((self.a, self.d), self.shape, bits)
        )
        a, d = (
            factor.reshape((self.n_examples, self.positions, size))
            for factor, size in zip((a, d), self.shape)
        )
        return xp.ldexp(xp.matmul(a.transpose(0, 2, 1), d), (e + f - sum(bits))[:, :, None])

    def sum_over_views(self, views):
        """One gradient per example, over the positions of all its rows."""
        examples, positions = self.n_examples // views, views * self.positions
        return OuterSum(
            *(f.reshape((examples, positions, f.shape[2])) for f in (self.a, self.d))
        )  # [V1]

    @property
    def factored_is_cheaper(self):
        """True if the Gram matrices cost less than the gradients."""
        return gram_is_cheaper(self.positions, *self.shape)


def gram_is_cheaper(positions, i, o):
    """True if Gram matrices, T^2 (I + O) multiplications at a quarter of the speed (measured), cost
    less than T I O.
    """
    return 4 * positions * (i + o) < i * o


def _check_factors(where, a, d, ndim):
    namespace_of(a, d)
    if a.ndim != ndim or d.ndim != ndim:
        raise ShapeError(
            f"{where}: expected factors with {ndim} axes, got a {a.shape} and d {d.shape}"
        )
    same_batch(where, a=a, d=d)
