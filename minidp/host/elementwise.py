"""Compiled twins, for float32 on the host, of definitions elsewhere: the same bits in few passes.

The interpreter's lock is released. Without fastmath no product and sum become one operation.
"""

import numpy as np

from .inlined import exp_parts, half, horner, log_of, split
from .jit import compiled
from .series import LEAST, MOST, SATURATED


@compiled
def exp(x, y):
    """exact.elementwise.exp: x (N,) to y (N,)."""
    for i in range(x.size):
        t, p = exp_parts(min(max(np.float64(x[i]), LEAST), MOST), horner)
        y[i] = 0.0 if x[i] < LEAST else (2.0 + 2.0 * p) * half(t)


@compiled
def log(x, y):
    """exact.elementwise.log: x (N,) to y (N,). No float32 is a subnormal float64."""
    for i in range(x.size):
        m, n = split(x[i])
        value = log_of(m, n, horner)
        rest = -np.inf if x[i] == 0 else x[i] if x[i] > 0 else np.nan
        y[i] = value if 0 < x[i] < np.inf else rest


@compiled
def tanh(x, y):
    """exact.elementwise.tanh: x (N,) to y (N,)."""
    for i in range(x.size):
        t, p = exp_parts(max(-2.0 * abs(np.float64(x[i])), SATURATED), horner)
        w = 2.0 * half(t)
        value = ((1.0 - w) - w * p) / ((1.0 + w) + w * p)
        y[i] = -value if x[i] < 0 else value


@compiled
def relu(x, y):
    """nn.ReLU [F1]: x (N,) to y (N,)."""
    for i in range(x.size):
        y[i] = 0.0 if x[i] <= 0 else x[i]


@compiled
def relu_gradient(dy, y, dx):
    """nn.ReLU [B1]: dy, y (N,) to dx (N,)."""
    for i in range(y.size):
        dx[i] = dy[i] if y[i] > 0 else 0.0
