"""Compare each CUDA kernel with its definition before anything is charged.

A kernel that does not compile on this GPU, or gives other numbers than its definition on the host,
is left out: the definition computes in its place, slower but right. The inputs are fixed numbers,
which have nothing to do with the data, and the noise of a fixed seed.
"""

import math
import sys
from functools import cache, partial
from typing import Any

import numpy as np

from ..arrays import row_norms, to_host
from ..exact.arithmetic import in_pairs
from ..exact.elementwise import exp, log, tanh
from ..grads.forms import Explicit, Outer, OuterSum
from ..grads.sums import add_weighted_sums, sum_of_squares
from ..kernels import allow, only
from ..mechanism.clip import clip_weights
from ..mechanism.noise import add_gaussian, add_integers
from ..nn.activation import ReLU
from ..nn.loss import SoftmaxCrossEntropy
from ..nn.window import Window
from ..ranks import current
from ..streams import Streams
from .optimizer import SGD


def _coordinates(x, dy):
    y, cache = ReLU().forward(x)
    return exp(x), log(x), tanh(x), y, ReLU().backward(dy, cache)


def _formed(a, d):
    explicit = Outer(a, d).form("explicit")
    return explicit.materialise(), explicit.sq_norms()


def _squares(a, d):
    return sum_of_squares([Outer(a, d), *35 * [Explicit(a)]])


def _gram_norms(a, d):
    return OuterSum(a, d).sq_norms_upper()


def _summed(w, a, d, a_t, d_t, rows=3, old=0):
    grads = {"a": Outer(a, d), "b": Explicit(d), "c": OuterSum(a_t, d_t), "d": Outer(d, a)}
    total = {key: grads[key].zeros() + 0.5 for key in [*grads][:old]}
    add_weighted_sums(grads, w, total, rows)
    return [total[key].astype("float64") for key in grads]


def _pairs(x, axis=1):
    return in_pairs(x, axis), in_pairs(x.astype("float64"), axis, keepdims=True)


def _patches(x, y, window=Window((3, 2), (1, 2), "same")):
    return window.patches(x), window.patches(x, turned=True), window.fold(y, x.shape)


def _maxima(x, dy, window=Window((3, 2), (1, 2), "same")):
    padded = window.pad(x, -math.inf)
    y, place = window.maxima(padded, dy.shape[1:3])
    return y, place, window.spread(dy, place, x.shape)


def _descended(theta, g):
    params = {("a", "W"): theta.copy(), ("a", "b"): theta[0].copy()}
    SGD(0.3).update(params, {("a", "W"): g * 2, ("a", "b"): g[0] * 2}, 0)
    return params.values()


def _released(raw):
    draws = Streams(0).noise(0)
    noisy = add_gaussian(raw, 3.0, draws, (), 0.25, "float32")
    return noisy, add_integers(raw, 2.0**30, 2.0**-30, draws)


def _numbers(*shape):
    x = np.round(9 * np.sin(np.arange(math.prod(shape)) ** 2), 3).astype(np.float32)
    x[5:8], x[11:13] = (0, np.nan, np.inf), 2
    return x.reshape(shape)


X, A, D = _numbers(40, 13), _numbers(8, 13), _numbers(8, 5)
FACTORS = [_numbers(8, 4, 13), _numbers(8, 4, 5)]
WEIGHTS = np.array([0, 0, 1, 0.5, 0.3, 1, 1e-3, 1])
IMAGES = _numbers(2, 6, 5, 3)
TRIALS: dict[str, tuple] = {  # twins: how far off they may be, what computes with them, of what
    "exp log tanh relu relu_gradient": (0.0, _coordinates, [X, X[::-1]]),
    "softmax_cross_entropy": (0.0, SoftmaxCrossEntropy(), [X, np.arange(40) % 15 - 1]),
    "row_norms": (1e-14, row_norms, [X]),
    "form_outer": (1e-13, _formed, [A, D]),
    "sum_of_squares": (1e-13, _squares, [A, D]),
    "gram_norms": (1e-11, _gram_norms, FACTORS),
    "clip_weights": (0.0, partial(clip_weights, clip_norm=1.5), [abs(X).astype(float)]),
    "add_weighted_each add_weighted_products": (1e-6, _summed, [WEIGHTS, A, D, *FACTORS]),
    "pairs": (0.0, _pairs, [X]),
    "patches fold": (0.0, _patches, [IMAGES, _numbers(2, 6, 3, 3, 2, 3)]),
    "pool pool_gradient": (0.0, _maxima, [IMAGES, _numbers(2, 6, 3, 3)]),
    "descend": (0.0, _descended, [X, X[::-1]]),
    "release": (0.0, _released, [np.arange(700.0)]),
}


def try_twins(xp: Any) -> None:
    """Try a device's kernels once, and use those that are right from then on.

    If kernels are left out, rank 0 prints one line on stderr with their names and the reason.
    Without this call a device computes by definitions alone.
    """
    if hasattr(xp, "RawModule"):
        allow(xp, _right(xp, xp.cuda.runtime.getDevice()))


@cache
def _right(xp, device):
    faults = {names: _fault(xp, names.split(), *trial) for names, trial in TRIALS.items()}
    wrong = [f"{names.replace(' ', ', ')} ({why})" for names, why in faults.items() if why]
    if wrong and current().rank == 0:
        print(
            f"NOTICE: GPU {device} computes without these compiled kernels, slower but right: "
            + "; ".join(wrong),
            file=sys.stderr,
        )
    return {name for names, why in faults.items() if not why for name in names.split()}


def _fault(xp, twins, tolerance, compute, arrays):
    """Why these kernels are not used; "" if they agree with their definitions."""
    with np.errstate(all="ignore"), only(np, ()):
        expected = compute(*arrays)
        try:
            with only(xp, twins):
                found = compute(*map(xp.asarray, arrays))
            same = all(map(partial(_agree, tolerance), _listed(found), _listed(expected)))
        except Exception as error:  # a compiler or a driver may raise anything
            return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    return "" if same else "other numbers than its definition"


def _listed(found):
    """Host arrays of one array or of several."""
    return [to_host(found)] if hasattr(found, "dtype") else [*map(to_host, found)]


def _agree(tolerance, got, expected):
    """True for equal arrays, NaN with NaN, or off by `tolerance` of the largest finite number."""
    margin = tolerance * np.max(np.abs(expected[np.isfinite(expected)]), initial=0)
    alike = got.dtype == expected.dtype and got.shape == expected.shape
    return alike and np.allclose(got, expected, 0, margin, equal_nan=True)
