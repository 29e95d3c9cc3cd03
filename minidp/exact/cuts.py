"""Products and sums whose bits depend on one example alone.

BLAS may round a row of `x @ W` differently when the number of rows, or the row's place, changes. In
"exact" arithmetic both factors are cut to integers times powers of two, with so few bits that every
partial sum fits into the 53 bits of float64. The product is then exact, for any order, blocking,
number of threads and device.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import namespace_of
from ..kernels import kernel


def product(x: NDArray, W: NDArray) -> NDArray:
    r"""x @ W, every partial sum exact.

    Shapes
        x (B, K)   W (K, O)   y (B, O), of the dtype of x @ W

    Forward
        [F1]  y_bo = round((sum_k X_bk V_ko) 2^(e_b + f_o - p - q)), X_bk = rint(x_bk 2^(p - e_b)),
              V_ko = rint(W_ko 2^(q - f_o)), p + q + ceil(log2 K) = 53    rounded once; e and f
              as in `cut`: no partial sum is above 2^53

    Source
        [F1]  Ozaki, Ogita, Oishi, Rump 2012, Numerical Algorithms 59: error-free transformations of
              products

    Guarantees
        Row b of y is a function of row b of x and of W, bit for bit. What comes of a row or
        a column that is not finite is NaN. An entry is off by at most K (2^-p + 2^-q) max_k |x_bk|
        max_k |W_ko|, usually by much less.
    """
    p, q = precision(x.shape[1])
    (X, e), (V, f) = cut(x, p, nearest=True), cut(W, q, axis=0, nearest=True)
    y = namespace_of(x, W).empty((x.shape[0], W.shape[1]), np.result_type(x.dtype, W.dtype))
    return put_back(X @ V, e, f, p + q, out=y)  # [F1]


def product_of_patches(x: NDArray, W: NDArray) -> tuple[NDArray, Any]:
    r"""As `Arithmetic.product_of_patches`: an image is cut to integers as a whole, before patches
    repeat its pixels.

    Forward
        [F1]  out_bto = (sum_k P_btk V_ko) 2^(e_b + f_o - p - q)    P the patches of X; X, e the
              images of x cut to p bits, V, f the columns of W to q, as in `product`

    Source
        [F1]  own derivation: `product` [F1]; a cut image's pixels are those of its patches
    """
    p, q = precision(W.shape[0])
    X, e = _cut_examples(x, p)
    V, f = cut(W, q, axis=0, nearest=True)

    def multiply(patches, examples, out):
        put_back(patches @ V, e[examples], f, p + q, out=out)  # [F1]

    return X, multiply


def products_of_examples(a: NDArray, d: NDArray) -> NDArray:
    """(B, I, O) float64, the sums over t of a (B, T, I) and d (B, T, O), of factors that are cut,
    example by example.
    """
    xp, bits = namespace_of(a, d), precision(a.shape[1])
    (A, e), (D, f) = map(_cut_examples, (a, d), bits)
    S = xp.matmul(A.transpose(0, 2, 1), D)
    S *= xp.ldexp(1.0, e + f - sum(bits))[:, :, None]
    return S


def _cut_examples(x, bits):
    """`cut` of examples of any shape, each as a whole."""
    X, e = cut(x.reshape((x.shape[0], prod(x.shape[1:]))), bits, nearest=True)
    return X.reshape(x.shape), e


def precision(inner: int) -> tuple[int, int]:
    """(p, q), bits of rows and of columns of an exact product of `inner` terms: p + q + ceil(log2
    inner) = 53.
    """
    left = 53 - (inner - 1).bit_length()
    return left // 2, left - left // 2


def cut(x: NDArray, bits: int, axis: int = 1, nearest: bool = False) -> tuple[NDArray, NDArray]:
    r"""Integers times a power of two for each row (or column): what is below 2^-bits of the largest
    number goes.

    nearest: to the nearest integer, halves to the even one, instead of toward zero.

    Shapes
        x (B, K) float32 or float64   X like x, float64   e int32, (B, 1), or (1, K) for the columns
                                      of axis 0

    Forward
        [F1]  X_bk = round(x_bk 2^(bits - e_b)), |X_bk| <= 2^bits,
              e_b = floor(log2 max_k |x_bk|) + 1 where max_k |x_bk| > 0, else 0    along the axis;
              round is trunc, and then |X| < 2^bits, or to the nearest integer
        [F2]  NaN(X_bk) = 1 - prod_j finite(x_bj), e_b = 0 where prod_j finite(x_bj) = 0    along
              the axis where a number is not finite

    Source
        [F1]  Ozaki, Ogita, Oishi, Rump 2012, Numerical Algorithms 59; a power of two in place of
              their constant
    """
    xp = namespace_of(x)
    if twin := kernel("cut", x):
        return twin(x, bits, axis, nearest)
    largest = xp.abs(x).max(axis=axis, keepdims=True)
    finite = xp.isfinite(largest)
    e = xp.where(finite, xp.frexp(largest)[1], 0).astype(xp.int32)
    X = (xp.rint if nearest else xp.trunc)(xp.ldexp(x.astype(xp.float64), bits - e))  # [F1]
    return xp.where(finite, X, xp.nan), e  # [F2]


def put_back(S: NDArray, e: NDArray, f: NDArray, bits: int, out: NDArray) -> NDArray:
    r"""Undo the cuts of a product's factors: powers of two, and one rounding to the dtype of `out`,
    which is returned.

    Shapes
        S (B T, O) float64   e (B, 1), each for T rows   f (1, O)   bits p + q   out (B T, O)

    Forward
        [F1]  out_bto = round(S_bto 2^(e_b + f_o - bits))    to the dtype of `out`

    Source
        [F1]  own derivation: X = x 2^(p - e) and V = W 2^(q - f) give x W = X V 2^(e + f - p - q)
    """
    xp, (rows, outputs), examples = namespace_of(S, out), S.shape, e.shape[0]
    shape = (examples, rows // max(examples, 1), outputs)
    if twin := kernel("put_back", out):
        twin(
            S.reshape(shape), np.ldexp(1.0, e[:, 0] - bits), np.ldexp(1.0, f[0]), out.reshape(shape)
        )
        return out
    out[...] = (
        xp.ldexp(S.reshape(shape), e[:, :, None] + f - bits)
        .reshape((rows, outputs))
        .astype(out.dtype)
    )  # [F1]
    return out
