"""Compiled twins, for float32 on the host, of definitions elsewhere, in few passes.

The interpreter's lock is released. Without fastmath no product and sum become one operation. exp,
log and tanh are computed in float64 and rounded once, the same on every processor.
"""

import numpy as np

from ..host.jit import compiled
from .inlined import exp_parts, half, horner, log_of, split

LEAST, MOST = -708.0, 710.0  # exp: nearly the least normal float64, more than the largest
SATURATED = -40.0  # tanh: 1 - exp(SATURATED) is 1


@compiled
def exp(x, y):
    """The exponentials of x (N,) to y (N,)."""
    for i in range(x.size):
        t, p = exp_parts(min(max(np.float64(x[i]), LEAST), MOST))
        y[i] = 0.0 if x[i] < LEAST else (2.0 + 2.0 * p) * half(t)


@compiled
def log(x, y):
    """The logarithms of x (N,) to y (N,). No float32 is a subnormal float64."""
    for i in range(x.size):
        m, n = split(x[i])
        value = log_of(m, n, horner)
        rest = -np.inf if x[i] == 0 else x[i] if x[i] > 0 else np.nan
        y[i] = value if 0 < x[i] < np.inf else rest


@compiled
def tanh(x, y):
    """The hyperbolic tangents of x (N,) to y (N,)."""
    for i in range(x.size):
        t, p = exp_parts(max(-2.0 * abs(np.float64(x[i])), SATURATED))
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
    """nn.SoftmaxCrossEntropy: z (B, K), target (B,) to losses (B,), dz (B, K).

    Of n terms of a sum the last n // 2 are added onto the first, again and again until one is left.
    """
    classes = z.shape[1]
    terms, chosen = np.empty(classes, np.float32), np.zeros(z.shape[0], np.float32)
    for b in range(z.shape[0]):
        largest = z[b, 0]
        for k in range(1, classes):
            largest = largest if largest > z[b, k] or largest != largest else z[b, k]
        for k in range(classes):
            dz[b, k] = z[b, k] - largest
        if 0 <= target[b] < classes:
            chosen[b] = dz[b, target[b]]
    e = np.empty_like(dz)  # of an array in its own place exp would have no vectors
    exp(dz.reshape(dz.size), e.reshape(e.size))
    for b in range(z.shape[0]):
        terms[:] = e[b]
        n = classes
        while n > 1:
            half = (n + 1) // 2
            for k in range(n - half):
                terms[k] += terms[half + k]
            n = half
        losses[b] = terms[0]
        known = 0 <= target[b] < classes
        for k in range(classes):
            dz[b, k] = e[b, k] / terms[0] if known else 0.0
        if known:
            dz[b, target[b]] -= np.float32(1)
    log(losses, losses)
    for b in range(z.shape[0]):
        losses[b] = losses[b] - chosen[b] if 0 <= target[b] < classes else 0.0
