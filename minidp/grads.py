"""Per-example gradients in three representations, which joins the explicit and the ghost strategy.

A layer says what the factors of its gradients are; the representation knows how to norm and sum them. So
"explicit equals factored" is proved here, on three classes, and not in every layer.

Letters: b example, i and o the two sides of an outer product, t position.
"""
from math import prod

from .backend import epsilon, keep_rows, materialises, namespace_of, row_sq_norms
from .errors import ShapeError
from .validate import one_of, same_batch

STRATEGIES = ("auto", "explicit", "factored")
RUN = 512  # numbers summed at a stretch


class PerExampleGrad:
    """The gradients g_b of one parameter, one for each of the `n_examples` examples of a batch.

    `shape` is the parameter's shape. Subclasses give sq_norms, weighted_sum, materialise, rows.
    """

    n_examples: int
    shape: tuple

    def sq_norms_upper(self):
        """(B,) squared norms, rounded up: no smaller than the true ones whatever the dtype's rounding."""
        sq = self.sq_norms()
        return sq * (1 + self._chain * epsilon(sq))  # [N2]

    def resolve(self, strategy):
        """"explicit" or "factored": what `strategy` (auto, explicit, factored) means for this gradient.

        auto materialises on a device with memory to spare (a GPU) and otherwise takes the cheaper form.
        """
        one_of(STRATEGIES, strategy=strategy)
        if strategy != "auto":
            return strategy
        return "explicit" if materialises(self.xp, self.explicit_bytes) else self._cheaper()

    def choose(self, strategy):
        """This gradient in the representation that `strategy` asks for."""
        return self.explicit() if self.resolve(strategy) == "explicit" else self

    def explicit(self):
        """The same gradients, materialised."""
        return Explicit(self.materialise())

    @property
    def explicit_bytes(self):
        """Bytes that materialising one example allocates."""
        return prod(self.shape) * self.d.dtype.itemsize

    @property
    def xp(self):
        """The array library of the factors."""
        return namespace_of(self.d)

    def _cheaper(self):
        return "factored"


class Explicit(PerExampleGrad):
    r"""Gradients as they are: one array with an axis of examples in front.

    Shapes
        g (B, *shape)   w (B,)

    Forward
        [N1]  sq_b = sum_p g_bp^2
        [N2]  upper_b = sq_b (1 + n eps), n the longest chain of roundings (`sq_norms_upper`)
        [P1]  sum = sum_b w_b g_b

    Source
        [N2]  Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1: a dot product of n
              non-negative terms is off by at most n eps relative, to first order; 8 more cover what follows

    Guarantees
        An example with weight 0 contributes 0, also if its gradient is not finite.

    Checked by
        [N1]  tests/test_grads.py::test_norms_and_sums_equal_the_materialised_ones
        [N2]  tests/test_grads.py::test_upper_norms_are_never_below_the_true_ones
        [P1]  tests/test_grads.py::test_norms_and_sums_equal_the_materialised_ones
    """

    def __init__(self, g, swapped=False):
        """swapped: the array given has its two last axes the other way round in memory, (B, O, I)."""
        self.g, self._swapped = g, swapped
        self.n_examples = g.shape[0]
        self.shape = tuple(g.shape[:0:-1]) if swapped else tuple(g.shape[1:])
        size = prod(self.shape)
        self._chain = min(size, RUN) + size // RUN + 8

    def _matrix(self):
        return self.g.reshape((self.n_examples, prod(self.shape)))

    def sq_norms(self):
        """(B,) squared L2 norms, summed in runs: that keeps the chain of roundings short."""
        g = self._matrix()
        whole = g.shape[1] - g.shape[1] % RUN
        runs = g[:, :whole].reshape((self.n_examples, whole // RUN, RUN))
        return row_sq_norms(runs).sum(axis=1) + row_sq_norms(g[:, whole:])  # [N1]

    def weighted_sum(self, w):
        """sum_b w_b g_b, of the parameter's shape."""
        total = w @ keep_rows(w != 0, self._matrix())  # [P1]
        return total.reshape(self.shape[::-1]).T if self._swapped else total.reshape(self.shape)

    def materialise(self):
        """The gradients, (B, *shape)."""
        return self.g.transpose(0, 2, 1) if self._swapped else self.g

    def rows(self, start, stop):
        """The same for the examples start..stop-1."""
        return Explicit(self.g[start:stop], self._swapped)

    def resolve(self, strategy):
        """"factored" whatever is asked for: there is nothing left to materialise."""
        one_of(STRATEGIES, strategy=strategy)
        return "factored"

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

    Source
        [N1]  Goodfellow 2015, arXiv:1510.01799, section 4
        [P1]  Goodfellow 2015, arXiv:1510.01799, section 4: rescale one factor, then one matrix product

    Guarantees
        An example with weight 0 contributes 0, also if a factor is not finite: both its factors become 0.
        Only `materialise` makes an array of size B x I x O.

    Raises
        ShapeError   a and d differ in the number of examples, or are not matrices

    Checked by
        [F1]  tests/test_grads.py::test_materialise_equals_a_loop
        [N1]  tests/test_grads.py::test_norms_and_sums_equal_the_materialised_ones
        [P1]  tests/test_grads.py::test_norms_and_sums_equal_the_materialised_ones
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
        a, d = (keep_rows(w != 0, factor) for factor in (self.a, self.d))
        if self.shape[0] <= self.shape[1]:
            return (w[:, None] * a).T @ d  # [P1]
        return a.T @ (w[:, None] * d)  # [P1]

    def materialise(self):
        """(B, I, O), by the definition."""
        return self.xp.einsum("bi,bo->bio", self.a, self.d)  # [F1]

    def explicit(self):
        """Materialised with the longer axis last, which is three times faster where the other is short."""
        if self.shape[0] <= self.shape[1]:
            return Explicit(self.materialise())
        return Explicit(self.xp.einsum("bi,bo->boi", self.a, self.d), swapped=True)  # [F1]

    def rows(self, start, stop):
        """The same for the examples start..stop-1."""
        return Outer(self.a[start:stop], self.d[start:stop])


class OuterSum(PerExampleGrad):
    r"""Gradients that are a sum of outer products over positions: convolutions, sequences.

    Shapes
        a (B, T, I)   d (B, T, O)   shape (I, O)   w (B,)

    Forward
        [F1]  g_bio = sum_t a_bti d_bto
        [N1]  sq_b = sum_tu (sum_i a_bti a_bui) (sum_o d_bto d_buo)
        [N3]  upper_b = sq_b + n eps (sum_t |a_bt| |d_bt|)^2
        [P1]  sum_io = sum_bt (w_b a_bti) d_bto

    Source
        [N1]  Rochette, Manoel, Tramel 2019, arXiv:1912.06015; Bu, Mao, Xu 2022, arXiv:2205.10683
        [N3]  own derivation: the terms of [N1] may cancel, so the rounding is relative to the sum of their
              absolute values, at most (sum_t |a_bt| |d_bt|)^2 by Cauchy-Schwarz; n counts the roundings of a chain

    Guarantees
        An example with weight 0 contributes 0, also if a factor is not finite.

    Raises
        ShapeError   a and d differ in examples or positions

    Checked by
        [F1]  tests/test_grads.py::test_materialise_equals_a_loop
        [N1]  tests/test_grads.py::test_norms_and_sums_equal_the_materialised_ones
        [N3]  tests/test_grads.py::test_upper_norms_are_never_below_the_true_ones
        [P1]  tests/test_grads.py::test_norms_and_sums_equal_the_materialised_ones
    """

    def __init__(self, a, d):
        _check_factors("OuterSum", a, d, 3)
        if a.shape[1] != d.shape[1]:
            raise ShapeError(f"OuterSum: expected the same positions, got a {a.shape} and d {d.shape}")
        self.a, self.d = a, d
        self.n_examples, self.positions = a.shape[:2]
        self.shape = (a.shape[2], d.shape[2])
        self._chain = sum(self.shape) + 2 * self.positions + 8

    def sq_norms(self):
        """(B,) squared L2 norms through the two Gram matrices."""
        gram_a = self.a @ self.a.transpose(0, 2, 1)
        gram_d = self.d @ self.d.transpose(0, 2, 1)
        sq = self.xp.einsum("btu,btu->bt", gram_a, gram_d).sum(axis=1)  # [N1]
        return self.xp.where(sq < 0, 0, sq)

    def sq_norms_upper(self):
        """(B,) squared norms, rounded up by the bound on cancellation."""
        sq = self.sq_norms()
        sizes = self.xp.sqrt(row_sq_norms(self.a) * row_sq_norms(self.d))
        return sq + (self._chain * epsilon(sq)) * sizes.sum(axis=1) ** 2  # [N3]

    def weighted_sum(self, w):
        """sum_b w_b g_b, (I, O)."""
        a, d = (keep_rows(w != 0, factor) for factor in (self.a, self.d))
        rows = self.n_examples * self.positions
        if self.shape[0] <= self.shape[1]:
            a = w[:, None, None] * a
        else:
            d = w[:, None, None] * d
        return a.reshape((rows, self.shape[0])).T @ d.reshape((rows, self.shape[1]))  # [P1]

    def materialise(self, out=None):
        """(B, I, O), by the definition (einsum "bti,bto->bio" as the batched product it is); into `out` if given."""
        return self.xp.matmul(self.a.transpose(0, 2, 1), self.d, out=out)  # [F1]

    def rows(self, start, stop):
        """The same for the examples start..stop-1."""
        return OuterSum(self.a[start:stop], self.d[start:stop])

    def _cheaper(self):
        return cheaper_sum(self.positions, *self.shape)


def cheaper_sum(positions, i, o):
    """"factored" or "explicit": what costs less for an OuterSum of T positions and shape (I, O)."""
    # Multiplications for one example: T^2 (I + O) through the Gram matrices, and T I O for either the explicit
    # gradients or the sum of factors. Small Gram products run at a quarter of the speed of the others (measured).
    return "factored" if 4 * positions * (i + o) < i * o else "explicit"


def _check_factors(where, a, d, ndim):
    namespace_of(a, d)
    if a.ndim != ndim or d.ndim != ndim:
        raise ShapeError(f"{where}: expected factors with {ndim} axes, got a {a.shape} and d {d.shape}")
    same_batch(where, a=a, d=d)
