"""Per-example gradients in three representations. Explicit and ghost clipping are the same code on different ones.

A layer says what the factors of its gradients are; the representation knows how to norm and sum them. So "explicit equals
factored" is proved here, on three classes, and not in every layer. Letters: b example, i and o the two sides of an outer
product, t position.
"""
import math

from .backend import (add_weighted, compiled, epsilon, explicit_fits, namespace_of, outer_products, row_sq_norms,
                      zero_rows_unless)
from .errors import ShapeError
from .host.gram import RUN, gram, gram_chain, pair_levels, quadratic, sum_in_pairs
from .validate import one_of, same_batch

STRATEGIES = ("auto", "explicit", "factored")
Key = tuple[str, str]   # (layer, parameter)


class PerExampleGrad:
    """The gradients g_b of one parameter, one for each of the `n_examples` examples of a batch.

    `shape` is the parameter's shape. Subclasses give sq_norms, weighted_sum, materialise. Whatever the representation, an
    example with weight 0 contributes 0, also if its gradient or a factor of it is not finite. ShapeError is raised where
    factors differ in examples or positions, or have the wrong number of axes.
    """

    n_examples: int
    shape: tuple
    factored_is_cheaper = True  # than materialising, in multiplications on the host

    def sq_norms_upper(self):
        """(B,) squared norms, rounded up: no smaller than the true ones whatever the dtype's rounding."""
        sq = self.sq_norms()
        return sq * (1 + self._chain * epsilon(sq))  # [N2]

    def add_weighted_sum(self, total, w):
        """total += sum_b w_b g_b, in place."""
        total += self.weighted_sum(w)

    def materialises(self, strategy):
        """True if `strategy` (auto, explicit, factored) trains through materialised gradients.

        auto materialises on a device with memory to spare (a GPU) and otherwise takes the cheaper form.
        """
        one_of(STRATEGIES, strategy=strategy)
        if strategy == "auto":
            return explicit_fits(self.xp, self.explicit_bytes) or not self.factored_is_cheaper
        return strategy == "explicit"

    def form(self, strategy):
        """The same gradients in the representation that `strategy` trains through: Explicit, or these factors."""
        return self._explicit() if self.materialises(strategy) else self

    def _explicit(self):
        return Explicit(self.materialise())

    def sum_over_views(self, views):
        """Merge augmented views: every `views` consecutive rows belong to one example; sum their gradients."""
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
        return namespace_of(self.d)


class Explicit(PerExampleGrad):
    r"""Gradients as they are: one array with an axis of examples in front.

    Shapes
        g (B, *shape)   w (B,)

    Forward
        [N1]  sq_b = sum_p g_bp^2
        [N2]  upper_b = sq_b (1 + n eps), n the longest chain of roundings (`sq_norms_upper`)
        [P1]  sum = sum_b w_b g_b
        [V1]  sum_over_views: g_b = sum_v g_bv, v the rows of example b

    Source
        [N2]  Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1: a dot product of n
              non-negative terms is off by at most n eps relative, to first order; 8 more cover what follows
    """

    def __init__(self, g, sq_norms=None):
        """sq_norms: the squared norms, where forming the gradients has computed them already."""
        self.g, self._sq_norms = g, sq_norms
        self.n_examples, self.shape = g.shape[0], tuple(g.shape[1:])
        size = math.prod(self.shape)
        self._chain = min(size, RUN) + size // RUN + 8
        # formed with the longer axis last, (B, O, I) in memory: work goes along memory
        self._transposed = g.ndim == 3 and not g.flags.c_contiguous and g.transpose(0, 2, 1).flags.c_contiguous

    def _matrix(self):
        """(B, P), the numbers in the order in which they lie in memory."""
        g = self.g.transpose(0, 2, 1) if self._transposed else self.g
        return g.reshape((self.n_examples, math.prod(self.shape)))

    def sq_norms(self):
        """(B,) squared L2 norms, summed in runs: that keeps the chain of roundings short."""
        if self._sq_norms is not None:
            return self._sq_norms
        g = self._matrix()
        whole = g.shape[1] - g.shape[1] % RUN
        runs = g[:, :whole].reshape((self.n_examples, whole // RUN, RUN))
        return row_sq_norms(runs).sum(axis=1) + row_sq_norms(g[:, whole:])  # [N1]

    def weighted_sum(self, w):
        """sum_b w_b g_b, of the parameter's shape."""
        total = w @ zero_rows_unless(w != 0, self._matrix())  # [P1]
        return total.reshape(self.shape[::-1]).T if self._transposed else total.reshape(self.shape)

    def add_weighted_sum(self, total, w):
        """total += sum_b w_b g_b, in place; in one pass where the gradients were formed by a kernel."""
        flat = total.T if self._transposed else total
        if self._sq_norms is None or not flat.flags.c_contiguous:
            return super().add_weighted_sum(total, w)
        add_weighted(flat.reshape((flat.size,)), w, self._matrix())  # [P1]

    def materialise(self):
        """The gradients, (B, *shape)."""
        return self.g

    def materialises(self, strategy):
        """False: there is nothing left to materialise."""
        one_of(STRATEGIES, strategy=strategy)
        return False

    def sum_over_views(self, views):
        """One gradient per example, the sum of its rows."""
        return Explicit(self.g.reshape((self.n_examples // views, views, *self.shape)).sum(axis=1))  # [V1]

    def rows(self, start, stop):
        """The same for the examples start..stop-1."""
        return Explicit(self.g[start:stop])

    @property
    def xp(self):
        """The array library of the gradients."""
        return namespace_of(self.g)


class Outer(PerExampleGrad):
    r"""Gradients that are one outer product each, as those of a dense weight: g_b = a_b (x) d_b.

    Shapes
        a (B, I)   d (B, O)   shape (I, O)   w (B,)

    Forward
        [F1]  g_bio = a_bi d_bo
        [N1]  sq_b = (sum_i a_bi^2) (sum_o d_bo^2)
        [P1]  sum_io = sum_b (w_b a_bi) d_bo
        [V1]  sum_over_views: g_bio = sum_v a_bvi d_bvo, an OuterSum whose positions are the rows of example b

    Source
        [N1]  Goodfellow 2015, arXiv:1510.01799, section 4
        [P1]  Goodfellow 2015, arXiv:1510.01799, section 4: rescale one factor, then one matrix product

    Guarantees
        Only `materialise` makes an array of size B x I x O.
    """

    def __init__(self, a, d):
        _check_factors("Outer", a, d, 2)
        self.a, self.d = a, d
        self.n_examples = a.shape[0]
        self.shape = (a.shape[1], d.shape[1])
        self._chain = sum(self.shape) + 8

    def sq_norms(self):
        """(B,) squared L2 norms."""
        return row_sq_norms(self.a) * row_sq_norms(self.d)  # [N1]

    def weighted_sum(self, w):
        """sum_b w_b g_b, (I, O)."""
        a, d = (zero_rows_unless(w != 0, factor) for factor in (self.a, self.d))
        a, d = (w[:, None] * a, d) if self.shape[0] <= self.shape[1] else (a, w[:, None] * d)
        return a.T @ d  # [P1]

    def materialise(self):
        """(B, I, O), by the definition."""
        return self.xp.einsum("bi,bo->bio", self.a, self.d)  # [F1]

    def _explicit(self):
        """Through the compiled twin of [F1] where there is one."""
        return Explicit(*outer_products(self.a, self.d)) if compiled(self.a, self.d) else super()._explicit()

    def sum_over_views(self, views):
        """One gradient per example, a sum over its rows as positions."""
        examples = self.n_examples // views
        return OuterSum(*(f.reshape((examples, views, f.shape[1])) for f in (self.a, self.d)))  # [V1]


class OuterSum(PerExampleGrad):
    r"""Gradients that are a sum of outer products over positions: convolutions, sequences.

    Shapes
        a (B, T, I)   d (B, T, O)   shape (I, O)   w (B,)

    Forward
        [F1]  g_bio = sum_t a_bti d_bto
        [N1]  sq_b = sum_tu A_btu D_btu,  A_btu = sum_i a_bti a_bui,  D_btu = sum_o d_bto d_buo
        [N3]  upper_b = sq_b + (c_i + c_s) sum_tu |a_bt| |D_btu| |a_bu| + c_o sum_tu |d_bt| |A_btu| |d_bu|
                             + c_i c_o (sum_t |a_bt| |d_bt|)^2
        [N4]  c = n u / (1 - n u), u half the dtype's eps; n the longest chain of roundings in A (c_i), D (c_o)
              and the sum over t and u (c_s)
        [P1]  sum_io = sum_bt (w_b a_bti) d_bto
        [V1]  sum_over_views: the positions of all rows of an example are positions of that example

    Source
        [N1]  Rochette, Manoel, Tramel 2019, arXiv:1912.06015; Bu, Mao, Xu 2022, arXiv:2205.10683
        [N3]  own derivation: the terms of [N1] may cancel, so their roundings count against absolute values. With
              A', D' as computed, |A'_tu - A_tu| <= c_i |a_t| |a_u| by [N4] and Cauchy-Schwarz, and |D'_tu - D_tu|
              <= c_o |d_t| |d_u|. From A'D' - AD = (A' - A) D' + A' (D' - D) - (A' - A) (D' - D), the first two
              terms of [N3] with c_i and c_o and the last. Adding up A'D' in pairs is off by at most
              c_s sum |A'D'|, and |A'_tu| <= (1 + c_i) |a_t| |a_u|. What the bound itself rounds is in `slack`.
        [N4]  Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2: for every order of
              the additions, multiplications fused or not; not for products in a smaller precision (TF32)
    """

    def __init__(self, a, d):
        _check_factors("OuterSum", a, d, 3)
        if a.shape[1] != d.shape[1]:
            raise ShapeError(f"OuterSum: expected the same positions, got a {a.shape} and d {d.shape}")
        self.a, self.d = a, d
        self.n_examples, self.positions = a.shape[:2]
        self.shape = (a.shape[2], d.shape[2])

    def sq_norms(self):
        """(B,) squared L2 norms through the two Gram matrices."""
        return self._through_grams()[0]

    def sq_norms_upper(self):
        """(B,) squared norms, rounded up by the bound on what the sums lost."""
        (sq, gram_a, gram_d), (i, o) = self._through_grams(), self.shape
        a, d = (self.xp.sqrt(row_sq_norms(factor)) for factor in (self.a, self.d))
        c_i, c_o, c_s, slack = (
            rounding_bound(n, sq) for n in (gram_chain(i, sq), gram_chain(o, sq), 1 + pair_levels(self.positions**2),
                                            2 * (self.positions + i) + o + 20))
        lost = (c_i + c_s) * quadratic(a, gram_d) + c_o * quadratic(d, gram_a)
        lost += c_i * c_o * (a * d).sum(axis=1) ** 2
        return (sq + lost * (1 + 2 * slack)) * (1 + 8 * epsilon(sq))  # [N3]

    def _through_grams(self):
        """The squared norms and the absolute Gram matrices of a and d, (B, T, T)."""
        xp = self.xp
        gram_a, gram_d = gram(self.a), gram(self.d)
        terms = (gram_a * gram_d).reshape((self.n_examples, self.positions**2))
        sq = sum_in_pairs(terms)  # [N1]
        return xp.where(sq < 0, 0, sq), xp.abs(gram_a, out=gram_a), xp.abs(gram_d, out=gram_d)

    def weighted_sum(self, w):
        """sum_b w_b g_b, (I, O)."""
        a, d = (zero_rows_unless(w != 0, factor) for factor in (self.a, self.d))
        rows = self.n_examples * self.positions
        a, d = (w[:, None, None] * a, d) if self.shape[0] <= self.shape[1] else (a, w[:, None, None] * d)
        return a.reshape((rows, self.shape[0])).T @ d.reshape((rows, self.shape[1]))  # [P1]

    def materialise(self, out=None):
        """(B, I, O), by the definition: the matrix product a_b^T d_b of each example; into `out` if given."""
        return self.xp.matmul(self.a.transpose(0, 2, 1), self.d, out=out)  # [F1]

    def sum_over_views(self, views):
        """One gradient per example, over the positions of all its rows."""
        examples, positions = self.n_examples // views, views * self.positions
        return OuterSum(*(f.reshape((examples, positions, f.shape[2])) for f in (self.a, self.d)))  # [V1]

    @property
    def factored_is_cheaper(self):
        """True if the Gram matrices cost less than the gradients."""
        return gram_is_cheaper(self.positions, *self.shape)


def rounding_bound(n, array):
    """The relative error of a sum of products with chains of n roundings, in the array's dtype."""
    lost = n * epsilon(array) / 2
    return lost / (1 - lost) if lost < 1 else math.inf  # [N4]


def gram_is_cheaper(positions, i, o):
    """True if the Gram matrices of an OuterSum of T positions and shape (I, O) cost less than its gradients.

    They take T^2 (I + O) multiplications per example at a quarter of the speed (measured), the gradients T I O.
    """
    return 4 * positions * (i + o) < i * o


def _check_factors(where, a, d, ndim):
    namespace_of(a, d)
    if a.ndim != ndim or d.ndim != ndim:
        raise ShapeError(f"{where}: expected factors with {ndim} axes, got a {a.shape} and d {d.shape}")
    same_batch(where, a=a, d=d)
