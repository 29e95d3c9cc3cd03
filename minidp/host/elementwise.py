"""Compiled twins, for float32 on the host, of definitions elsewhere: the same bits in few passes.

The interpreter's lock is released. Without fastmath no product and sum become one operation.
"""

import numpy as np

from .jit import exp_parts, horner, log_of, njit
from .series import LEAST, MOST, SATURATED, SPLIT

RUN = 256  # numbers whose steps in between stay in the nearest cache
_options = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**_options)
def _parts(v, p, half, bits):
    for i in range(RUN):
        half[i], p[i] = exp_parts(v[i], horner)
    for i in range(RUN):
        bits[i] = (bits[i] + 1022) << 52


@njit(**_options)
def exp(x, y):
    """exact.elementwise.exp: x (N,) to y (N,)."""
    v, p, half = np.zeros(RUN), np.empty(RUN), np.empty(RUN)
    bits = half.view(np.int64)
    for start in range(0, x.size, RUN):
        source, target = x[start : start + RUN], y[start : start + RUN]
        for i in range(source.size):
            value = np.float64(source[i])
            v[i] = LEAST if value < LEAST else MOST if value > MOST else value
        _parts(v, p, half, bits)
        for i in range(source.size):
            target[i] = 0.0 if source[i] < LEAST else (2.0 + 2.0 * p[i]) * half[i]


@njit(**_options)
def tanh(x, y):
    """exact.elementwise.tanh: x (N,) to y (N,)."""
    v, p, half = np.zeros(RUN), np.empty(RUN), np.empty(RUN)
    bits = half.view(np.int64)
    for start in range(0, x.size, RUN):
        source, target = x[start : start + RUN], y[start : start + RUN]
        for i in range(source.size):
            value = -2.0 * abs(np.float64(source[i]))
            v[i] = SATURATED if value < SATURATED else value
        _parts(v, p, half, bits)
        for i in range(source.size):
            w = 2.0 * half[i]
            value = ((1.0 - w) - w * p[i]) / ((1.0 + w) + w * p[i])
            target[i] = -value if source[i] < 0 else value


@njit(**_options)
def log(x, y):
    """exact.elementwise.log: x (N,) to y (N,). No float32 is a subnormal float64."""
    m, e = np.ones(RUN), np.empty(RUN)
    bits = m.view(np.int64)
    for start in range(0, x.size, RUN):
        source, target = x[start : start + RUN], y[start : start + RUN]
        for i in range(source.size):
            m[i] = source[i]
        for i in range(source.size):
            shifted = bits[i] - SPLIT
            e[i] = shifted >> 52
            bits[i] = (shifted & (2**52 - 1)) + SPLIT
        for i in range(source.size):
            value = log_of(m[i], e[i], horner)
            given = source[i]
            rest = -np.inf if given == 0 else given if given > 0 else np.nan
            target[i] = value if 0 < given < np.inf else rest


@njit(**_options)
def relu(x, y):
    """nn.ReLU [F1]: x (N,) to y (N,)."""
    for i in range(x.size):
        y[i] = 0.0 if x[i] <= 0 else x[i]


@njit(**_options)
def relu_gradient(dy, y, dx):
    """nn.ReLU [B1]: dy, y (N,) to dx (N,)."""
    for i in range(y.size):
        dx[i] = dy[i] if y[i] > 0 else 0.0


@njit(**_options)
def softmax_cross_entropy(z, target, losses, dz):
    """nn.SoftmaxCrossEntropy: z (B, K), target (B,) to losses (B,), dz (B, K); sums as in
    arithmetic.in_pairs.
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
    flat = dz.reshape(dz.size)
    exp(flat, flat)
    for b in range(z.shape[0]):
        terms[:] = dz[b]
        n = classes
        while n > 1:
            half = (n + 1) // 2
            for k in range(n - half):
                terms[k] += terms[half + k]
            n = half
        losses[b] = terms[0]
        known = 0 <= target[b] < classes
        for k in range(classes):
            dz[b, k] = dz[b, k] / terms[0] if known else 0.0
        if known:
            dz[b, target[b]] -= np.float32(1)
    log(losses, losses)
    for b in range(z.shape[0]):
        losses[b] = losses[b] - chosen[b] if 0 <= target[b] < classes else 0.0
