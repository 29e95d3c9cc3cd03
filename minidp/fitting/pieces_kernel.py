"""Compiled twin of `Pieces` for float32 on the host."""

import numpy as np

from ..host.jit import compiled


@compiled
def pieces(x, columns, before, knots, after, weight, y):
    """Pieces [F1]: x (B, I), columns (K,), knots and their neighbours (K, J) to y (B, I + K J)."""
    inputs, each = x.shape[1], knots.shape[1]
    y[:, :inputs] = x
    y[:, inputs:] = np.float32(0)
    for n in range(len(x)):
        for k in range(len(columns)):
            near = y[n, inputs + k * each : inputs + (k + 1) * each]
            v = x[n, columns[k]]
            if v != v:
                near[:] = v
                continue
            v, j = min(max(v, knots[k, 0]), knots[k, -1]), 0
            while j + 1 < each and knots[k, j + 1] <= v:
                j += 1
            # v is at the knot j, or between it and the next
            near[j] = (after[k, j] - v) / (after[k, j] - knots[k, j]) * weight
            if j + 1 < each:
                rising = (v - before[k, j + 1]) / (knots[k, j + 1] - before[k, j + 1])
                near[j + 1] = rising * weight
