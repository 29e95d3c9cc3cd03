"""Slow truths: each formula again, as loops over single numbers, written independently of the fast
code.

A layer's is named as its kind, and takes x and p: its arrays and settings by name. They exist to be
compared with. Nothing outside `audit`, tools and tests uses them.
"""

import math
from statistics import fmean

import numpy as np


def _at_each(function):
    """function(x, p, index) at every index of the output, which has x's shape."""

    def apply(x, p):
        y = np.zeros(x.shape)
        for at in np.ndindex(x.shape):
            y[at] = function(x, p, at)
        return y

    return apply


def dense(x, p):
    """y_bo = sum_i x_bi W_io + b_o."""
    y = np.zeros((len(x), p["W"].shape[1]))
    for n, o in np.ndindex(y.shape):
        y[n, o] = sum(x[n, i] * p["W"][i, o] for i in range(len(p["W"]))) + _bias(p, o)
    return y


def _bias(p, o):
    return p["b"][o] if "b" in p else 0


def project(x, p):
    """y_bk = sum_i x_bi P_ik."""
    return dense(x, {"W": p["P"]})


clamp = _at_each(lambda x, p, at: sorted([-p["limit"], x[at], p["limit"]])[1])
relu = _at_each(lambda x, p, at: x[at] if x[at] > 0 else 0.0)
tanh = _at_each(lambda x, p, at: math.tanh(x[at]))
sigmoid = _at_each(lambda x, p, at: 1 / (1 + math.exp(-x[at])))
softmax = _at_each(lambda x, p, at: math.exp(x[at]) / sum(math.exp(v) for v in x[at[:-1]]))
standardise = _at_each(lambda x, p, at: (x[at] - _own(p["mean"], x, at)) / _own(p["scale"], x, at))
dropout = _at_each(lambda x, p, at: x[at])  # in evaluation


def _own(array, x, index):
    """The number of a parameter that belongs to one number of x, where the parameter spans trailing
    axes or 1s.
    """
    return np.broadcast_to(array, x.shape)[index]


def flatten(x, p):
    """All axes of an example in one, the last fastest."""
    y = np.zeros((len(x), math.prod(x.shape[1:])))
    for n, example in enumerate(x):
        y[n] = [example[index] for index in np.ndindex(example.shape)]
    return y


def _windows(axis, n, p, size, stride, padding):
    """The pixels that each window along one axis of n sees, as lists of (place in the window,
    pixel).
    """
    size, stride, padding = (
        setting[axis] if isinstance(setting, tuple) else setting
        for setting in (size, p.get("stride", stride), p.get("padding", padding))
    )
    if padding == "same":
        windows = math.ceil(n / stride)
        before = max((windows - 1) * stride + size - n, 0) // 2
    else:
        before = 0 if padding == "valid" else padding
        windows = math.floor((n + 2 * before - size) / stride) + 1
    return [
        [(k, w * stride - before + k) for k in range(size) if 0 <= w * stride - before + k < n]
        for w in range(windows)
    ]


def conv(x, p):
    """y_bijo = sum_klc x_b,(window i, j sees k, l),c W_klco + b_o, seven loops."""
    W = p["W"]
    rows, columns = (_windows(a, x.shape[a + 1], p, W.shape[:2], 1, "same") for a in (0, 1))
    y = np.zeros((len(x), len(rows), len(columns), W.shape[3]))
    for n, i, j, o in np.ndindex(y.shape):
        y[n, i, j, o] = _bias(p, o) + sum(
            x[n, r, s, c] * W[k, l, c, o]
            for k, r in rows[i]
            for l, s in columns[j]
            for c in range(W.shape[2])
        )
    return y


def _pool(x, p, function):
    """`function` of the list of numbers that each window sees of a channel."""
    size = p["window"]
    rows, columns = (_windows(a, x.shape[a + 1], p, size, size, "valid") for a in (0, 1))
    y = np.zeros((len(x), len(rows), len(columns), x.shape[3]))
    for n, i, j, c in np.ndindex(y.shape):
        y[n, i, j, c] = function([float(x[n, r, s, c]) for _, r in rows[i] for _, s in columns[j]])
    return y


def maxpool(x, p):
    """The largest number of each window."""
    return _pool(x, p, max)


def avgpool(x, p):
    """The mean of each window."""
    return _pool(x, p, fmean)


def _normalised(x, p, sets):
    """`sets`: lists of the indices of an example that are normalised together."""
    y = np.zeros(x.shape)
    for example, out in zip(x, y):
        for together in sets:
            values = [float(example[index]) for index in together]
            mean = sum(values) / len(values)
            deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values) + 1e-5)
            for index, v in zip(together, values):
                scale, shift = (_own(p[name], out, index) for name in ("scale", "shift"))
                out[index] = (v - mean) / deviation * scale + shift
    return y


def groupnorm(x, p):
    """Neighbouring channels are normalised together, over all positions."""
    shape, groups = x.shape[1:], p["groups"]
    sets = [[] for _ in range(groups)]
    for index in np.ndindex(shape):
        sets[index[-1] * groups // shape[-1]].append(index)
    return _normalised(x, p, sets)


def layernorm(x, p):
    """The last axes, those of the scale, are normalised together, each position before them by
    itself.
    """
    shape, axes = x.shape[1:], p["scale"].ndim
    inner = list(np.ndindex(shape[-axes:]))
    sets = [[before + index for index in inner] for before in np.ndindex(shape[:-axes])]
    return _normalised(x, p, sets)


def unitnorm(x, p):
    """x_b / sqrt(sum of the squares of all numbers of x_b)."""
    return np.array([x_b / math.sqrt(sum(float(v) ** 2 for v in x_b.flat)) for x_b in x])


def cross_entropy(z, target):
    """-log of the true class's softmax probability, one example after the other."""
    return np.array(
        [-math.log(math.exp(z_b[t]) / sum(math.exp(v) for v in z_b)) for z_b, t in zip(z, target)]
    )


def squared_error(z, target):
    """1/2 sum_k (z_k - t_k)^2, one example after the other."""
    return np.array(
        [0.5 * sum((u - v) ** 2 for u, v in zip(z_b, t_b)) for z_b, t_b in zip(z, target)]
    )


def single_example_grads(network, loss, x, y):
    """{key: (B, *shape)}: gradients of a network, one example and one forward and backward pass at
    a time.
    """
    rows = []
    for b in range(len(x)):
        z, caches = network.forward(x[b : b + 1])
        rows.append(network.param_grads(loss(z, y[b : b + 1])[1], caches))
    return {key: np.concatenate([row[key].materialise() for row in rows]) for key in rows[0]}


def noisy(raw, noise_std, draws, integer_grid=0.0):
    """raw + N(0, noise_std^2), on the grid of 2^-20 of the power of two below noise_std; raw itself
    without noise. With an integer grid, the noise is discrete: whole multiples of it.
    """
    if not noise_std:
        return raw
    if integer_grid:
        units = raw / integer_grid
        draws.add_integers(units, noise_std / integer_grid)
        return units * integer_grid
    grid = 2.0 ** (math.floor(math.log2(noise_std)) - 20)
    return np.round((raw + noise_std * draws.standard_normal(raw.shape)) / grid) * grid


def clipped_sum(grads, groups):
    """Algorithm 1, "Clip gradient" and the sum, example by example, with the margin for roundings;
    grads {key: (B, *shape)}.
    """
    total = {key: np.zeros(g.shape[1:]) for key, g in grads.items()}
    for group in groups:
        for b in range(len(grads[group.keys[0]])):
            norm = math.sqrt(sum(float((grads[key][b] ** 2).sum()) for key in group.keys))
            for key in group.keys:
                total[key] += grads[key][b] / max(1.0, norm * (1 + 2.0**-20) / group.clip_norm)
    return total
