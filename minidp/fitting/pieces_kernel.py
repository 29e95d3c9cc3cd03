"""Compiled twin of `Pieces` for float32 on the host."""

import numpy as np

from ..host.jit import compiled

ZERO = np.float32(0)


@compiled
def pieces(x, columns, before, knots, after, weight, y):
    """Pieces [F1]: x (B, I), columns (K,), knots and their neighbours (K, J) to y (B, I + K J)."""
    inputs, (number, each) = x.shape[1], knots.shape
    for n in range(x.shape[0]):
        for i in range(inputs):
            y[n, i] = x[n, i]
        for i in range(inputs, y.shape[1]):
            y[n, i] = ZERO
        for k in range(number):
            at, v, j = inputs + k * each, x[n, columns[k]], 0
            if v != v:
                y[n, at : at + each] = v
                continue
            v = min(max(v, knots[k, 0]), knots[k, each - 1])
            while j < each - 1 and knots[k, j + 1] <= v:
                j += 1
            # v is at the knot j, or between it and the next
            y[n, at + j] = (after[k, j] - v) / (after[k, j] - knots[k, j]) * weight
            if j < each - 1:
                rising = (v - before[k, j + 1]) / (knots[k, j + 1] - before[k, j + 1])
                y[n, at + j + 1] = rising * weight
