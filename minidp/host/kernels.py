"""Numba kernels for float32 on the host: twins of definitions in `arrays`, each measured
against them.

NumPy would read every explicit gradient three times, and its product of a row and a number runs at
a quarter of memory's speed. These kernels form and square each gradient in one pass and add it to
the sum in another, with the interpreter's lock released. The compiler may reorder sums (`reassoc`),
so the bounds assume chains of roundings as long as a run of squares. Numbers that are not finite
are kept.
"""

import numpy as np

from .jit import CACHED, compiled, njit

STRETCH = (
    2048  # numbers of the sum that stay in the nearest cache while all examples are added to them
)

_options = {
    "cache": CACHED,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract"},
}


@njit(**_options)
def add_weighted(total, w, g):
    """arrays.add_weighted: total (P,) float64 += w (B,) float64 @ g (B, P) float32, without rows
    whose weight is 0.
    """
    kept = np.flatnonzero(w)
    for start in range(0, total.size, STRETCH):
        target = total[start : start + STRETCH]
        for at in range(
            0, kept.size - 3, 4
        ):  # four at a time: the sum is read and written a quarter as often
            w0, w1, w2, w3 = w[kept[at]], w[kept[at + 1]], w[kept[at + 2]], w[kept[at + 3]]
            g0, g1 = g[kept[at], start : start + STRETCH], g[kept[at + 1], start : start + STRETCH]
            g2, g3 = (
                g[kept[at + 2], start : start + STRETCH],
                g[kept[at + 3], start : start + STRETCH],
            )
            for k in range(target.size):
                target[k] += (w0 * g0[k] + w1 * g1[k]) + (w2 * g2[k] + w3 * g3[k])
        for at in range(kept.size - kept.size % 4, kept.size):
            weight, source = w[kept[at]], g[kept[at], start : start + STRETCH]
            for k in range(target.size):
                target[k] += weight * source[k]


@compiled  # `mechanism.rounding` charges for these pairs
def add_blocks(total, parts):
    """arrays.add_products: total (I, O) float64 or float32 += sum of parts (K, I, O) float32, at
    most four, in pairs.
    """
    blocks, none = parts.shape[0], np.zeros(total.shape[1], np.float32)
    for i in range(total.shape[0]):
        target, p0 = total[i], parts[0, i]
        p1 = parts[1, i] if blocks > 1 else none
        p2 = parts[2, i] if blocks > 2 else none
        p3 = parts[3, i] if blocks > 3 else none
        for o in range(target.size):
            target[o] += (p0[o] + p1[o]) + (p2[o] + p3[o])


@njit(**_options)
def dot(x, y):
    """sum_p x_p y_p in float64, of float32."""
    total = 0.0
    for p in range(x.size):
        total += np.float64(x[p]) * np.float64(y[p])
    return total


@njit(**_options)
def row_norms(x, norms):
    """arrays.row_norms: of x (B, P) float32 to norms (B,) float64, where no square overflows or
    vanishes.
    """
    for b in range(x.shape[0]):
        norms[b] = np.sqrt(dot(x[b], x[b]))


@njit(**_options)
def gram_norms(a, d, lost, cancelling):
    """grads.OuterSum [N1] [N3]: of a (B, T, I) and d (B, T, O), (B,) float64."""
    upper, positions = np.empty(a.shape[0]), a.shape[1]
    for b in range(upper.size):
        sq, most = 0.0, 0.0
        for t in range(positions):
            left, right = dot(a[b, t], a[b, t]), dot(d[b, t], d[b, t])
            most += np.sqrt(left) * np.sqrt(right)
            row = left * right
            for u in range(t + 1, positions):
                row += 2 * dot(a[b, t], a[b, u]) * dot(d[b, t], d[b, u])
            sq += row
        upper[b] = max(sq, 0.0) + lost * most**2
        upper[b] = max(upper[b], (most / cancelling) ** 2) if most < np.inf else np.inf
    return upper
