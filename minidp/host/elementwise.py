"""Compiled twins, for float32 on the host, of definitions elsewhere: the same bits in few passes.

The interpreter's lock is released. Without fastmath no product and sum become one operation.
"""

import numpy as np

from .inlined import exp_parts, half, horner, inlined, log_of, split
from .jit import compiled
from .series import LEAST, MOST, SATURATED


@inlined
def _exp(x):
    t, p = exp_parts(min(max(np.float64(x), LEAST), MOST), horner)
    return 0.0 if x < LEAST else (2.0 + 2.0 * p) * half(t)


@inlined
def _log(x):
    """No float32 is a subnormal float64."""
    m, n = split(x)
    value = log_of(m, n, horner)
    rest = -np.inf if x == 0 else x if x > 0 else np.nan
    return value if 0 < x < np.inf else rest


@compiled
def exp(x, y):
    """exact.elementwise.exp: x (N,) to y (N,)."""
    for i in range(x.size):
        y[i] = _exp(x[i])


@compiled
def log(x, y):
    """exact.elementwise.log: x (N,) to y (N,)."""
    for i in range(x.size):
        y[i] = _log(x[i])


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


@compiled
def softmax_cross_entropy(z, target, losses, dz):
    """nn.SoftmaxCrossEntropy: z (B, K), target (B,) to losses (B,), dz (B, K); sums as in
    arithmetic.in_pairs.
    """
    classes = z.shape[1]
    terms = np.empty(classes, np.float32)
    for b in range(z.shape[0]):
        largest = z[b, 0]
        for k in range(1, classes):
            largest = largest if largest > z[b, k] or largest != largest else z[b, k]
        for k in range(classes):
            terms[k] = z[b, k] - largest
        known = 0 <= target[b] < classes
        chosen = terms[target[b]] if known else np.float32(0)
        for k in range(classes):
            terms[k] = dz[b, k] = _exp(terms[k])
        n = classes
        while n > 1:
            half_n = (n + 1) // 2
            for k in range(n - half_n):
                terms[k] += terms[half_n + k]
            n = half_n
        for k in range(classes):
            dz[b, k] = dz[b, k] / terms[0] if known else 0.0
        losses[b] = np.float32(_log(terms[0])) - chosen if known else 0.0
        if known:
            dz[b, target[b]] -= np.float32(1)
