"""Compiled twins of `nn.LSTM` for float32 on the host.

Each loop has few arrays, so that the compiler can see that they do not overlap.
"""

import numpy as np

from ..fast.elementwise import tanh
from ..host.jit import compiled

ONE, HALF = np.float32(1), np.float32(0.5)


@compiled
def lstm_state(z, b, before, a, c, tanh_c, h):
    """nn.LSTM [F1]: z (B, 4 H), overwritten, b (4 H,), c before (B, H) to a (B, 4 H), c, tanh_c and
    h (B, H).
    """
    H = before.shape[1]
    for n in range(z.shape[0]):
        i, f, o, g = a[n, :H], a[n, H : 2 * H], a[n, 2 * H : 3 * H], a[n, 3 * H :]
        row, gates, cell, last = z[n], a[n, : 3 * H], c[n], before[n]
        for k in range(row.size):
            row[k] += b[k]
        for k in range(gates.size):
            row[k] *= HALF
        tanh(row, a[n])
        for k in range(gates.size):
            gates[k] = (gates[k] + ONE) * HALF
        for k in range(H):
            cell[k] = i[k] * g[k] + f[k] * last[k]
        tanh(cell, tanh_c[n])
        for k in range(H):
            h[n, k] = o[k] * tanh_c[n, k]


@compiled
def lstm_gradient(a, before, tanh_c, dh, dc, dz, t):
    """nn.LSTM [B1]: a (B, 4 H), c before, tanh_c, dh (B, H) to dc (B, H), in place, and dz
    (B, T, 4 H) at t.
    """
    H = before.shape[1]
    for n in range(a.shape[0]):
        i, f, o, g = a[n, :H], a[n, H : 2 * H], a[n, 2 * H : 3 * H], a[n, 3 * H :]
        row = dz[n, t]
        di, df, do, dg = row[:H], row[H : 2 * H], row[2 * H : 3 * H], row[3 * H :]
        down, cell, last, out = dh[n], dc[n], before[n], tanh_c[n]
        for k in range(H):
            cell[k] += down[k] * o[k] * (ONE - out[k] * out[k])
        for k in range(H):
            di[k] = cell[k] * g[k] * i[k] * (ONE - i[k])
        for k in range(H):
            df[k] = cell[k] * last[k] * f[k] * (ONE - f[k])
        for k in range(H):
            do[k] = down[k] * out[k] * o[k] * (ONE - o[k])
        for k in range(H):
            dg[k] = cell[k] * i[k] * (ONE - g[k] * g[k])
        for k in range(H):
            cell[k] *= f[k]
